"""The built-in handshake has the state counts that Murphi's rumur and a prototype found for the same rules."""

from __future__ import annotations

import pytest

from procession.specs.explore import Verdict, check, no_deadlock
from procession.specs.explore.bench import Handshake, properties


@pytest.mark.parametrize(
    ("workers", "crashes", "states", "transitions"),
    [(3, 1, 413, 934), (5, 2, 10_187, 38_893), (6, 2, 42_239, 190_320)],
)
def test_state_counts_equal_those_of_other_engines(
    workers: int, crashes: int, states: int, transitions: int
) -> None:
    report = check(Handshake(workers, crashes), properties(crashes))
    assert (report.states, report.transitions) == (states, transitions)
    assert report.verdict is Verdict.HOLDS


def test_a_blind_executor_deadlocks() -> None:
    outcome = check(Handshake(3, 1, blind=True), [no_deadlock()])["no deadlock"]
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert [s.label.action for s in outcome.counterexample.stem if not s.label.fair] == ["crash"]
