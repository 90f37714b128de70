"""How much memory is allowed, and how several share it."""

import pytest

from onebit.machine_memory import Budget, MemoryBudgetError, claim_memory, memory, no_more_than


def test_less_memory_inside_less_memory() -> None:
    with no_more_than(1000), no_more_than(5000):
        assert memory() == 1000


def test_what_is_claimed_is_shared_and_what_is_settled_is_free_again() -> None:
    budget = Budget(10.0, "take less")

    def claim(name: str, n_bytes: float, more: bool = False) -> bool:
        try:
            with budget.shared_by(name):
                claim_memory(n_bytes, more=more)
        except MemoryBudgetError:
            return False
        return True

    assert claim("a", 6.0)
    assert claim("a", 10.0), "in all: it makes anew what it has"
    budget.settle("a", 6.0)
    assert not claim("b", 5.0)
    assert claim("b", 3.0)
    assert not claim("b", 2.0, more=True)
    budget.settle("a", 0.0)
    assert claim("b", 2.0, more=True)
    with pytest.raises(MemoryBudgetError, match=r"a needs 0\.301 GiB of memory, and 0\.3 GiB of 0\.3 GiB are left"):
        Budget(0.3 * 2**30, "take less").claim("a", 0.3 * 2**30 + 1)
    claim_memory(1e9)  # no budget is shared here
    assert list(budget._taken) == ["b"], "names do not pile up"
