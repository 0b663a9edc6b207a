"""Why each surviving mutant is none: by hand, and held to account.

Theory of operation. A reason names its mutants one by one. One that names a mutant that is killed, or that does not
exist, is an error: nobody's reasons outlive what they explain.
"""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """Why these defects change nothing."""

    why: str
    defects: tuple[str, ...]


_WRONG_CALL = "of_this_epoch, of_this_rank, not of_this_call"
_WRONG_ORIGIN = ("not of_this_epoch", "of_this_epoch, not of_this_rank")
_STARTING = "SPAWNED|DEVICE|WEIGHTS|QUEUES|READY"
_PHASES = ("hello", "weights", "queues", "ready", "failed")

REASONS: tuple[Reason, ...] = (
    Reason(
        "A dead rank has nothing left to say: its control channel is read to the end before its death is told. The "
        "rows are for an executor that has its deaths from elsewhere. The model `late` lets the news of a death "
        "overtake those words, but at one rank the executor is down by then; at two ranks, some 90,000 states and too "
        "long for a campaign, 'no illegal event' kills all five.",
        tuple(f"rank_start: drop DEAD --{word}--> (stays)" for word in _PHASES),
    ),
    Reason(
        "Nobody dies twice. The rows are for an executor that is told of one death by two sources; no model has two.",
        (
            "seat: drop GONE --died--> (stays)",
            "reader: drop GONE --died--> (stays)",
        ),
    ),
    Reason(
        "A worker whose boot failed, or that is gone, has left in the same step and is told nothing more. The rows are "
        "for a stop that is read between the failure and the exit; in the models these are one action.",
        (
            "boot: drop FAILED --stop--> (stays)",
            "boot: drop FAILED --orphaned--> (stays)",
            "leave: drop GONE --asked--> (stays)",
            "leave: drop GONE --orphaned--> (stays)",
            "reader: drop GONE --close--> (stays)",
        ),
    ),
    Reason(
        "The effect says in the log that a message was dropped. That it was dropped is the row's own doing: it stays.",
        tuple(
            f"rank_start: {_STARTING} --{word} [{origin}]--> (stays) without drop_stale"
            for word in _PHASES
            for origin in _WRONG_ORIGIN
        ),
    ),
    Reason(
        "A rank answers its calls in order, so an answer is for the oldest call that the rank owes, or for none: to "
        "offer it to the next call finds no owner either. The rows are for a rank that skipped a call; no model has "
        "one.",
        tuple(
            f"reply: OWED --{word} [{origin}]--> (stays) without pass_on"
            for word in ("returned", "raised")
            for origin in (*_WRONG_ORIGIN, _WRONG_CALL)
        ),
    ),
    Reason(
        "The time for the start runs while a gate is still gathering. At the deadline that gate closes, which is a "
        "fault, and a fault closes every gate in the same action: an open one is closed either way.",
        ("gate: OPEN --deadline--> (stays) leads to CLOSED",),
    ),
    Reason(
        "Both effects belong to one action: the alarm is looked at after it, whichever was first.",
        ("stop: RUNNING --stop--> CLOSING with arm_grace before wake_blocked",),
    ),
    Reason(
        "START leads from STARTING to FAILED on whichever event says that it failed, without an effect; the cause that "
        "users see is the rank's own words or its exit code, noted when it is learnt. So another event is as good.",
        (
            "coupling of start: some rank_start FAILED → rank_failed brings about cancel",
            "coupling of start: some rank_start DEAD → rank_died brings about cancel",
        ),
    ),
    Reason(
        "A death that START is not told by this row closes the queues, which is a fault, which cancels START in the "
        "same action: it goes to FAILED either way. The row keeps START right without the queues.",
        (
            "coupling of start: drop some rank_start DEAD → rank_died",
            "coupling of start: some rank_start DEAD → rank_died asks for every",
        ),
    ),
)
