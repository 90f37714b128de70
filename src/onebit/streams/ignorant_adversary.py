"""Algorithm 5 of the paper: the adversary of learners that ignore the examples they err on."""

import math
from typing import ClassVar

import numpy as np

from onebit.bounds import BOUNDS
from onebit.inputs import Floats
from onebit.streams.adaptive import LearnerView
from onebit.streams.hard_sequence import Challenge, HardSequence
from onebit.streams.packing import Packing

# The labels of the two phases.
_FIRST, _SECOND = 0, 1


class IgnorantAdversary:
    """Shows direction after direction as label 0 until the learner is nearly sure of it, then insists on label 1.

    Phase 1: while the learner guesses label 1 with a probability above q₀ = 1/√T, the next direction has label 0; each
    such round costs more than q₀ mistakes. Phase 2: as soon as the probability is at most q₀, that direction has label
    1, now and for the rest of the T rounds; a learner that does not change after a mistake errs until the q₀ comes up.
    With a single direction (T = 1) it takes the less likely label. It is an `AdaptiveStream`, made for one game.

    Parameters
    ----------
    packing : Packing
        From `pack_directions`; T is the number of its directions.

    Guarantee
    ---------
    Ignorant learners make at least (1/10)(1/(160γ))^((d−2)/4) expected mistakes (Theorem 24; √T/10 with T directions of
    a larger packing). The same adversary forces (√T−1)(1−(1−1/√T)^T): what the proof sums up is concave in the round in
    which phase 2 starts, so it is smallest for the first or the last. Some ignorant learner makes no more.

    Examples
    --------
    >>> import onebit
    >>> from onebit.streams.adversaries import IgnorantAdversary, pack_directions
    >>> adversary = IgnorantAdversary(pack_directions(margin=0.001, n_features=8))
    >>> onebit.play(onebit.NearestNeighbor(radius=0.001), adversary, seed=1).mistakes
    130
    >>> hard = adversary.played()
    >>> hard.X.shape, hard.proved_margin() >= 0.001
    ((244, 8), True)

    References
    ----------
    Beygelzimer et al. (2019). ICML. Algorithm 5, Theorem 24.
    """

    classes: ClassVar[int] = 2

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        self.n_features = packing.n_features
        self.challenge = _challenge(packing)
        self._shown: list[int] = []
        self._labels: list[int] = []
        self._turned: int | None = None

    def next(self, learner: LearnerView) -> tuple[Floats, int] | None:
        """Return the next features and their label, or None after T rounds."""
        t, T = len(self._shown), len(self.packing)
        if t == T:
            return None
        # In phase 2 it need not ask the learner any more: an ignorant learner does not change.
        if self._turned is None:
            chances = learner.probabilities(self.packing.v[t])
            if len(chances) != self.classes:
                raise ValueError(f"learner must have two classes against this adversary; got {len(chances)}")
            if _is_turn(float(chances[_FIRST]), float(chances[_SECOND]), T):
                self._turned = t
        shown = t if self._turned is None else self._turned
        self._shown.append(shown)
        self._labels.append(_FIRST if self._turned is None else _SECOND)
        return self.packing.v[shown], self._labels[-1]

    def played(self) -> HardSequence:
        """Return the examples shown so far, with vectors that separate them.

        Phase 2 makes u of its direction the normal: w = ∓u/2. If it never started, there is one label, and w = ±e_d/√2.
        """
        if not self._shown:
            raise ValueError("played has nothing to return before the first round; play the adversary first")
        if self._turned is None:
            normal = np.zeros(self.n_features)
            normal[-1] = -math.sqrt(0.5)
        else:
            normal = self.packing.u[self._turned] / 2.0
        return HardSequence(
            self.challenge, self.packing.v[self._shown], np.array(self._labels), np.array([-normal, normal])
        )


def _is_turn(first: float, second: float, T: int) -> bool:
    """Return whether phase 2 starts here."""
    # q₀ = 1/√T would be 1, and the proof's 1 − q₀ nothing; the less likely label costs half a mistake.
    if T == 1:
        return second < first
    return first >= 1.0 - 1.0 / math.sqrt(T)


def _challenge(packing: Packing) -> Challenge:
    T, gamma, d = len(packing), packing.margin, packing.n_features
    # Only all of Lemma 25's directions give the theorem's number; with fewer, their own number takes its place.
    whole = BOUNDS["24"].claim(margin=gamma, dimension=d)
    stated = whole if packing.is_complete else BOUNDS["24-directions"].claim(directions=T)
    forced = BOUNDS["24-directions-sharp"].claim(directions=T)
    return Challenge("Theorem 24", "strong", 2, d, T, 1.0, gamma, stated, forced)
