"""The learners, one file for each or for a family. `all_learners` lists them."""

from onebit.learners.bandit_halving import BanditHalving
from onebit.learners.bandit_svm import BanditSVM, FullInformationSVM
from onebit.learners.base import Learner
from onebit.learners.baselines import Majority, UniformGuess
from onebit.learners.gradient import AdaptiveSurrogate, FullInformationLogistic, Gaptron
from onebit.learners.linear_bandits import (
    Confidit,
    EpsilonGreedy,
    ExploreFirst,
    FullInformationRidge,
    LinUCB,
    RegCB,
    SquareCB,
)
from onebit.learners.nearest_neighbor import NearestNeighbor
from onebit.learners.passive_aggressive import ConservativePassiveAggressive, FullInformationPassiveAggressive
from onebit.learners.perceptrons import BanditPerceptron, Banditron, MulticlassPerceptron
from onebit.learners.saving import load
from onebit.learners.second_order_bandits import SOBA, PNewtron
from onebit.learners.thompson_sampling import ThompsonSampling
from onebit.learners.wrapped import Wrapped

__all__ = [
    "SOBA",
    "AdaptiveSurrogate",
    "BanditHalving",
    "BanditPerceptron",
    "BanditSVM",
    "Banditron",
    "Confidit",
    "ConservativePassiveAggressive",
    "EpsilonGreedy",
    "ExploreFirst",
    "FullInformationLogistic",
    "FullInformationPassiveAggressive",
    "FullInformationRidge",
    "FullInformationSVM",
    "Gaptron",
    "Learner",
    "LinUCB",
    "Majority",
    "MulticlassPerceptron",
    "NearestNeighbor",
    "PNewtron",
    "RegCB",
    "SquareCB",
    "ThompsonSampling",
    "UniformGuess",
    "Wrapped",
    "load",
]


def all_learners() -> list[type[Learner]]:
    """Return every learner class exported here, by name."""
    found = (globals()[name] for name in __all__)
    learners = [each for each in found if isinstance(each, type) and each is not Learner]
    return sorted(learners, key=lambda cls: cls.__name__)
