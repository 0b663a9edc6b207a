"""Recorded runs: the model's own are accepted; with a line dropped, doubled or moved they are refused.

Sequence numbers and times are repaired each time, so that only the model can tell. Some changes leave a run that could
have been, and must be accepted: the last lines of a rank that crashed; the line of the last listener told (nothing else
says how many there were); the end of a wait that kept nobody waiting; and two lines in the other order that are actions
of their own and do not touch.
"""

from __future__ import annotations

from collections import Counter

import pytest

from procession.specs.explore.simulate import random_walk
from procession.specs.trace import sequence_diagram, validate, written
from procession.specs.world import Budgets, World

from .runs import Entry, dump, is_a_run, trace

SEEDS = range(12)
_OVER = ("ANSWERED", "GAVE_UP")
_THREADS = ("caller.caller", "call.call", "life.life")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_of_the_model_is_accepted(seed: int) -> None:
    header, entries = trace(seed)
    verdict = validate(dump(header, entries))
    assert verdict.accepted, str(verdict)
    assert verdict.matched == verdict.lines == len(entries) + 1
    assert str(verdict).startswith("accepted: all ")


def test_the_runs_get_somewhere() -> None:
    """Else the rest would say little."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen.update(f"{entry['m']} {entry['e']} {entry['to']}" for entry in trace(seed)[1])
    for line in ("call.call all_replied RESOLVED", "caller.caller park PARKED", "call.reply raised RAISED"):
        assert seen[line], line


def crashed(entries: list[Entry]) -> set[str]:
    """The ranks that did not leave by themselves."""
    return {f"rank {entry['r']}" for entry in entries if entry.get("x", 0) != 0}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dropped_line_is_refused(seed: int) -> None:
    header, entries = trace(seed)
    for at, entry in enumerate(entries):
        left = [*entries[:at], *entries[at + 1 :]]
        verdict = validate(dump(header, left))
        if verdict.accepted:
            later = [other for other in entries[at + 1 :] if other["p"] == entry["p"]]
            last_of_crashed = not later and entry["p"] in crashed(entries)
            last_listener = entry["m"] == "listener.listener" and not any(
                other["m"] == "listener.listener" for other in later
            )
            # A thread that neither drains nor is heard of again: it may as well wait for ever, or never have waited.
            came_back = entry["m"] == "caller.caller" and entry["from"] != "DRAINING" and entry["to"] in _OVER
            stays = entry["from"] == entry["to"]
            assert last_of_crashed or last_listener or came_back or stays, entry
        else:
            assert verdict.number is not None
            # Found where the line is missed, or later: not before.
            assert verdict.matched >= at + 1, str(verdict)
            assert verdict.states, str(verdict)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_doubled_line_is_refused(seed: int) -> None:
    header, entries = trace(seed)
    for at, entry in enumerate(entries):
        verdict = validate(dump(header, [*entries[: at + 1], *entries[at:]]))
        if verdict.accepted:
            assert entry["from"] == entry["to"], entry
            assert entry["m"] in ("life.life", "call.call"), entry  # asked twice, as anybody may
        else:
            assert verdict.matched == at + 2, str(verdict)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_moved_past_its_neighbour_is_refused_unless_that_is_a_run(seed: int) -> None:
    header, entries = trace(seed)
    accepted = 0
    for at, entry in enumerate(entries):
        later = (n for n in range(at + 1, len(entries)) if entries[n]["p"] == entry["p"])
        neighbour = next(later, None)
        if neighbour is None:
            continue
        turned = list(entries)
        turned[at], turned[neighbour] = turned[neighbour], turned[at]
        if validate(dump(header, turned)).accepted:
            accepted += 1
            other = entries[neighbour]
            assert (entry["m"], entry["r"]) != (other["m"], other["r"]), (entry, other)
            if seed < 5 and entry["m"] not in _THREADS and other["m"] not in _THREADS:
                assert is_a_run(turned), (entry, other)
    assert accepted <= len(entries) // 5


@pytest.mark.parametrize("seed", range(4))
def test_the_second_opinion_agrees(seed: int) -> None:
    _, entries = trace(seed)
    assert is_a_run(entries)
    at = next(n for n, entry in enumerate(entries) if entry["e"] == "hello")
    assert not is_a_run([*entries[:at], *entries[at + 1 :]])


def test_a_refusal_says_everything() -> None:
    header, entries = trace(4)
    at = next(n for n, entry in enumerate(entries) if entry["e"] == "hello")
    left = [*entries[:at], *entries[at + 1 :]]
    verdict = validate(dump(header, left))
    assert not verdict.accepted
    text = str(verdict)
    assert text.startswith(f"refused at line {verdict.number}: ")
    assert (
        f"matched     {verdict.matched} of {len(left) + 1} lines; the last: line {verdict.matched}: " in text
    )
    assert "it says     executor: " in text
    assert "allowed of executor: " in text
    assert "start.rank_start[" in " ".join(verdict.allowed["executor"])
    assert set(verdict.states) == {"executor", "rank 0", "rank 1"}
    assert verdict.to_json()["accepted"] is False


def test_a_trace_that_is_cut_short() -> None:
    header, entries = trace(4)
    for kept in range(len(entries)):
        verdict = validate(dump(header, entries[:kept]))
        if (
            verdict.accepted
        ):  # the executor is down; only threads have to find out, and survivors to be reaped
            reported = any(entry["to"] == "SURVIVOR" for entry in entries[:kept])
            assert reported or {entry["m"] for entry in entries[kept:]} <= {
                "caller.caller",
                "listener.listener",
            }
        else:
            assert "cut short" in verdict.reason or "neither reaped" in verdict.reason


def test_exit_status_zero_needs_a_log_that_comes_to_its_end() -> None:
    seed = next(s for s in SEEDS if not crashed(trace(s)[1]) and any(e.get("x") == 0 for e in trace(s)[1]))
    header, entries = trace(seed)
    at = max(n for n, entry in enumerate(entries) if entry["m"] == "leave.leave")
    left = [*entries[:at], *entries[at + 1 :]]
    verdict = validate(dump(header, left))
    assert "exit status 0, but its log does not come to leave GONE" in verdict.reason
    for entry in left:
        if "x" in entry:
            entry["x"] = -9
    assert validate(dump(header, left)).accepted


def test_a_fault_may_come_by_itself() -> None:
    """The runtime gives it when a peer broke the protocol; the message that did is not a step."""
    world = World(1, Budgets(faults=1))
    path = random_walk(world, 1, depth=500, fault_weight=1.0)
    assert validate(written([step.label for step in path.steps], 1)).accepted


def test_a_long_trace_is_drawn_in_part() -> None:
    header, entries = trace(4)
    whole = sequence_diagram(dump(header, entries))
    assert "p1->>p0: HELLO" in whole
    assert "participant p2 as rank 1" in whole
    part = sequence_diagram(dump(header, entries), most=10)
    assert "more steps …" in part
    assert len(part.splitlines()) == 1 + 3 + 11
