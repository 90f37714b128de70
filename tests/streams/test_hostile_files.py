"""Damaged files and files that are made to take memory, time or the process; each is small, or made on the fly."""

import base64
import gzip
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from onebit.machine_memory import memory, no_more_than
from onebit.streams import child_reader, read_table
from onebit.streams.files import read_untrusted_text
from onebit.streams.reading import Reading

TEXT = "a,class\n1,x\n2,y\n3,x\n"
# 1 199 bytes, sound but for one: the head of the first page has a negative number of values. Polars 2.1.0 asks for 2³¹
# GiB and ends the process.
ABORTS = (
    b"c-rk$&2JJx6rWjPSqKqK`X)Qc9yUfcG?EG{2$+5_SggcaDHq%07TD4Ri(zZ|NNS9U7Z0Xq4?X%9c=qa*zrc7h9DC}?G`@jt>%~Jao_v{o?>F!J"
    b"?b~ck)H6Wf;}M*wDR>`4tb%GhAW4nPsHFSobOqVBW#a~lag3564V<n7Luf69wevXnfBy0L948Rr38HeHI-sy|jQu=fXR4(w{%wB{fH~0DQJ^An"
    b"haw+HHpIOfV5VRkgZRZ4K!-XVpz&tbUpbwG$RtD|%5y}Gb3NGTIG#7F{Eo5@)H>Fz@1Z|p`7MQC)xU(K1cWo+Ob7T3eTBg^I8zZxc&x#egrM-n"
    b"CxKqKdjJ6(IicXZ1fnQs9VE!Qfo|9aH+afASB>kw7j_Z>#=eGOnOL8~#x*8nUu5L3Fx)0=@&^4ZjlI?8WdC|p)a%b*JoFmv)=NkKLGMY*Wd%}2"
    b"vce(W2b=zVs(LDfCmv1Zrnp-}d%rLBRUvkLzp9jJ$;y&FTSccr<1*>Yul!i}R2xZqMdmBZQfnLD_SVKon({LL=qhM!3M;E(>RgriQC4I>NPRzF"
    b"Pv%3_wkYpj^j&TXv9v_=jas+k^gJ{9YIxA@?$4Wtt)92n-8b!p%tG2s?!4aXG|jwQOxrun`>xxx^R8R4o0+VgFF5I<V;6I-YrA=;)hyccJcWCe"
    b"t5p<2YWS=A4JB(Q_5"
)
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
    reads: list[Callable[[], object]] = [lambda: read_table(path), lambda: read_untrusted_text(path, Reading(), 60)]
    for read in reads:
        with pytest.raises(ValueError, match=r"a\.csv, line 5, .*wordword.*four.* most rows have a number") as caught:
            read()
        assert len(str(caught.value)) < 1100


def test_blank_lines_take_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "a.arff"
    path.write_text("@relation r\n" + "\n" * 100_000 + "@attribute a real\n@attribute class {x,y}\n@data\n1,x\n2,y\n")
    start = time.perf_counter()
    assert read_table(path).X.shape == (2, 1)
    assert time.perf_counter() - start < 5.0


def test_the_limit_is_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"n,y\n" + b"1,a\n2,b\n" * 100_000))
    with pytest.raises(ValueError, match=r"a\.csv\.gz: does not fit into memory .*more than the 0\.002 GiB allowed"):
        read_table(path, max_gib=0.002)
    assert read_table(path, max_gib=1).X.shape == (200_000, 1)
    with pytest.raises(ValueError, match="max_gib"):
        read_table(path, max_gib=0)
    assert Reading().most_bytes(10**9) == 200e9


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


def test_less_memory_inside_less_memory() -> None:
    with no_more_than(1000), no_more_than(5000):
        assert memory() == 1000


def test_a_parquet_file_that_ends_the_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(zlib.decompress(base64.b85decode(ABORTS)))
    with pytest.raises(ValueError, match=r"a\.parquet: .*is it damaged"):
        read_table(path)


def test_a_parquet_file_whose_rows_ask_for_more_than_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.select(pl.repeat(0, 1 << 20, dtype=pl.Int8).alias(name) for name in "abcdefgh").write_parquet(path)
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"a\.parquet: .*its rows and columns ask for 0\.0625 GiB"):
        read_table(path, max_gib=0.06)


def test_a_parquet_list_that_unpacks_to_more_than_is_allowed(tmp_path: Path) -> None:
    """Its one row tells nothing of its size: the limit of the child must hold."""
    path = tmp_path / "a.parquet"
    zeros = pl.select(pl.repeat(0, 60_000_000, dtype=pl.Int64).implode().alias("a"), pl.lit("x").alias("class"))
    zeros.write_parquet(path)
    assert path.stat().st_size < 50_000
    with pytest.raises(ValueError, match=r"a\.parquet: does not fit into memory"):
        read_table(path, max_gib=0.001)


def test_a_disk_without_room_for_the_columns_is_no_damage(tmp_path: Path) -> None:
    pl.DataFrame({"a": np.arange(2000.0), "class": ["x", "y"] * 1000}).write_parquet(tmp_path / "a.parquet")
    # A limit on the size of files, which a child inherits, stands for a full disk.
    program = (
        "import resource, signal, sys; from onebit.streams import read_table; signal.signal(signal.SIGXFSZ, "
        "signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); read_table(sys.argv[1])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "a.parquet"], capture_output=True, text=True, check=False
    )
    assert "a.parquet: its columns cannot be put into" in run.stderr


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.abort()", r"a\.parquet: could not be read: the reader ended with SIGABRT; the file may be"),
        ("pass", r"a\.parquet: could not be read: the reader ended with status 0; the file may be"),
        ("raise SystemExit('lost')", r"a\.parquet: could not be read: the reader ended with status 1 \(lost\)"),
        ("import signal; signal.alarm(1); signal.pause()", r"a\.parquet: could not be read in \d+ s"),
        ("import time; time.sleep(60)", r"a\.parquet: could not be read in \d+ s"),
    ],
)
def test_however_a_reader_ends_the_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(child_reader, "_PROGRAM", program)
    monkeypatch.setattr(child_reader, "_STARTING", 1)
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / "a.parquet")


def test_a_file_is_read_in_a_child_as_it_is_read_here(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("when,w,n,class\n2024-01-01,red,1,007\n2024-01-02,blue,2,7\n2024-01-02,red,,7\n", encoding="utf-8")
    here, there = read_table(path, missing="indicator"), read_untrusted_text(path, Reading(missing="indicator"), 60)
    assert np.array_equal(here.X, there.X)
    assert (here.about, here.feature_names, here.label_names) == (there.about, there.feature_names, there.label_names)
    assert here.content == there.content
    with pytest.raises(ValueError, match=r"a\.csv, line 4, column 'n': is empty"):
        read_untrusted_text(path, Reading(), 60)
    with pytest.raises(ValueError, match=r"a\.csv: does not fit into memory"):
        read_untrusted_text(path, Reading(max_gib=1e-6, missing="indicator"), 60)


def test_nothing_from_the_current_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of another name ran')")
    pl.DataFrame({"a": [1.0, 2.0, 3.0], "class": ["x", "y", "x"]}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    assert read_table("a.parquet").X.shape == (3, 1)


def test_the_child_finds_modules_where_its_parent_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the folder of a file nor in the current one, if the parent does not look there."""
    (tmp_path / "polars.py").write_text("raise SystemExit('a stranger ran')")
    (tmp_path / "a.csv").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    assert read_untrusted_text(Path("a.csv"), Reading(), 60).X.shape == (3, 1)
