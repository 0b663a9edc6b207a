"""Which orders of waiting for queues deadlock: the search, the rule, and the counts in the docs agree."""

from __future__ import annotations

from math import factorial

import pytest

from procession.specs.explore import Verdict
from procession.specs.variants.order import OPENS, all_orders, deadlocks, study, trial
from procession.specs.variants.variant import judged


@pytest.mark.parametrize(
    ("ranks", "late", "deadlock", "total"),
    [(1, False, 1, 4), (2, False, 10, 24), (1, True, 2, 4), (2, True, 18, 24)],
)
def test_the_search_finds_what_the_rule_says(ranks: int, late: bool, deadlock: int, total: int) -> None:
    found = study(ranks, late=late)
    assert (len(found.deadlock), found.total) == (deadlock, total)
    assert all(deadlocks(orders) for orders in found.deadlock)
    assert not any(deadlocks(orders) for orders in found.open)


@pytest.mark.slow
@pytest.mark.parametrize(("late", "deadlock"), [(False, 102), (True, 168)])
def test_three_ranks(late: bool, deadlock: int) -> None:
    found = study(3, late=late)
    assert (len(found.deadlock), found.total) == (deadlock, 192)
    assert set(found.deadlock) == {orders for orders in all_orders(3, late=late) if deadlocks(orders)}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_counts_in_closed_form(ranks: int) -> None:
    orders = list(all_orders(ranks))
    assert len(orders) == factorial(ranks + 1) * 2**ranks
    early = factorial(ranks) * (2 ** (ranks + 1) - 1)
    assert sum(not deadlocks(one) for one in orders) == early
    assert sum(not deadlocks(one) for one in all_orders(ranks, late=True)) == factorial(ranks + 1)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_waiting_for_everything_at_once_never_deadlocks(ranks: int) -> None:
    assert judged(trial(ranks, None), OPENS).verdict is Verdict.HOLDS
