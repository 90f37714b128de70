"""Cells (a player on a stream with a seed), each identified by a hash of all that defines it."""

import hashlib
import json
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
        try:
            # Through JSON and back: a private copy, equal to what is read from a store.
            text = _canonical({"name": self.name, "settings": dict(self.settings)})
            kept = json.loads(text)["settings"]
        except TypeError:
            kept = None
        if kept != dict(self.settings):
            raise ValueError(
                f"settings of {self.name} must survive JSON exactly: None, bool, int, float other than nan, str, list "
                f"or dict (for NumPy values: .item() or .tolist()); got {dict(self.settings)!r}"
            )
        object.__setattr__(self, "settings", kept)
        object.__setattr__(self, "canonical", text)

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
    """What the play function needs to make the stream, such as the path of its file; no part of the key."""

    @cached_property
    def canonical(self) -> str:
        """The one JSON text of this cell, which its key is the hash of."""
        seed, version = json.dumps(self.seed), json.dumps(self.version)
        texts = f'"player":{self.player.canonical},"seed":{seed},"stream":{self.stream.canonical},"version":{version}'
        return f"{{{texts}}}"

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    @property
    def label(self) -> str:
        """A readable name of the cell."""
        return f"{self.stream.label} × {self.player.label}, seed {self.seed}"


def grid(streams: Iterable[Spec], players: Iterable[Spec], seeds: Iterable[int], version: str) -> list[Cell]:
    """Return every player on every stream with every seed: streams outermost, then seeds, then players."""
    players, seeds = list(players), list(seeds)
    return [Cell(stream, player, seed, version) for stream in streams for seed in seeds for player in players]


def _canonical(value: Any) -> str:
    """Return the one JSON text: names sorted, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _as_python(value: JSON) -> str:
    """Return a value as Python writes it; objects and functions by name, not as `onebit.typed_json` describes them."""
    kind, held = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
    if kind == "made" and isinstance(held, list) and isinstance(held[1], list):
        given = ", ".join(f"{pair[0]}={_as_python(pair[1])}" for pair in held[1] if isinstance(pair, list))
        return f"{str(held[0]).rpartition(':')[2]}({given})"
    if kind == "float":
        return str(held)
    return str(held).rpartition(":")[2] if kind == "import" else repr(value)
