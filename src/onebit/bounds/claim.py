"""What a theorem says, as one record: learners promise claims, adversaries force them, data sets are told them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

About = Literal["updates", "mistakes", "expected mistakes", "strong margin"]
Side = Literal["upper", "lower"]


@dataclass(frozen=True)
class Claim:
    """What one theorem says for given numbers; made by an entry of `BOUNDS`.

    Examples
    --------
    >>> claim = Claim("2", "expected mistakes", "upper", "Algorithm 1", 800, 9.64)
    >>> claim.subject, claim.value
    ('expected mistakes of Algorithm 1', 800)
    """

    theorem: str
    """Its name in `BOUNDS`: "2", "3-remark", "21-sharp"."""
    about: About
    """What it bounds. Updates and mistakes are those of every run, expected mistakes the mean over random numbers."""
    side: Side
    """"upper" if it is at most the value, "lower" if it is at least the value."""
    binds: str
    """Whose updates, mistakes or margin these are."""
    value: float | None
    """The number; None if the theorem is silent or the number is beyond a float."""
    log2: float | None
    """Its base-2 logarithm; None if the theorem is silent or the number is 0."""
    silent_because: str = ""
    """Why the theorem says nothing."""

    @property
    def subject(self) -> str:
        """What the number bounds, and whose it is."""
        return f"{self.about} {'after' if self.about == 'strong margin' else 'of'} {self.binds}"

    def as_dict(self) -> dict[str, Any]:
        """Return what a table or a JSON document shows of it."""
        numbers = {"value": self.value, "log2": self.log2, "silent_because": self.silent_because}
        return {"theorem": self.theorem, "about": self.subject, **numbers}


def at_most(claims: Iterable[Claim], about: About) -> float:
    """Return the smallest number that claims allow for `about`; infinity if none of them speaks of it.

    Examples
    --------
    >>> always = Claim("10", "mistakes", "upper", "the Multiclass Perceptron", 200, 7.6)
    >>> at_most([always], "expected mistakes"), at_most([always], "updates")
    (200, inf)
    """
    # What holds in every run holds on average.
    kinds = {about, "mistakes"} if about == "expected mistakes" else {about}
    spoken = [claim.value for claim in claims if claim.side == "upper" and claim.about in kinds]
    return min((value for value in spoken if value is not None), default=math.inf)
