"""Damaged files and files that are made to take memory, time or the process; each is small, or made on the fly."""

import base64
import gzip
import json
import os
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from onebit.streams import read_table
from tables import read

# Reads files in a process of its own, and prints the errors and by how many bytes its memory, or a child's, grew.
MEASURE = """
import resource, sys
import numpy, polars, scipy.sparse, sklearn.datasets
from sklearn.externals import _arff
from onebit.streams import read_table
def most():
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
before = most()
for path in sys.argv[1:]:
    try:
        read_table(path)
    except ValueError as error:
        print(error)
print(1024 * (most() - before))
"""


def sparse_npz(path: Path) -> None:
    parts: dict[str, Any] = {"data": np.ones(3), "indices": np.arange(3), "indptr": np.arange(4)}
    np.savez(path, **parts, shape=np.array([3, 10**9]), y=np.array([0, 1, 0]))


BOMBS = {
    "cells.csv.gz": lambda path: path.write_bytes(gzip.compress(b"1,1,1,1\n" * (100 << 17), 1)),
    "wide.csv": lambda path: path.write_text(",".join("1" * 1_000_000)),
    "long_label.csv": lambda path: path.write_text("a,class\n" + "1,x\n" * 9000 + f"1,{'y' * 100_000}\n" * 2),
    "rows.arff": lambda path: path.write_text(
        "@relation r\n" + "".join(f"@attribute a{j} real\n" for j in range(9000)) + "@data\n" + "{}\n" * 9000
    ),
    "index.svm": lambda path: path.write_text("1 1:1 1000000000:2\n2 1:3\n1 2:1\n"),
    "shape.npz": sparse_npz,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_asks_for_gigabytes_is_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    BOMBS[name](tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name}: does not fit into memory .* GiB.*--max-gib"):
        read_table(tmp_path / name)


@pytest.mark.ci
def test_a_small_file_takes_no_gigabytes(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in BOMBS]
    for path in paths:
        BOMBS[path.name](path)
    run = subprocess.run([sys.executable, "-c", MEASURE, *map(str, paths)], capture_output=True, text=True, check=True)
    *errors, grown = run.stdout.splitlines()
    assert len(errors) == len(paths)
    assert int(grown) < 1 << 30


def test_a_wide_arff_file_with_few_rows_is_read(tmp_path: Path) -> None:
    """Its attributes have a line each, which are no rows."""
    names = "".join(f"@attribute a{j} real\n" for j in range(7000))
    rows = "".join("1," * 7000 + f"{label}\n" for label in "xyx")
    (tmp_path / "genes.arff").write_text(f"@relation r\n{names}@attribute class {{x,y}}\n@DATA\n{rows}")
    assert read_table(tmp_path / "genes.arff").X.shape == (3, 7000)


def test_an_error_is_short_whatever_the_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{'word' * 30_000},class\n1,x\n2,y\n3,x\nfour,y\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 5, .*wordword.*four.* most rows have a number") as caught:
        read_table(path)
    assert len(str(caught.value)) < 1100


def test_blank_lines_take_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "a.arff"
    path.write_text("@relation r\n" + "\n" * 100_000 + "@attribute a real\n@attribute class {x,y}\n@data\n1,x\n2,y\n")
    start = time.perf_counter()
    assert read_table(path).X.shape == (2, 1)
    assert time.perf_counter() - start < 5.0


def test_numbers_of_one_byte_that_become_eight(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((2_000_000, 1), np.uint8), y=np.arange(2_000_000) % 2)
    with pytest.raises(ValueError, match=r"a\.npz: does not fit into memory"):
        read_table(tmp_path / "a.npz", max_gib=0.0148)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_npz_that_numpy_never_wrote(tmp_path: Path, packing: int) -> None:
    np.savez(tmp_path / "a.npz", X=np.eye(4), y=np.arange(4) % 2)
    with zipfile.ZipFile(tmp_path / "a.npz") as old, zipfile.ZipFile(tmp_path / "b.npz", "w", packing) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(ValueError, match=r"b\.npz: is not a whole npz file .*X is packed in a way"):
        read_table(tmp_path / "b.npz")


# 1 199 bytes, sound but for one: the head of the first page has a negative number of values. Polars 2.1.0 asks for 2³¹
ABORTS = (
    b"c-rk$&2JJx6rWjPSqKqK`X)Qc9yUfcG?EG{2$+5_SggcaDHq%07TD4Ri(zZ|NNS9U7Z0Xq4?X%9c=qa*zrc7h9DC}?G`@jt>%~Jao_v{o?>F!J"
    b"?b~ck)H6Wf;}M*wDR>`4tb%GhAW4nPsHFSobOqVBW#a~lag3564V<n7Luf69wevXnfBy0L948Rr38HeHI-sy|jQu=fXR4(w{%wB{fH~0DQJ^An"
    b"haw+HHpIOfV5VRkgZRZ4K!-XVpz&tbUpbwG$RtD|%5y}Gb3NGTIG#7F{Eo5@)H>Fz@1Z|p`7MQC)xU(K1cWo+Ob7T3eTBg^I8zZxc&x#egrM-n"
    b"CxKqKdjJ6(IicXZ1fnQs9VE!Qfo|9aH+afASB>kw7j_Z>#=eGOnOL8~#x*8nUu5L3Fx)0=@&^4ZjlI?8WdC|p)a%b*JoFmv)=NkKLGMY*Wd%}2"
    b"vce(W2b=zVs(LDfCmv1Zrnp-}d%rLBRUvkLzp9jJ$;y&FTSccr<1*>Yul!i}R2xZqMdmBZQfnLD_SVKon({LL=qhM!3M;E(>RgriQC4I>NPRzF"
    b"Pv%3_wkYpj^j&TXv9v_=jas+k^gJ{9YIxA@?$4Wtt)92n-8b!p%tG2s?!4aXG|jwQOxrun`>xxx^R8R4o0+VgFF5I<V;6I-YrA=;)hyccJcWCe"
    b"t5p<2YWS=A4JB(Q_5"
)


def test_a_parquet_file_that_ends_the_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(zlib.decompress(base64.b85decode(ABORTS)))
    with pytest.raises(ValueError, match=r"a\.parquet: .*is it damaged"):
        read_table(path)


def test_a_parquet_file_whose_rows_ask_for_more_than_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.select(pl.repeat(0, 1 << 20, dtype=pl.Int8).alias(name) for name in "abcdefgh").write_parquet(path)
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"a\.parquet: .*it asks for 0\.0625 GiB"):
        read_table(path, max_gib=0.06)


def test_a_parquet_list_that_unpacks_to_more_than_is_allowed(tmp_path: Path) -> None:
    """Its one row tells nothing of its size: the limit of the child must hold."""
    path = tmp_path / "a.parquet"
    zeros = pl.select(pl.repeat(0, 60_000_000, dtype=pl.Int64).implode().alias("a"), pl.lit("x").alias("class"))
    zeros.write_parquet(path)
    assert path.stat().st_size < 50_000
    with pytest.raises(ValueError, match=r"a\.parquet: does not fit into memory \(memory allocation of 480000000"):
        read_table(path, max_gib=0.001)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.abort()", r"ended with status -6"),
        ("pass", r"ended with status 0"),
        ("raise SystemExit('lost')", r"ended with status 1 \(lost\)"),
        ("import time; time.sleep(60)", r"could not be read in \d+ s"),
    ],
)
def test_however_a_reader_ends_the_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    pl.DataFrame({"a": [1.0]}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr("onebit.streams.text._PARQUET_CHILD", program)
    monkeypatch.setattr("onebit.streams.text._PARQUET_SPEED", -17)
    with pytest.raises(ValueError, match=rf"a\.parquet: is not a whole Parquet file: .*{words}"):
        read_table(tmp_path / "a.parquet")


def test_nothing_from_the_current_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of another name ran')")
    pl.DataFrame({"a": [1.0, 2.0, 3.0], "class": ["x", "y", "x"]}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    assert read_table("a.parquet").X.shape == (3, 1)


FUZZ = Path(__file__).with_name("fuzz_files.py")


def test_packed_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b"a,y\n1,b\n2,c\n3,b\n")
    assert read(tmp_path, packed, "fruit.csv.gz").name == "fruit"
    assert read(tmp_path, gzip.compress(b"1 1:2\n-1 2:1\n1 1:1\n"), "rows.svm.gz").X.shape == (3, 2)
    for broken in (packed[:-9], b"a,y\n1,b\n", packed[:20] + b"\0\0\0" + packed[23:]):
        with pytest.raises(ValueError, match=r"fruit\.csv\.gz: is not a whole gz file"):
            read(tmp_path, broken, "fruit.csv.gz")
    monkeypatch.setattr("onebit.streams.files.memory", lambda: 4e6)
    monkeypatch.setattr("onebit.machine_memory.memory", lambda: 4e6)
    with pytest.raises(ValueError, match=r"bomb\.csv\.gz: does not fit into memory"):
        read(tmp_path, gzip.compress(b"1,2\n" * 10**6), "bomb.csv.gz")


def fuzz(seed: int, cases: int, seconds: float) -> dict[str, int]:
    run = subprocess.run(
        [sys.executable, str(FUZZ), str(seed), str(cases), str(seconds)],
        env={**os.environ, "RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"status {run.returncode}: {run.stderr[-3000:]}"
    seen: dict[str, int] = json.loads(run.stdout)
    return seen


@pytest.mark.ci
def test_damaged_files_are_read_or_refused() -> None:
    seen = fuzz(seed=0, cases=440, seconds=30)
    assert len(seen) >= 20, "every kind was read and refused"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_damaged_files_for_ten_minutes(seed: int) -> None:
    assert sum(fuzz(seed, cases=10**9, seconds=150).values()) > 1000
