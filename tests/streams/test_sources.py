from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from onebit.streams import paper_weak, syn_sep, wedges, with_drift, with_label_noise
from onebit.streams.reading import Reading
from onebit.streams.sources import Source, find_source, find_sources


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "animals.csv"
    path.write_text("height,animal\n1,cat\n2,dog\n3,cat\n")
    return path


def test_sources(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "animals.csv").write_text(table.read_text())
    np.savez(folder / "animals.npz", X=np.eye(4), y=[0, 1, 0, 1])
    np.savez(folder / "b_csr.npz", X=np.eye(4), y=[0, 1, 0, 1])
    (folder / "README.md").write_text("not data")
    names = [source.name for source in find_sources([str(folder), "wine", "paper_weak"], Reading(label="animal"))]
    assert names == ["animals.csv", "animals.npz", "b", "wine", "paper_weak"]
    assert [source.reading.label for source in find_sources([str(folder)], Reading(label="animal"))] == [
        "animal",
        None,
        None,
    ]
    (tmp_path / "empty").mkdir()
    for given, words in (
        ([str(tmp_path / "empty")], "no data set"),
        (
            ["nothing"],
            r"nothing: .*breast_cancer, digits, iris, paper_strong, paper_weak, several_right, syn_non_sep",
        ),
        (["wine", "wine"], "wine: the data set is named twice"),
        ([str(table), str(table)], "named twice"),
    ):
        with pytest.raises(ValueError, match=words):
            find_sources(given)
    with pytest.raises(ValueError, match="no such file"):
        find_sources([str(tmp_path / "lost.csv")])[0].load()


def test_every_stream_and_set_of_onebit_is_known_by_its_name() -> None:
    assert find_source("paper_weak") == Source("paper_weak", stream="paper_weak")
    assert find_source("wedges") == Source("wedges")
    assert np.array_equal(Source("wedges").load().X, wedges()[0])
    assert find_source("paper_weak").as_data_set(70).y.tolist() == paper_weak(70)[1].tolist()


def test_a_short_stream_knows_how_many_labels_there_are() -> None:
    X, y, n_classes = find_source("paper_strong").unchanged(1, seed=4)
    assert (X.shape, y.shape, n_classes) == ((1, 3), (1,), 3)


def test_a_stream_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_streams.py").write_text(
        "import numpy as np\n"
        "def good(rounds, seed):\n"
        "    return np.random.default_rng(seed).random((rounds, 2)), np.arange(rounds) % 4\n"
        "def words(rounds, seed):\n"
        "    return np.zeros((rounds, 1)), np.array(['a', 'b'] * rounds)[:rounds]\n"
        "nothing = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    source = find_source("own_streams:good")
    assert source.stream == source.name == "own_streams:good"
    assert find_source("own_streams:good").unchanged(3, 0)[2] == 4
    with pytest.raises(ValueError, match=r"own_streams:words: labels must be whole numbers, counted from 0; got \['a'"):
        find_source("own_streams:words").unchanged(3, 0)
    with pytest.raises(ValueError, match="own_streams:nothing: must be a function"):
        find_source("own_streams:nothing")
    with pytest.raises(ValueError, match="no module 'lost'"):
        find_source("lost.streams:good")


STRANGE = """
import numpy as np, scipy.sparse

def short(rounds, seed): return np.ones((rounds - 1, 2)), np.zeros(rounds, dtype=int)
def with_nan(rounds, seed): return np.full((rounds, 2), np.nan), np.zeros(rounds, dtype=int)
def nothing(rounds, seed): return None
def lists(rounds, seed): return [[1.0, 2.0]] * rounds, [0, 1] * (rounds // 2)
def sparse(rounds, seed): return scipy.sparse.eye_array(rounds, 3, format="csr"), np.arange(rounds) % 3

def rare(rounds, seed):
    y = (np.random.default_rng(seed).random(rounds) < 0.001) * 2
    return np.ones((rounds, 1)), y
"""


def test_a_strangers_stream_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "strange_streams.py").write_text(STRANGE)
    monkeypatch.chdir(tmp_path)
    for name, words in (("short", "one row"), ("with_nan", "finite"), ("nothing", "must return X, y")):
        with pytest.raises(ValueError, match=f"strange_streams:{name}.*{words}|strange_streams:{name}.*one label"):
            find_source(f"strange_streams:{name}").unchanged(50, 0)
    X, y, n_classes = find_source("strange_streams:lists").unchanged(50, 0)
    assert (X.shape, y.tolist()[:3], n_classes) == ((50, 2), [0, 1, 0], 2)
    assert find_source("strange_streams:sparse").unchanged(50, 0)[0].shape == (50, 3)
    assert {find_source("strange_streams:rare").unchanged(200, seed)[2] for seed in range(8)} == {3}


def test_changes_are_written_before_the_data(table: Path, tmp_path: Path) -> None:
    noisy = find_source("noise:0.2:drift:gradual,at=0.3:wedges")
    assert noisy.name == "noise:0.2:drift:gradual,at=0.3:wedges"
    assert [change.name for change in noisy.changes] == ["noise", "drift"]
    plain = Source("wedges").load()
    changed = with_label_noise(with_drift((plain.X, plain.y), "gradual", at=0.3), 0.2)
    assert np.array_equal(noisy.as_data_set(50).y, changed[1])
    assert find_source(f"noise:0.2:{table}").name == "noise:0.2:animals"
    (tmp_path / "noise:0.2:own").mkdir()
    np.savez(tmp_path / "noise:0.2:own" / "animals.npz", X=np.eye(4), y=[0, 1, 0, 1])
    same = [str(table), f"noise:0.2:{table}", f"noise:0.2:{tmp_path}/noise:0.2:own"]
    names = [source.name for source in find_sources(same)]
    assert names == ["animals", "noise:0.2:animals.csv", "noise:0.2:animals.npz"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("noise:0.2", r"noise:0\.2: on which data\?"),
        ("noise:1.2:iris", r"noise:1\.2: rate must be greater than 0 and at most 1; got 1\.2"),
        ("noise:iris", "on which data"),
        ("noise::iris", "noise needs a rate, a number after the colon"),
        ("noise:often:iris", "rate must be a number"),
        ("noise:rat=0.2:iris", r"noise has no setting 'rat'; it has rate\. Did you mean rate\?"),
        ("drift:slow:iris", "kind must be one of 'sudden', 'gradual'; got 'slow'"),
        ("drift:at=1.5:iris", r"at must be a share .* or a whole number; got 1\.5"),
        ("drift:at=0:iris", "at must be at least 1; got 0"),
        ("imbalance:1:iris", "ratio must be greater than 1; got 1"),
        ("imbalance:inf:iris", "ratio must be greater than 1, and finite; got inf"),
        ("noise:0.1:noise:0.1:iris", "noise is named twice"),
        ("imbalance:5:noise:0.1:iris", "imbalance stands next to the data"),
        ("nose:0.1:iris", "such as noise:0.05:digits"),
        ("noise:0.1:iriss", "iriss: there is no such file.* Did you mean iris"),
    ],
)
def test_bad_changes(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        find_source(text)


def test_a_thinned_stream_is_as_long_as_asked_and_begins_alike() -> None:
    source = find_source("noise:0.1:imbalance:20:syn_sep")
    X, y, n_classes = source.drawn(300, seed=3)
    assert (X.shape, y.shape, n_classes) == ((300, 400), (300,), 9)
    shorter = source.drawn(40, seed=3)
    assert np.array_equal(X[:40].toarray(), shorter[0].toarray())
    assert y[:40].tolist() == shorter[1].tolist()
    counts = np.sort(np.bincount(find_source("imbalance:20:syn_sep").drawn(3000, seed=3)[1]))
    assert 8 < counts[-1] / counts[0] < 50
    with pytest.raises(ValueError, match="rows of only one class are left; thin it out less"):
        find_source("imbalance:1e12:iris").load()


def test_a_changed_set_keeps_its_classes() -> None:
    thinned = find_source("imbalance:30:iris").load()
    assert (thinned.n_classes, thinned.name) == (3, "imbalance:30:iris")
    assert 50 < len(thinned.y) < 90
    assert scipy.sparse.issparse(find_source("syn_sep").unchanged(3, 0)[0])
    assert np.array_equal(find_source("syn_sep").unchanged(3, 0)[0].toarray(), syn_sep(3)[0].toarray())
