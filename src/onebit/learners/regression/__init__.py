"""Learners that regress "right" or "wrong" on the features, one regression for every class.

`ridge` has the regressions; `exploring` turns predictions into propensities, `winning` does so for Thompson sampling;
`state` is the one algorithm that all share, so that it is compiled once; `learner` is the base class. Each learner has
its own file.
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
