"""The learners, one file each. `all_learners` lists them."""

from onebit.learners.adaptive_surrogate import AdaptiveSurrogate
from onebit.learners.bandit_halving import BanditHalving
from onebit.learners.bandit_perceptron import BanditPerceptron
from onebit.learners.bandit_svm import BanditSVM
from onebit.learners.banditron import Banditron
from onebit.learners.base import Learner
from onebit.learners.confidit import Confidit
from onebit.learners.conservative_passive_aggressive import ConservativePassiveAggressive
from onebit.learners.epsilon_greedy import EpsilonGreedy
from onebit.learners.explore_first import ExploreFirst
from onebit.learners.full_information_logistic import FullInformationLogistic
from onebit.learners.full_information_passive_aggressive import FullInformationPassiveAggressive
from onebit.learners.full_information_ridge import FullInformationRidge
from onebit.learners.full_information_svm import FullInformationSVM
from onebit.learners.gaptron import Gaptron
from onebit.learners.lin_ucb import LinUCB
from onebit.learners.majority import Majority
from onebit.learners.multiclass_perceptron import MulticlassPerceptron
from onebit.learners.nearest_neighbor import NearestNeighbor
from onebit.learners.p_newtron import PNewtron
from onebit.learners.reg_cb import RegCB
from onebit.learners.saving import load
from onebit.learners.soba import SOBA
from onebit.learners.square_cb import SquareCB
from onebit.learners.thompson_sampling import ThompsonSampling
from onebit.learners.uniform_guess import UniformGuess
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
