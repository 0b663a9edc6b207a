"""What each effect does to the world, in the small language.

Theory of operation. As specs/world has it: the executor's effects reach a rank, the record or the parked threads
(`EXECUTOR_DOES`); a worker's write to a channel, begin a piece of work, or end the process (`worker_does`). An effect
that is not named here does nothing to the world.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.core import Effect
from ...protocol.futures import FuturesDo
from ...protocol.life import LifeDo
from ...protocol.queues import QueueDo
from ...protocol.ready import RankStartOn, ReadyDo
from ...protocol.shutdown import StopDo
from .glue.words import Work

REACHING = frozenset(
    {
        StopDo.CLOSE_CONTROL,
        StopDo.SEND_SIGTERM,
        StopDo.SEND_SIGKILL,
        StopDo.REAP,
        QueueDo.SEND_JOINED,
        QueueDo.SEND_OPEN,
    }
)
"""The executor's effects that reach a rank."""

_EXECUTOR_DOES: dict[Effect, Sequence[str]] = {
    StopDo.CLOSE_CONTROL: ("close_control(w, w.slot)",),
    StopDo.SEND_SIGTERM: ("kill(w, w.slot, Sent.TERM)",),
    StopDo.SEND_SIGKILL: ("kill(w, w.slot, Sent.KILL)",),
    StopDo.REAP: ("reap(w, w.slot)",),
    QueueDo.SEND_JOINED: ("join(w, w.slot)",),
    QueueDo.SEND_OPEN: ("send(w, w.slot, 0)",),
    StopDo.ARM_GRACE: ("w.alarm = Alarm.ARM_GRACE",),
    StopDo.ARM_TERM: ("w.alarm = Alarm.ARM_TERM",),
    StopDo.ARM_KILL: ("w.alarm = Alarm.ARM_KILL",),
    StopDo.DISARM: ("w.alarm = Alarm.OFF",),
    StopDo.WAKE_BLOCKED: ("w.o_again = w.o_again or w.m_woken", "w.m_woken = True"),
    StopDo.CALL_BACK: ("call_back(w)",),
    StopDo.REPORT_SURVIVOR: (
        "w.o_again = w.o_again or w.survivors[w.about]",
        "w.survivors[w.about] = True",
    ),
    LifeDo.ANNOUNCE_UP: ("w.o_again = w.o_again or w.m_up", "w.m_up = True"),
    LifeDo.ANNOUNCE_FAILURE: ("w.o_again = w.o_again or w.m_failure", "w.m_failure = True"),
    LifeDo.ANNOUNCE_END: ("w.o_again = w.o_again or w.m_end", "w.m_end = True"),
    FuturesDo.RESOLVE: ("resolve(w)",),
    FuturesDo.FAIL: ("hand_over(w)",),
    FuturesDo.WAKE_PARKED: ("w.wakes = True",),
}
"""What each effect of the executor does to the world; any other has no effect there."""

_WORKER_DOES: dict[Effect, Sequence[str]] = {
    ReadyDo.SEND_HELLO: ("say(w, w.rank, RankStartOn.HELLO)",),
    ReadyDo.SEND_READY: ("say(w, w.rank, RankStartOn.READY)",),
    ReadyDo.SEND_FAILED: ("say(w, w.rank, RankStartOn.FAILED)",),
    QueueDo.SEND_JOINED: ("joins_in(w, w.rank)",),
    QueueDo.SEND_OPEN: ("answer(w, w.rank, 0)",),
    StopDo.EXIT: ("w.exits = True",),
}


def executor_does(effect: Effect, _phase: str) -> Sequence[str]:
    """What an effect of the executor does."""
    return _EXECUTOR_DOES.get(effect, ())


def worker_does(effect: Effect, phase: str) -> Sequence[str]:
    """What an effect of a worker does to the world; a piece of work is begun."""
    if effect is ReadyDo.SEND_PHASE:
        if phase in RankStartOn.__members__:
            return (f"say(w, w.rank, RankStartOn.{phase})",)
        return ("dies(w, w.rank)", "w.o_illegal = True")  # there is no such phase to tell
    if effect.name in Work.__members__:
        begun = f"w.work[w.rank] = Work.{effect.name}"
        if effect is FuturesDo.SEND_REPLY:
            return (begun, "answer_returned(w, w.rank)")
        if effect is FuturesDo.SEND_FAILURE:
            return (begun, "answer_raised(w, w.rank)")
        return (begun,)
    return _WORKER_DOES.get(effect, ())
