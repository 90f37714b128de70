"""Chooses between the two forms of the state."""

from typing import Any

from onebit.inputs import check_switch
from onebit.learners.second_order.diagonal import DiagonalState
from onebit.learners.second_order.full import FullState
from onebit.learners.second_order.joint import JointRule, JointSettings, JointState


def joint_state(rule: JointRule, settings: JointSettings, diagonal: Any, n_features: int, n_classes: int) -> JointState:
    """Return an empty state: the diagonal, or the whole matrix."""
    form = DiagonalState if check_switch("diagonal", diagonal) else FullState
    return form(rule, settings, n_features, n_classes)
