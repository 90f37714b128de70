"""Change saved files at random and load them: ``python tests/fuzz_saved.py --seconds 600``.

Whatever comes of it must be a learner or a ValueError that names the file. Half of the files get a checksum that fits
what was changed, as an enemy would do. Then the learner plays, so run it with NUMBA_BOUNDSCHECK=1 to see that nothing
in a file leads compiled code beyond its arrays.
"""

import argparse
import io
import json
import random
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import onebit
from onebit.checks.problems import fresh, noisy_problem
from onebit.learners import all_learners
from onebit.learners.saving import _BLANK_END, _CHECKSUM, _checksum_of, to_bytes

STRANGE: tuple[Any, ...] = (None, -1, 0, 1, 2, 10**9, 2**63, 1e308, "", "x", [], {}, True, [[]], {"array": 0}, "auto")


def saved() -> list[bytes]:
    """Return the files of every learner after a short game, with two open tickets, one of a sparse row."""
    problem, contents = noisy_problem(40), []
    for cls in all_learners():
        for learner in cls.examples():
            player = fresh(learner, classes=4)
            onebit.play(player, problem.X, problem.y)
            player.guess(problem.X[0])
            player.guess(scipy.sparse.csr_array(problem.X[1:2]))
            contents.append(bytes(to_bytes(player)))
    return contents


def sealed(content: bytes) -> bytes:
    return content[:-_CHECKSUM] + _checksum_of(content)


def flip_bytes(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        what = chance.randrange(4)
        at = chance.randrange(max(1, len(changed)))
        if what == 0:
            changed[at : at + 1] = bytes([chance.randrange(256)])
        elif what == 1:
            changed[at : at + chance.randrange(1, 50)] = b""
        elif what == 2:
            changed[at:at] = chance.randbytes(chance.randrange(1, 20))
        else:
            changed[at : at + 8] = chance.choice((b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7))
    return sealed(bytes(changed)) if chance.random() < 0.5 else bytes(changed)


def change_json(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(sorted(value))
        return {**value, name: change_json(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return [*value[:at], change_json(value[at], chance), *value[at + 1 :]]
    return chance.choice(STRANGE)


def change_array(array: Any, chance: random.Random) -> Any:
    what = chance.randrange(5)
    if what == 0 or not array.size:
        return array.reshape(-1)[: chance.randrange(array.size + 1)]
    if what == 1:
        return np.repeat(array, 2, axis=chance.randrange(array.ndim))
    if what == 2:
        kinds = (np.float64, np.int64, np.int8, "U3") if array.dtype.kind != "U" else ("U1", "S9")
        return array.astype(chance.choice(kinds))
    changed = array.copy()
    numbers = (0, 1, -1, 3, 127) if array.dtype.itemsize == 1 else (0, 1, -1, 5, 2**62, -(2**62))
    if array.dtype.kind == "U":
        numbers = ("", "x", "north", "\0")  # type: ignore[assignment]
    if array.dtype.kind == "f":
        numbers = (0.0, -1.0, np.nan, np.inf, 1e300, -1e-300)  # type: ignore[assignment]
    with np.errstate(all="ignore"):
        changed.reshape(-1)[chance.randrange(array.size)] = np.array(chance.choice(numbers)).astype(array.dtype)
    return changed


def change_parts(content: bytes, chance: random.Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        new.comment = _BLANK_END
        names = old.namelist()
        victims = set(chance.choices(names, k=chance.choice((1, 1, 2, 5))))
        for name in names:
            held = old.read(name)
            if name in victims and name == "header.json":
                held = json.dumps(change_json(json.loads(held), chance)).encode()
            elif name in victims:
                part = io.BytesIO()
                np.save(part, change_array(np.load(io.BytesIO(held)), chance))
                held = part.getvalue()
            new.writestr(name, held)
    return sealed(file.getvalue())


def plays(learner: onebit.Learner) -> None:
    """Let a learner play: what it was told may be nonsense, so errors are fine, but only those it documents."""
    d = learner.n_features_in_ if learner._started else 5
    for _ in range(3):
        try:
            guess = learner.guess(np.linspace(-1.0, 1.0, d))
            learner.tell(guess, False, *([learner._labels[0]] if learner.full_information else []))
        except ValueError:
            return


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--play", action="store_true", help="let the learners that load play")
    chosen = options.parse_args()
    chance, outcomes = random.Random(chosen.seed), Counter[str]()
    contents = saved()
    end = time.monotonic() + chosen.seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onebit"
        while time.monotonic() < end:
            content = chance.choice(contents)
            changed = (flip_bytes if chance.random() < 0.4 else change_parts)(content, chance)
            path.write_bytes(changed)
            try:
                learner = onebit.load(path)
            except ValueError as error:
                if str(path) not in str(error):
                    raise AssertionError(f"the error does not name the file: {error}") from error
                outcomes["refused"] += 1
                continue
            except BaseException:
                Path("fuzz_saved_failure.onebit").write_bytes(changed)
                raise
            outcomes["loaded"] += 1
            if chosen.play:
                plays(learner)
    print(dict(outcomes))


if __name__ == "__main__":
    main()
