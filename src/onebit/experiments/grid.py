"""Cells (a player on a stream with a seed), each identified by a hash of all that defines it."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""Values of settings: anything JSON can represent."""


@dataclass(frozen=True)
class Spec:
    """A stream or a player by name, with its settings.

    Settings are copied and sorted by name. Two specs are equal when their canonical JSON is:
    ``1`` and ``1.0`` are different settings, the order in which settings are given does not matter.

    Examples
    --------
    >>> Spec("Banditron", {"exploration": 0.02}).label
    'Banditron(exploration=0.02)'
    """

    name: str = field(compare=False)
    settings: Mapping[str, JSON] = field(default_factory=dict, compare=False)
    """Only what survives JSON exactly: None, bool, int, float other than NaN, str, and lists and dicts of these."""
    shown: str = field(default="", compare=False)
    """The name in messages, if that is to be another; it identifies nothing."""
    canonical: str = field(init=False, repr=False)
    """The one JSON text of this spec."""

    def __post_init__(self) -> None:
        _require_type("name", self.name, str)
        for setting in self.settings:
            _require_type(f"the name of a setting of {self.name}", setting, str)
        named = self.settings.items()
        text = _object({name: _exact(f"setting {name!r} of {self.name}", value) for name, value in named})
        # Through JSON and back: a private copy, equal to what is read from a store.
        object.__setattr__(self, "settings", json.loads(text))
        object.__setattr__(self, "canonical", _object({"name": json.dumps(self.name), "settings": text}))

    @property
    def label(self) -> str:
        """The spec as one would write it in Python."""
        name = self.shown or self.name
        given = ", ".join(f"{setting}={_as_python(value)}" for setting, value in self.settings.items())
        return f"{name}({given})" if given else name


@dataclass(frozen=True)
class Cell:
    """One player on one stream with one seed, under one version of the code.

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
    """Anything else that the result depends on; another version is another key."""
    source: Any = field(default=None, compare=False, repr=False)
    """What `play_batch` needs to make the stream, such as the path of its file; no part of the key."""

    def __post_init__(self) -> None:
        _require_type("seed", self.seed, int)
        _require_type("version", self.version, str)

    @cached_property
    def canonical(self) -> str:
        """The one JSON text of this cell, which its key is the hash of."""
        texts = {"player": self.player.canonical, "seed": json.dumps(self.seed), "stream": self.stream.canonical}
        return _object({**texts, "version": json.dumps(self.version)})

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
    """The cells that share a stream and a seed, so that the stream is generated only once."""

    stream: Spec
    seed: int
    cells: tuple[Cell, ...]
    """At least one cell, in the order to play them."""

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
    groups: dict[tuple[Spec, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.stream, cell.seed), []).append(cell)
    return [Batch(stream, seed, tuple(members)) for (stream, seed), members in groups.items()]


def _object(texts: Mapping[str, str]) -> str:
    """Return the JSON object of JSON texts: names sorted, no spaces, ASCII only."""
    return "{" + ",".join(f"{json.dumps(name)}:{texts[name]}" for name in sorted(texts)) + "}"


def _exact(where: str, value: object) -> str:
    """Return the one JSON text of a value, or raise for one that would not come back as it is."""
    if type(value) is list:
        return "[" + ",".join(_exact(f"{where}, item {at}", item) for at, item in enumerate(value)) + "]"
    if type(value) is dict:
        for name in value:
            _require_type(f"{where}, the name of an item", name, str)
        return _object({name: _exact(f"{where}, item {name!r}", item) for name, item in value.items()})
    if type(value) is float and math.isnan(value):
        raise ValueError(f"{where} is nan, which is not equal to itself; use a number, or None")
    if type(value) is float and math.isinf(value):
        # JSON has no infinity, but this number overflows and is read back as one.
        return "1e999" if value > 0 else "-1e999"
    if value is not None and type(value) not in (bool, int, float, str):
        raise TypeError(
            f"{where} is {value!r} of type {type(value).__name__}, which does not survive JSON exactly; "
            "use None, bool, int, float, str, list or dict (for NumPy values: .item() or .tolist())"
        )
    return json.dumps(value)


def _as_python(value: JSON) -> str:
    """Return a value as Python writes it; objects and functions by name, not as `onebit.typed_json` describes them."""
    kind, held = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
    if kind == "made" and isinstance(held, list) and isinstance(held[1], list):
        given = ", ".join(f"{pair[0]}={_as_python(pair[1])}" for pair in held[1] if isinstance(pair, list))
        return f"{str(held[0]).rpartition(':')[2]}({given})"
    if kind == "float":
        return str(held)
    return str(held).rpartition(":")[2] if kind == "import" else repr(value)


def _require_type(what: str, value: object, kind: type) -> None:
    # Exactly this type: NumPy's float64 and str_ are subclasses, bool is an int, and JSON would change all three.
    if type(value) is not kind:
        raise TypeError(f"{what} must be a plain {kind.__name__}, got {value!r} of type {type(value).__name__}")
