"""Hand-picked defects, each convicted by the property that one would name."""

from __future__ import annotations

import pytest

from procession.protocol.futures import CALL, CALLER, REPLY, SERVE, of_this_call
from procession.protocol.life import LIFE
from procession.protocol.queues import SEAT
from procession.protocol.ready import RANK_START, START, of_this_epoch, of_this_rank
from procession.protocol.shutdown import LEAVE, LISTENER, RANK_STOP, STOP
from procession.specs.diagrams import tables
from procession.specs.explore import Limits
from procession.specs.models import MODELS
from procession.specs.mutants import (
    Mutant,
    mutants,
    row_of,
    swapped,
    trial,
    with_guard,
    without_effect,
    without_row,
)

CONVICTED = [
    (with_guard(REPLY, of_this_call, "always holds"), "stray", "a call takes only its own replies"),
    (with_guard(REPLY, of_this_epoch, "always holds"), "stray", "a call takes only its own replies"),
    (with_guard(REPLY, of_this_rank, "always holds"), "stray", "a call takes only its own replies"),
    (with_guard(RANK_START, of_this_epoch, "always holds"), "stale", "a stale message is never taken"),
    (without_row(START, "all_ready", "STARTING", "UP"), "ready", "start decides"),
    (without_row(LIFE, "fault", "STARTING", "FAILING"), "ready", "a failed start leaves no worker"),
    (
        without_effect(SEAT, "open", "JOINED", "OPEN", "send_open"),
        "queues",
        "the queues open or the start ends",
    ),
    (without_row(CALL, "rank_raised", "OPEN", "FAILED"), "ahead", "a rank's failure fails its call"),
    (without_row(CALL, "close", "OPEN", "FAILED"), "ahead", "the end fails every open call"),
    (
        without_effect(CALLER, "settled", "DRAINING", "ANSWERED", "wake_parked"),
        "futures",
        "nobody is left parked",
    ),
    (without_row(SERVE, "stop", "IDLE", "STOPPED"), "shutdown", "no illegal event"),
    (
        without_effect(RANK_STOP, "ask", "ALIVE", "ASKED", "close_control"),
        "shutdown",
        "who is asked can know",
    ),
    (without_row(RANK_STOP, "kill", "TERMINATED", "KILLED"), "shutdown", "SIGKILL is sent"),
    (without_effect(STOP, "stop", "RUNNING", "CLOSING", "arm_grace"), "shutdown", "a stop ends"),
    (without_effect(STOP, "stop", "RUNNING", "CLOSING", "wake_blocked"), "shutdown", "the blocked are woken"),
    (without_effect(LISTENER, "failure", "LISTENING", "TOLD", "call_back"), "shutdown", "a failure is told"),
    (without_effect(LEAVE, "clean", "LEAVING", "GONE", "exit"), "shutdown", "a worker that left is gone"),
    (without_row(LEAVE, "orphaned", "STAYING", "GONE"), "life", "no illegal event"),
]


@pytest.mark.parametrize(
    ("mutant", "model", "name"), CONVICTED, ids=[f"{mutant.name} ({model})" for mutant, model, _ in CONVICTED]
)
def test_a_defect_is_convicted_by_name(mutant: Mutant, model: str, name: str) -> None:
    conviction = trial(mutant, [MODELS[model]], Limits(states=8_000))  # mostly enough, and quick
    if conviction is None or name not in conviction.properties:
        conviction = trial(mutant, [MODELS[model]])
    assert conviction is not None
    assert name in conviction.properties
    assert conviction.report[name].counterexample is not None or "is sent" in name


def test_the_shipped_tables_are_convicted_of_nothing() -> None:
    assert trial(Mutant("no defect", CALL), [MODELS["queues"]]) is None


def test_mutants_are_many_and_all_different() -> None:
    for table in tables().values():
        found = list(mutants(table))
        assert len({mutant.name for mutant in found}) == len(found) > len(table.rows)
        assert all(mutant.table.rows != table.rows for mutant in found)


def test_lint_says_what_it_would_have_refused() -> None:
    assert without_row(START, "rank_died", "STARTING", "FAILED").lint
    assert not with_guard(REPLY, of_this_call, "always holds").lint


def test_swapping_twice_is_no_change() -> None:
    first, second = (
        row_of(CALL, "all_replied", "OPEN", "RESOLVED"),
        row_of(CALL, "cancel", "OPEN", "CANCELLED"),
    )
    assert swapped(swapped(CALL, first, second), first, second).rows == CALL.rows


def test_a_row_that_is_not_there() -> None:
    with pytest.raises(LookupError, match="no row OPEN --all_replied--> FAILED"):
        row_of(CALL, "all_replied", "OPEN", "FAILED")
