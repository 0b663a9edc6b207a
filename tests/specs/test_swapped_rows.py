"""The table that is checked is the table that runs: swap two rows, and the checker convicts it."""

from __future__ import annotations

from procession.protocol.core.lint import faults
from procession.protocol.futures import CALL
from procession.specs.models import MODELS
from procession.specs.mutants import convicted

from .swapped import SWAPPED_CALL, SWAPPED_EXECUTOR


def test_only_two_rows_differ() -> None:
    different = [a["trigger"].value for a, b in zip(CALL.rows, SWAPPED_CALL.rows, strict=True) if a != b]
    assert different == ["all_replied", "rank_raised"]
    assert SWAPPED_EXECUTOR.call.aggregate is SWAPPED_CALL


def test_lint_lets_it_pass() -> None:
    """It is well formed: nothing but the search can tell."""
    assert faults(SWAPPED_CALL) == []


def test_the_checker_convicts_it() -> None:
    conviction = convicted(MODELS["ahead"], executor=SWAPPED_EXECUTOR)
    assert conviction is not None
    assert "a result is every rank's" in conviction.properties
    assert "a rank's failure fails its call" in conviction.properties
    run = conviction.report["a result is every rank's"].counterexample
    assert run is not None
    # One call, one rank that runs it, the drainer that gets a failure: as short as it can be.
    actions = [step.label.action for step in run.steps]
    assert actions[0] == "submits call 1"
    assert len(actions) <= 6
    assert run.steps[-1].label.actor == "caller 0"
    assert "call RESOLVED" in run.steps[-1].label.note
    assert "sequenceDiagram" in run.to_mermaid()
