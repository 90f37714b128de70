"""Files that end, or fill, the process that reads them: it is a child."""

import base64
import sys
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from onebit.streams import child_reader, read_table
from onebit.streams.files import read_untrusted
from onebit.streams.reading import Reading

TEXT = "a,class\n1,x\n2,y\n3,x\n"


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
    monkeypatch.setattr(child_reader, "_COMMAND", [sys.executable, "-c", program])
    monkeypatch.setattr(child_reader, "_STARTING", -58)
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / "a.parquet")


def test_a_file_is_read_in_a_child_as_it_is_read_here(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("when,w,n,class\n2024-01-01,red,1,007\n2024-01-02,blue,2,7\n2024-01-02,red,,7\n", encoding="utf-8")
    here, there = read_table(path, missing="indicator"), read_untrusted(path, Reading(missing="indicator"), 60)
    assert np.array_equal(here.X, there.X)
    assert (here.about, here.feature_names, here.label_names) == (there.about, there.feature_names, there.label_names)
    assert here.content == there.content
    with pytest.raises(ValueError, match=r"a\.csv, line 4, column 'n': is empty"):
        read_untrusted(path, Reading(), 60)
    with pytest.raises(ValueError, match=r"a\.csv: does not fit into memory"):
        read_untrusted(path, Reading(max_gib=1e-6, missing="indicator"), 60)


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
    assert read_untrusted(Path("a.csv"), Reading(), 60).X.shape == (3, 1)
