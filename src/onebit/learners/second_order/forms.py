"""Both forms of the memory by name."""

from typing import Any

from onebit.inputs import check_switch
from onebit.learners.second_order.diagonal import DiagonalMemory
from onebit.learners.second_order.full import FullMemory
from onebit.learners.second_order.joint import JointMemory, JointRule, JointSettings


def joint_memory(
    rule: JointRule, settings: JointSettings, diagonal: Any, n_features: int, n_classes: int
) -> JointMemory:
    """Return an empty memory: the diagonal, or the whole matrix."""
    form = DiagonalMemory if check_switch("diagonal", diagonal) else FullMemory
    return form(rule, settings, n_features, n_classes)
