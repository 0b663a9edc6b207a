"""Three engines on the same tables: they convict what is broken alike, and agree on what is right.

That they agree on the shipped models is for `procession agree`, which .ci/run calls.
"""

from __future__ import annotations

import copy
import dataclasses
import shutil
from collections.abc import Iterable

import pytest

from procession.protocol.core import Effect, Event, State, Table
from procession.protocol.core.table import Row, compiled
from procession.protocol.executor import ExecutorProtocol
from procession.protocol.futures import CALLER, FuturesDo
from procession.protocol.ready import RANK_START, RankStart, RankStartOn
from procession.protocol.worker import AGENDA, WorkerProtocol
from procession.specs.explore import Property, Verdict, never
from procession.specs.export import agree
from procession.specs.export.agree import Comparison, compare
from procession.specs.export.asked import asked
from procession.specs.export.engines import Counted, Deadline, Silent, missing, spin
from procession.specs.export.murphi import RESTS
from procession.specs.export.program import exported
from procession.specs.models import MODELS, Model
from procession.specs.world import Budgets, Now

needs_tools = pytest.mark.skipif(
    bool(missing(("rumur", "spin", "gcc"))),
    reason=f"not established: {', '.join(missing(('rumur', 'spin', 'gcc')))} not installed",
)


def broken(table: Table, rows: Iterable[Row]) -> Table:
    """The table with other rows, without lint: a mutant."""
    made = copy.copy(table)
    object.__setattr__(made, "rows", tuple(rows))
    object.__setattr__(made, "alternatives", compiled(made.rows))
    return made


def without_exit(table: Table, trigger: Event, source: State) -> Table:
    """The table in which `source` has no row for `trigger`."""
    rows: list[Row] = []
    for row in table.rows:
        if row["trigger"] is trigger and source in row["source"]:
            row = {**row, "source": [state for state in row["source"] if state is not source]}
        rows.append(row)
    return broken(table, rows)


def without_effect(table: Table, effect: Effect) -> Table:
    """The table whose rows never have `effect`."""
    rows: list[Row] = [
        {**row, "after": [one for one in row["after"] if one is not effect]} for row in table.rows
    ]
    return broken(table, rows)


def agreed(comparison: Comparison) -> dict[str, Verdict]:
    """The verdicts, once it is certain that all engines give them."""
    assert comparison.differences == ()
    assert comparison.gaps == ()
    assert comparison.verdict is Verdict.HOLDS
    assert comparison.ours is not None
    ours = {outcome.name: outcome.verdict for outcome in comparison.ours.outcomes}
    theirs: dict[str, Verdict] = {}
    for finding in comparison.findings:
        assert finding.states in (None, comparison.ours.states)
        theirs.update(finding.verdicts)
    assert theirs == ours
    return ours


def convicted(comparison: Comparison) -> set[str]:
    return {name for name, verdict in agreed(comparison).items() if verdict is Verdict.VIOLATED}


@needs_tools
@pytest.mark.slow
def test_a_rank_without_its_death_exit_is_convicted_by_all() -> None:
    mutant = ExecutorProtocol().but(without_exit(RANK_START, RankStartOn.DIED, RankStart.SPAWNED))
    assert "no illegal event" in convicted(compare(MODELS["ready"], 1, executor=mutant))


@needs_tools
@pytest.mark.slow
def test_a_drainer_that_wakes_nobody_is_convicted_by_all() -> None:
    """A violation of liveness: spin's cycle, under its own notion of weak fairness."""
    mutant = ExecutorProtocol().but(without_effect(CALLER, FuturesDo.WAKE_PARKED))
    found = convicted(compare(MODELS["futures"], 1, executor=mutant))
    assert "nobody is left parked" in found


@needs_tools
@pytest.mark.slow
def test_a_deadlock_is_a_deadlock_to_all() -> None:
    """The trap: with a formula in the file spin sees no deadlock. It is rumur that is asked, and by our rules."""
    mutant = dataclasses.replace(WorkerProtocol(), agenda=AGENDA[1:])  # nobody joins the broadcast queue
    quiet = dataclasses.replace(MODELS["queues"], budgets=Budgets())
    found = convicted(compare(quiet, 1, worker=mutant))
    assert {"no deadlock", "no stall", "the queues open or the start ends"} <= found


# --- what is not established ------------------------------------------------------------------------------------------


def test_a_missing_tool_is_not_established(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    comparison = compare(MODELS["queues"], 1)
    assert comparison.verdict is Verdict.NOT_ESTABLISHED
    assert [one.silent.split(" (")[0] for one in comparison.findings] == [
        "rumur and gcc not installed",
        "spin and gcc not installed",
    ]
    assert comparison.to_json()["verdict"] == "not established"


@needs_tools
def test_a_tool_out_of_time_is_not_established() -> None:
    with pytest.raises(Silent, match=r"ran out of time \(0\.01 s\)"):
        spin("init { do :: true od }", ["f0"], 1, Deadline(0.01), 1)
    comparison = compare(MODELS["queues"], 1, seconds=0.02)
    assert comparison.verdict is Verdict.NOT_ESTABLISHED
    assert all("ran out of time" in one.silent for one in comparison.findings)


@needs_tools
def test_a_tool_that_does_not_understand_is_not_established() -> None:
    with pytest.raises(Silent, match="spin"):
        spin("no promela", ["f0"], 1, Deadline(60), 1)


# --- comparing, with engines that say what they are told to -----------------------------------------------------------


def play(
    monkeypatch: pytest.MonkeyPatch,
    model: Model,
    *,
    more_states: int = 0,
    bad: str = "",
    vacuous: str = "",
    cycle: bool = False,
    overflow: int = 0,
) -> Comparison:
    """Compare with a rumur and a spin that find nothing wrong but what is said."""
    questions = asked(exported(model, 1))
    covers = {"overflow": overflow, "may end": 1, "illegal": 0}
    for place, one in enumerate(questions):
        wanted = str(one.prop.kind) == "sometimes"
        covers[f"bad {place}"] = int(wanted or one.prop.name == bad)
        covers[f"twin {place}"] = int(one.prop.name != vacuous)

    def rumur(text: str, states: int, deadline: Deadline) -> Counted:
        assert 'cover "overflow"' in text
        return Counted(states + RESTS + more_states, 0, covers, False)

    def fake_spin(
        text: str, formulas: list[str], processes: int, deadline: Deadline, states: int
    ) -> dict[str, bool]:
        assert text.count("ltl ") == len(formulas)
        return dict.fromkeys(formulas, not cycle)

    monkeypatch.setattr(agree, "rumur", rumur)
    monkeypatch.setattr(agree, "spin", fake_spin)
    return compare(model, 1)


def test_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(agreed(play(monkeypatch, MODELS["queues"])).values()) == {Verdict.HOLDS}


def test_one_state_more_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = play(monkeypatch, MODELS["queues"], more_states=1)
    assert comparison.verdict is Verdict.VIOLATED
    (difference,) = comparison.differences
    assert difference.startswith("rumur finds")


def test_another_verdict_of_rumur_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "serving means every queue is open"
    for comparison in (
        play(monkeypatch, MODELS["queues"], bad=name),
        play(monkeypatch, MODELS["queues"], vacuous=name),
    ):
        assert comparison.differences == (f"{name}: rumur says violated, our explorer says holds",)


def test_another_verdict_of_spin_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = play(monkeypatch, MODELS["queues"], cycle=True)
    assert comparison.verdict is Verdict.VIOLATED
    assert "a stop ends: spin says violated, our explorer says holds" in comparison.differences


def test_what_overflowed_is_not_established(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = play(monkeypatch, MODELS["queues"], overflow=1)
    assert comparison.verdict is Verdict.NOT_ESTABLISHED
    assert "too small" in comparison.findings[0].silent


def test_a_property_that_nobody_restated_is_not_established(monkeypatch: pytest.MonkeyPatch) -> None:
    strange: Property[Now] = never("a new property", "It is not in the glue.", lambda _: False)
    model = dataclasses.replace(MODELS["queues"], asks=(*MODELS["queues"].asks, lambda _: [strange]))
    comparison = play(monkeypatch, model)
    assert comparison.verdict is Verdict.NOT_ESTABLISHED
    assert comparison.gaps == ("a new property: rumur does not know it: see specs/export/glue/holds.py",)
