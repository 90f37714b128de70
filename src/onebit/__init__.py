"""Learn a K-way classifier when the only answer you ever get is "right" or "wrong".

>>> import onebit
>>> learner = onebit.BanditPerceptron(classes=["billing", "delivery", "refund"])
>>> guess = learner.guess([0.3, 0.1])
>>> learner.tell(guess, correct=False)
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onebit import kernels, streams
    from onebit.decider.client import Client
    from onebit.decider.decider import Decider
    from onebit.game import Guess
    from onebit.learners import *
    from onebit.playing import Trace, play

__version__ = version("onebit")

__all__ = [
    "SOBA",
    "AdaptiveSurrogate",
    "BanditHalving",
    "BanditPerceptron",
    "BanditSVM",
    "Banditron",
    "Client",
    "Confidit",
    "ConservativePassiveAggressive",
    "Decider",
    "EpsilonGreedy",
    "ExploreFirst",
    "FullInformationLogistic",
    "FullInformationPassiveAggressive",
    "FullInformationRidge",
    "FullInformationSVM",
    "Gaptron",
    "Guess",
    "Learner",
    "LinUCB",
    "Majority",
    "MulticlassPerceptron",
    "NearestNeighbor",
    "PNewtron",
    "RegCB",
    "SquareCB",
    "ThompsonSampling",
    "Trace",
    "UniformGuess",
    "Wrapped",
    "kernels",
    "load",
    "play",
    "streams",
]

_HOMES = {"Client": "decider.client", "Decider": "decider.decider", "Guess": "game"}
_HOMES |= dict.fromkeys(("Trace", "play"), "playing")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: compiled learners take a second to import."""
    if name not in __all__:
        from onebit.import_paths import did_you_mean

        raise AttributeError(f"module 'onebit' has no attribute {name!r}{did_you_mean(name, __all__)}")
    if name in ("kernels", "streams"):
        return import_module(f"onebit.{name}")
    found = getattr(import_module(f"onebit.{_HOMES.get(name, 'learners')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
