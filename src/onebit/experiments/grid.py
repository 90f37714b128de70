"""Cells (a player on a stream with a seed), each identified by a hash of all that defines it."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""Values of settings: anything JSON can represent."""


@dataclass(frozen=True, eq=False)
class Spec:
    """A stream or a player by name, with its settings.

    Settings are copied and sorted by name. Two specs are equal when their canonical JSON is:
    ``1`` and ``1.0`` are different settings, the order in which settings are given does not matter.

    Parameters
    ----------
    name : str
        What the stream or player is called.
    settings : mapping of str to JSON value
        Only what survives JSON exactly: None, bool, int, float other than NaN, str, and lists and dicts of these.
    shown : str
        The name in messages, if that is to be another; it identifies nothing.

    Examples
    --------
    >>> Spec("Banditron", {"exploration": 0.02}).label
    'Banditron(exploration=0.02)'
    """

    name: str
    settings: Mapping[str, JSON] = field(default_factory=dict)
    shown: str = ""

    def __post_init__(self) -> None:
        _require_type("name", self.name, str)
        for setting, value in self.settings.items():
            _require_type(f"the name of a setting of {self.name}", setting, str)
            _require_exact_json(f"setting {setting!r} of {self.name}", value)
        # Through JSON and back: a private copy, equal to what is read from a store.
        object.__setattr__(self, "settings", json.loads(_canonical_json(dict(self.settings))))

    @cached_property
    def canonical(self) -> str:
        """The one JSON text of this spec."""
        return _canonical_json({"name": self.name, "settings": dict(self.settings)})

    @property
    def label(self) -> str:
        """The spec as one would write it in Python."""
        name = self.shown or self.name
        given = ", ".join(f"{setting}={_as_python(value)}" for setting, value in self.settings.items())
        return f"{name}({given})" if given else name

    def __eq__(self, other: object) -> bool:
        return self.canonical == other.canonical if isinstance(other, Spec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.canonical)


@dataclass(frozen=True)
class Cell:
    """One player on one stream with one seed, under one version of the code.

    Parameters
    ----------
    stream, player : Spec
        The streams and the players.
    seed : int
        The seed of the cell.
    version : str
        Anything else that the result depends on; another version is another key.

    Examples
    --------
    >>> cell = Cell(Spec("paper_weak", {"rounds": 500}), Spec("Banditron", {"exploration": 0.02}), 3, "1")
    >>> cell.label
    'paper_weak(rounds=500) × Banditron(exploration=0.02), seed 3'
    >>> cell.key[:12]
    '7743f6df64cf'
    """

    stream: Spec
    player: Spec
    seed: int
    version: str

    def __post_init__(self) -> None:
        _require_type("seed", self.seed, int)
        _require_type("version", self.version, str)

    @cached_property
    def canonical(self) -> str:
        """The one JSON text of this cell, which its key is the hash of."""
        seed, version = json.dumps(self.seed), json.dumps(self.version)
        specs = f'"player":{self.player.canonical},"seed":{seed},"stream":{self.stream.canonical}'
        return f'{{{specs},"version":{version}}}'

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    @property
    def label(self) -> str:
        """A readable name of the cell."""
        return f"{self.stream.label} × {self.player.label}, seed {self.seed}"


@dataclass(frozen=True)
class Batch:
    """The cells that share a stream and a seed, so that the stream is generated only once.

    Parameters
    ----------
    stream : Spec
        The stream all cells are played on.
    seed : int
        The seed of all cells.
    cells : tuple of Cell
        At least one cell, in the order to play them.
    """

    stream: Spec
    seed: int
    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        if not self.cells:
            raise ValueError(f"a batch needs at least one cell, got none for {self.stream.label}, seed {self.seed}")
        for cell in self.cells:
            if (cell.stream, cell.seed) != (self.stream, self.seed):
                raise ValueError(f"{cell.label} cannot be in the batch of {self.stream.label}, seed {self.seed}")


def grid(streams: Iterable[Spec], players: Iterable[Spec], seeds: Iterable[int], version: str) -> list[Cell]:
    """Return every player on every stream with every seed: streams outermost, then seeds, then players."""
    players, seeds = list(players), list(seeds)
    return [Cell(stream, player, seed, version) for stream in streams for seed in seeds for player in players]


def batches(cells: Iterable[Cell]) -> list[Batch]:
    """Group cells by stream and seed; batches and the cells in them keep the order of first appearance."""
    # A dict keeps the order of first appearance, so that the same cells are always played in the same order.
    groups: dict[tuple[Spec, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.stream, cell.seed), []).append(cell)
    return [Batch(stream, seed, tuple(members)) for (stream, seed), members in groups.items()]


def _canonical_json(value: JSON) -> str:
    """Sorted names, no spaces, ASCII only, floats by repr: equal values give equal text on every machine."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_canonical_json(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical_json, value)) + "]"
    if isinstance(value, float) and math.isinf(value):
        # JSON has no infinity, but this number overflows and is read back as one.
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, allow_nan=False)


def _as_python(value: JSON) -> str:
    """Return a value as Python writes it; objects and functions by name, not as `onebit.typed_json` describes them."""
    kind, held = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
    if kind == "made" and isinstance(held, list) and isinstance(held[1], list):
        given = ", ".join(f"{pair[0]}={_as_python(pair[1])}" for pair in held[1] if isinstance(pair, list))
        return f"{str(held[0]).rpartition(':')[2]}({given})"
    return str(held).rpartition(":")[2] if kind == "import" else repr(value)


def _require_type(what: str, value: object, kind: type) -> None:
    # Exactly this type: NumPy's float64 and str_ are subclasses, bool is an int, and JSON would change all three.
    if type(value) is not kind:
        raise TypeError(f"{what} must be a plain {kind.__name__}, got {value!r} of type {type(value).__name__}")


def _require_exact_json(where: str, value: object) -> None:
    if type(value) is list:
        for position, item in enumerate(value):
            _require_exact_json(f"{where}, item {position}", item)
    elif type(value) is dict:
        for name, item in value.items():
            _require_type(f"{where}, the name of an item", name, str)
            _require_exact_json(f"{where}, item {name!r}", item)
    elif type(value) is float and math.isnan(value):
        raise ValueError(f"{where} is nan, which is not equal to itself; use a number, or None")
    elif value is not None and type(value) not in (bool, int, float, str):
        raise TypeError(
            f"{where} is {value!r} of type {type(value).__name__}, which does not survive JSON exactly; "
            "use None, bool, int, float, str, list or dict (for NumPy values: .item() or .tolist())"
        )
