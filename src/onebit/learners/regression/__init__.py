"""Learners that regress "right" or "wrong" on the features, one regression for every class.

The map: `ridge` is the regressions; `exploring` turns what they predict into chances, `winning` does so for Thompson
sampling; `state` puts them into the one game that all play, so that they are compiled once; `learner` is what the
classes share. Then one file for each.
"""

from onebit.learners.regression.confidit import Confidit
from onebit.learners.regression.epsilon_greedy import EpsilonGreedy
from onebit.learners.regression.explore_first import ExploreFirst
from onebit.learners.regression.full_information_ridge import FullInformationRidge
from onebit.learners.regression.lin_ucb import LinUCB
from onebit.learners.regression.reg_cb import RegCB
from onebit.learners.regression.square_cb import SquareCB
from onebit.learners.regression.thompson_sampling import ThompsonSampling

__all__ = [
    "Confidit",
    "EpsilonGreedy",
    "ExploreFirst",
    "FullInformationRidge",
    "LinUCB",
    "RegCB",
    "SquareCB",
    "ThompsonSampling",
]
