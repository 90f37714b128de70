"""Rules: their names, and arrays of their own."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from onebit.learners.perceptrons import _FIRST, _HIGHEST
from onebit.spaces.linear import LinearSpace


def test_a_rule_is_saved_under_its_own_name_only() -> None:
    mixed = _HIGHEST._replace(guess=_FIRST.guess)
    for lost in (mixed, _HIGHEST._replace(home="no:X"), _HIGHEST._replace(home=""), _FIRST._replace(home="onebit:x")):
        with pytest.raises(ValueError, match="cannot be saved"):
            pickle.dumps(LinearSpace(lost, (), 3, 2))
        twin: Any = copy.deepcopy(LinearSpace(lost, (), 3, 2))
        assert twin.rule is lost
    assert pickle.loads(pickle.dumps(_HIGHEST)) is _HIGHEST


def test_a_strangers_rule_may_make_arrays() -> None:
    from onebit.engine.jit import jit_inline

    @jit_inline
    def guess(scores: Any, draw: Any, settings: Any) -> Any:
        return np.argmax(np.exp(scores - scores.max())), False

    space = LinearSpace(_HIGHEST._replace(guess=guess), (), 3, 4)
    assert space.guess(np.ones((1, 3)), 0, 0)[0] == 0
