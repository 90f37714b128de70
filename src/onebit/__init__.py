"""Learn a K-way classifier when the only answer you ever get is "right" or "wrong".

>>> import onebit
>>> learner = onebit.BanditPerceptron(classes=["billing", "delivery", "refund"])
>>> guess = learner.guess([0.3, 0.1])
>>> learner.tell(guess, correct=False)
"""

from importlib.metadata import version

from onebit import kernels, streams
from onebit.learners import (
    SOBA,
    BanditPerceptron,
    Banditron,
    BanditSVM,
    FullInformationSVM,
    Learner,
    MulticlassPerceptron,
    NearestNeighbor,
    PNewtron,
    UniformGuess,
    load,
)
from onebit.play import play
from onebit.rounds import Guess, Trace

__version__ = version("onebit")

__all__ = [
    "SOBA",
    "BanditPerceptron",
    "BanditSVM",
    "Banditron",
    "FullInformationSVM",
    "Guess",
    "Learner",
    "MulticlassPerceptron",
    "NearestNeighbor",
    "PNewtron",
    "Trace",
    "UniformGuess",
    "kernels",
    "load",
    "play",
    "streams",
]
