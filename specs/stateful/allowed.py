"""In which ways one call may come out, and whether it must have by now: the executor's own tables decide.

Theory of operation:

1. Around one call things happen in some order: each rank answers or dies, somebody stops the executor, the deadline
   passes, the caller cancels. Which of them may have happened, the driver knows; in which order, nobody does.
2. So every order is tried on the executor's protocol, coupling and all, from the state in which it serves and has this
   one call. The cause that the last fact brings is what the call comes out with, as it is in the runtime.
3. Answers of other calls change nothing for this one, and are left out; their failures fail nobody else. That they do
   not is what the tables say, and what a run is held to.
4. To be settled is for good. So a call must be settled when it is after all that is sure to happen, in any order.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...protocol.core import Identity
from ...protocol.executor import ExecutorProtocol, ExecutorState, Happened
from ...protocol.futures import CallOn, FuturesDo, ReplyOn
from ...protocol.life import Life
from ...protocol.queues import Gate, Reader, Seat
from ...protocol.ready import RankStart, Start
from ...protocol.shutdown import RankStop, Stop
from .adapter import Kind, Outcome

_PROTOCOL = ExecutorProtocol()
_CALL = 1


class Facts(NamedTuple):
    """What may have happened, or is sure to; `replies`: by rank, how the rank answers, or None if it does not."""

    replies: tuple[Kind | None, ...]
    deaths: frozenset[int] = frozenset()
    stop: bool = False
    deadline: bool = False
    cancel: bool = False

    def each(self) -> list[tuple[str, int, Outcome]]:
        """The single facts: the word, the rank, and the cause that it brings."""
        found = [
            ("reply", rank, Outcome(kind, rank if kind is Kind.RAISED else None))
            for rank, kind in enumerate(self.replies)
            if kind is not None
        ]
        found += [("died", rank, Outcome(Kind.DIED, rank)) for rank in sorted(self.deaths)]
        found += [("stop", -1, Outcome(Kind.CLOSED))] if self.stop else []
        found += [("deadline", -1, Outcome(Kind.TIMED_OUT))] if self.deadline else []
        found += [("cancel", -1, Outcome(Kind.CANCELLED))] if self.cancel else []
        return found


def _serving(ranks: int) -> ExecutorState:
    """The state in which the executor serves and nothing was asked yet."""
    return ExecutorState(
        life=(Life.SERVING,),
        start=(Start.UP, *[RankStart.READY] * ranks),
        broadcast=(Gate.OPEN, *[Seat.OPEN] * ranks),
        replies=(Gate.OPEN, *[Reader.OPEN] * ranks),
        stop=(Stop.RUNNING, *[RankStop.ALIVE] * ranks),
    )


def _given(state: ExecutorState, fact: tuple[str, int, Outcome]) -> tuple[ExecutorState, Happened]:
    word, rank, cause = fact
    if word == "reply":
        event = ReplyOn.RETURNED if cause.kind is Kind.ANSWER else ReplyOn.RAISED
        return _PROTOCOL.reply(state, rank, event, Identity(1, rank, _CALL))
    if word == "died":
        return _PROTOCOL.died(state, rank)
    if word == "stop":
        return _PROTOCOL.ask_stop(state)
    return _PROTOCOL.give_up(state, _CALL, CallOn.DEADLINE if word == "deadline" else CallOn.CANCEL)


def _settled(happened: Happened, cause: Outcome) -> Outcome | None:
    """How the call came out, if it did."""
    for call, step in happened:
        if call == _CALL and FuturesDo.RESOLVE in step.effects:
            return Outcome(Kind.ANSWER)
        if call == _CALL and FuturesDo.FAIL in step.effects:
            return cause
    return None


@functools.lru_cache(4096)
def outcomes(may: Facts) -> frozenset[Outcome]:
    """Every way in which the call may come out."""
    begun = _PROTOCOL.submit(_serving(len(may.replies)), Identity(1, -1, _CALL))[0]
    found: set[Outcome] = set()
    todo = [(begun, tuple(may.each()))]
    seen = set(todo)
    while todo:
        state, left = todo.pop()
        for fact in left:
            after, happened = _given(state, fact)
            settled = _settled(happened, fact[2])
            if settled is not None:
                found.add(settled)
                continue
            following = (after, tuple(other for other in left if other is not fact))
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return frozenset(found)


@functools.lru_cache(4096)
def is_settled(sure: Facts) -> bool:
    """Whether the call has come out when all of this has happened."""
    state = _PROTOCOL.submit(_serving(len(sure.replies)), Identity(1, -1, _CALL))[0]
    for fact in sure.each():
        state, happened = _given(state, fact)
        if _settled(happened, fact[2]) is not None:
            return True
    return False
