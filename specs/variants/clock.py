"""Deadlines against a clock: what "the time that is left" turns into, as a model of its own.

Theory of operation:

1. Time goes on in ticks. A caller first drains an older call, whose answer comes sooner or later, and then waits for
   its own, one rank after the other; whether that is answered is open. A wait has a limit, a point in time, and when it
   is reached the wait ends before time goes on.
2. One absolute deadline bounds all of it: the older call's drain, and every rank's answer. A limit made anew from a
   duration, or from what is left of one, is another limit.
3. A rank may be stuck. It says so itself once its own, inner, limit is over; that limit must be the shorter one, or
   nobody learns which rank it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on
from ..explore import Label, Property, leads_to, never
from .small import NoEffect, Small
from .variant import Trial, Variant


class Timed(State):
    """A caller with a deadline."""

    OLDER = "The caller takes the replies to an older call off the queue."
    OWN = "The caller waits for the replies to its own call."
    ANSWERED = "Every rank has answered."
    TOLD = "A rank has said that it is stuck."
    EXPIRED = "The deadline passed first."


class TimedOn(Event):
    """What can happen to a caller with a deadline."""

    OLDER_DONE = "older_done", Kind.MESSAGE, "The older call is settled."
    ANSWERED = "answered", Kind.MESSAGE, "The last rank answered."
    TOLD = "told", Kind.MESSAGE, "A rank reports that it waits in vain."
    DEADLINE = "deadline", Kind.DEADLINE, "The limit of the wait is reached."


TIMED = Table(
    name="timed",
    purpose="A caller with a deadline: an older call's replies first, then its own.",
    states=Timed,
    events=TimedOn,
    effects=NoEffect,
    initial=Timed.OLDER,
    final=frozenset({Timed.ANSWERED, Timed.TOLD, Timed.EXPIRED}),
    rows=(
        on(TimedOn.OLDER_DONE, Timed.OLDER, Timed.OWN),
        on(TimedOn.ANSWERED, Timed.OWN, Timed.ANSWERED),
        on(TimedOn.TOLD, Timed.OWN, Timed.TOLD),
        on(TimedOn.DEADLINE, [Timed.OLDER, Timed.OWN], Timed.EXPIRED),
    ),
)
_WAITING = (Timed.OLDER, Timed.OWN)


class Clock(NamedTuple):
    """The time, the caller, the limit of its present wait (None: none), and the answers it has."""

    time: int
    caller: State
    limit: int | None
    answers: int = 0


@dataclass(frozen=True)
class Rules:
    """Rules of waiting; each may be taken away. Times are in ticks from 0."""

    deadline: int | None = 2
    """Of the call; None: none."""
    ranks: int = 1
    drain_is_bounded: bool = True
    negative_is_over: bool = True
    limit_a_rank: bool = False
    inner: int | None = None
    """When a rank that is stuck says so; None: never."""
    stuck: bool = False
    horizon: int = 3

    def start(self) -> Clock:
        """Time 0; the older call is drained, or (with a rank that is stuck) has been."""
        if self.stuck:
            return Clock(0, Timed.OWN, self.deadline)
        return Clock(0, Timed.OLDER, self.deadline if self.drain_is_bounded else None)

    def moves(self, now: Clock) -> Iterator[tuple[Label, Clock]]:
        """The passing of time, and what it brings."""
        if now.caller not in _WAITING:
            return

        def went(event: Event, limit: int | None, answers: int = 0) -> Clock:
            return now._replace(caller=TIMED.step(now.caller, event).dest, limit=limit, answers=answers)

        if now.limit is not None and now.time >= now.limit:
            yield Label("caller", "its limit is reached"), went(TimedOn.DEADLINE, None)
            return
        if self.inner is not None and now.time >= self.inner and now.caller is Timed.OWN:
            yield Label("rank 0", "says that it is stuck"), went(TimedOn.TOLD, None)
            return
        if now.time < self.horizon:
            yield Label("clock", "a tick"), now._replace(time=now.time + 1)
        if now.caller is Timed.OLDER:
            yield (
                Label("rank 0", "answers the older call"),
                went(TimedOn.OLDER_DONE, self._limit(now.time)),
            )
        elif not self.stuck:
            label = Label(f"rank {now.answers}", "answers", fair=False)
            if now.answers + 1 == self.ranks:
                yield label, went(TimedOn.ANSWERED, None, now.answers + 1)
            else:
                limit = now.time + self.deadline if self.limit_a_rank and self.deadline else now.limit
                yield label, now._replace(answers=now.answers + 1, limit=limit)

    def _limit(self, time: int) -> int | None:
        if self.deadline is None:
            return None
        if self.deadline - time < 0 and not self.negative_is_over:
            return None  # handed to a poll, a negative time means: for ever
        return self.deadline


def properties(rules: Rules) -> list[Property[Clock]]:
    """What a deadline promises."""
    last = rules.deadline

    def late(now: Clock) -> bool:
        return last is not None and now.time > last and now.caller in _WAITING

    return [
        leads_to(
            "a caller comes back in the end",
            "A caller is answered, told, or out of time, whatever ranks do.",
            lambda now: now.caller in _WAITING,
            lambda now: now.caller not in _WAITING,
        ),
        never(
            "no wait outlives the deadline",
            "Once its deadline has passed, a caller waits for nothing.",
            late,
            twin=lambda now: now.caller is Timed.EXPIRED or last is None,
        ),
        never(
            "who is stuck says so first",
            "A call whose rank is stuck ends with that rank's own report, not with a bare deadline.",
            lambda now: rules.stuck and now.caller is Timed.EXPIRED,
            twin=lambda now: now.caller is Timed.TOLD or not rules.stuck,
        ),
    ]


def _trial(rules: Rules) -> Trial:
    return Trial(Small("clock", rules.start(), rules.moves), properties(rules))


def _variant(
    name: str, sentence: str, reports: tuple[str, ...], violates: str, length: int, bad: Rules, right: Rules
) -> Variant:
    return Variant(
        name, sentence, reports, "clock", violates, length, lambda: _trial(bad), lambda: _trial(right)
    )


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        _variant(
            "negative-deadline",
            "Draining an older call uses up the time; what is left is negative, and to a poll that means for ever.",
            ("vllm-project/vllm#41357", "vllm-project/vllm#41213"),
            "a caller comes back in the end",
            4,
            Rules(drain_is_bounded=False, negative_is_over=False),
            Rules(),
        ),
        _variant(
            "limit-a-rank",
            "Each rank's queue is given the whole timeout: with N ranks a call may take N times what was asked.",
            ("vllm-project/vllm#29390", "vllm-project/vllm#29733"),
            "no wait outlives the deadline",
            5,
            Rules(ranks=2, limit_a_rank=True),
            Rules(ranks=2),
        ),
        _variant(
            "outer-before-inner",
            "The call's limit is shorter than the collective's own: the engine dies before the stuck rank is named.",
            ("vllm-project/vllm#18558", "vllm-project/vllm#19544"),
            "who is stuck says so first",
            3,
            Rules(stuck=True, inner=3),
            Rules(stuck=True, inner=1),
        ),
        _variant(
            "output-without-limit",
            "The thread that finishes outputs waits for the device without a limit: no result, and no failure.",
            ("HYGON-AI/vllm-plugin-das#25",),
            "a caller comes back in the end",
            3,
            Rules(deadline=None, stuck=True, inner=None),
            Rules(deadline=None, stuck=True, inner=2),
        ),
    ]
