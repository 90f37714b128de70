"""Learn a K-way classifier when the only answer you ever get is "right" or "wrong".

>>> import onebit
>>> learner = onebit.BanditPerceptron(classes=["billing", "delivery", "refund"])
>>> guess = learner.guess([0.3, 0.1])
>>> learner.tell(guess, correct=False)
"""

from importlib.metadata import version

from onebit import kernels, streams
from onebit.learners import (
    AdaptiveSurrogate,
    BanditHalving,
    BanditPerceptron,
    Banditron,
    BanditSVM,
    ConservativePassiveAggressive,
    FullInformationSVM,
    Gaptron,
    Learner,
    Majority,
    MulticlassPerceptron,
    NearestNeighbor,
    UniformGuess,
    Wrapped,
    load,
)
from onebit.play import play
from onebit.rounds import Guess, Trace

__version__ = version("onebit")

__all__ = [
    "AdaptiveSurrogate",
    "BanditHalving",
    "BanditPerceptron",
    "BanditSVM",
    "Banditron",
    "ConservativePassiveAggressive",
    "FullInformationSVM",
    "Gaptron",
    "Guess",
    "Learner",
    "Majority",
    "MulticlassPerceptron",
    "NearestNeighbor",
    "Trace",
    "UniformGuess",
    "Wrapped",
    "kernels",
    "load",
    "play",
    "streams",
]
