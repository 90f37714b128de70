"""Learn a K-way classifier when the only answer you ever get is "right" or "wrong".

>>> import onebit
>>> learner = onebit.BanditPerceptron(classes=["billing", "delivery", "refund"])
>>> guess = learner.guess([0.3, 0.1])
>>> learner.tell(guess, correct=False)
"""

from importlib.metadata import version

from onebit import kernels, streams
from onebit.decider.client import Client
from onebit.decider.decider import Decider
from onebit.game import Guess, Trace
from onebit.learners import (
    SOBA,
    AdaptiveSurrogate,
    BanditHalving,
    BanditPerceptron,
    Banditron,
    BanditSVM,
    Confidit,
    ConservativePassiveAggressive,
    EpsilonGreedy,
    ExploreFirst,
    FullInformationLogistic,
    FullInformationPassiveAggressive,
    FullInformationRidge,
    FullInformationSVM,
    Gaptron,
    Learner,
    LinUCB,
    Majority,
    MulticlassPerceptron,
    NearestNeighbor,
    PNewtron,
    RegCB,
    SquareCB,
    ThompsonSampling,
    UniformGuess,
    Wrapped,
    load,
)
from onebit.play import play

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
