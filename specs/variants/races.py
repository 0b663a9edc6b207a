"""Check, then act: threads that look at a flag and go by what they saw, as small models of one table.

Theory of operation:

1. A thread looks whether it may, and then does it. Where looking and doing are two steps, another thread acts between
   them: a shutdown runs twice, a queue is gone when it is written to, futures stand in another order than their calls.
2. The right rule makes the two one step (a lock held for the check and the set, never for the work), or looks again at
   the last moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on
from ..explore import Label, Property, always, leads_to, never
from .small import NoEffect, Small, put
from .variant import Trial, Variant


class Attempt(State):
    """A thread on its way through something that only one may do, or that must still be allowed."""

    OUTSIDE = "The thread has not looked."
    ALLOWED = "The thread looked, and it may."
    INSIDE = "The thread does it."
    DONE = "The thread has done it."
    REFUSED = "The thread was told that it may not."


class AttemptOn(Event):
    """What can happen to an attempt."""

    MAY = "may", Kind.WORK, "The thread looks: it may."
    MAY_NOT = "may_not", Kind.WORK, "The thread looks: it may not."
    ENTER = "enter", Kind.WORK, "The thread begins."
    LEAVE = "leave", Kind.WORK, "The thread has come to the end of it."


ATTEMPT = Table(
    name="attempt",
    purpose="A thread that looks whether it may, and then does it.",
    states=Attempt,
    events=AttemptOn,
    effects=NoEffect,
    initial=Attempt.OUTSIDE,
    final=frozenset({Attempt.DONE, Attempt.REFUSED}),
    rows=(
        on(AttemptOn.MAY, Attempt.OUTSIDE, Attempt.ALLOWED),
        on(AttemptOn.MAY_NOT, [Attempt.OUTSIDE, Attempt.ALLOWED], Attempt.REFUSED),
        on(AttemptOn.ENTER, Attempt.ALLOWED, Attempt.INSIDE),
        on(AttemptOn.LEAVE, Attempt.INSIDE, Attempt.DONE),
    ),
)


class Race(NamedTuple):
    """The threads, the flag they look at, and in which order they entered and left."""

    threads: tuple[State, ...]
    flag: bool = False
    entered: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    broken: bool = False
    """Something was done to what was no longer there."""


@dataclass(frozen=True)
class Rules:
    """`atomic`: looking and entering are one step. `rechecks`: who enters looks once more. `waits`: see `close`."""

    threads: int = 2
    atomic: bool = True
    rechecks: bool = True
    once: bool = False
    """The flag is set by the first to enter (a shutdown); else by somebody else, who closes what they use."""
    waits: bool = True
    """Who closes waits until nobody is inside."""
    closes: bool = False

    def start(self) -> Race:
        """Nobody has looked."""
        outside: tuple[State, ...] = (Attempt.OUTSIDE,) * self.threads
        return Race(outside)

    def moves(self, now: Race) -> Iterator[tuple[Label, Race]]:
        """What the threads, and whoever closes, can do."""
        if self.closes and not now.flag and not (self.waits and Attempt.INSIDE in now.threads):
            inside = Attempt.INSIDE in now.threads
            yield Label("monitor", "closes it", fair=False), now._replace(flag=True, broken=inside)
        for number, state in enumerate(now.threads):
            name = f"thread {number}"
            if state is Attempt.OUTSIDE and now.flag:
                yield Label(name, "looks, and may not"), _to(now, number, AttemptOn.MAY_NOT)
            elif state is Attempt.OUTSIDE:
                allowed = _to(now, number, AttemptOn.MAY)
                after = self._enter(allowed, number) if self.atomic else allowed
                yield Label(name, "looks, and enters" if self.atomic else "looks, and may"), after
            elif state is Attempt.ALLOWED:
                if self.rechecks and now.flag:
                    yield Label(name, "looks again, and may not"), _to(now, number, AttemptOn.MAY_NOT)
                else:
                    yield Label(name, "enters"), self._enter(now, number)
            elif state is Attempt.INSIDE:
                done = _to(now, number, AttemptOn.LEAVE)
                yield Label(name, "is done"), done._replace(left=(*now.left, number))

    def _enter(self, now: Race, number: int) -> Race:
        after = _to(now, number, AttemptOn.ENTER)
        broken = now.broken or (now.flag and self.closes)
        return after._replace(flag=now.flag or self.once, entered=(*now.entered, number), broken=broken)


def _to(now: Race, number: int, event: Event) -> Race:
    return now._replace(threads=put(now.threads, number, ATTEMPT.step(now.threads[number], event).dest))


@dataclass(frozen=True)
class Lists:
    """Two threads that send a call and note its future: one step, or two."""

    atomic: bool = True

    def moves(self, now: Race) -> Iterator[tuple[Label, Race]]:
        """Entering is sending, leaving is noting."""
        for number, state in enumerate(now.threads):
            name = f"thread {number}"
            if state is Attempt.OUTSIDE:
                sent = _to(_to(now, number, AttemptOn.MAY), number, AttemptOn.ENTER)
                sent = sent._replace(entered=(*now.entered, number))
                yield Label(name, "sends its call"), self._noted(sent, number) if self.atomic else sent
            elif state is Attempt.INSIDE:
                yield Label(name, "notes its future"), self._noted(now, number)

    @staticmethod
    def _noted(now: Race, number: int) -> Race:
        return _to(now, number, AttemptOn.LEAVE)._replace(left=(*now.left, number))


class Built(NamedTuple):
    """An executor that is being made, step by step, and the monitor that may act on it meanwhile."""

    made: tuple[str, ...] = ()
    monitor: State = Attempt.OUTSIDE
    died: bool = False
    broken: bool = False
    told: bool = False
    registers: State = Attempt.OUTSIDE


@dataclass(frozen=True)
class SetUp:
    """`order`: what the constructor makes, and starts, in which order. The monitor uses the queue of futures."""

    order: tuple[str, ...]

    def moves(self, now: Built) -> Iterator[tuple[Label, Built]]:
        """The constructor goes on, a rank may die, and the monitor acts on it."""
        if len(now.made) < len(self.order):
            step = self.order[len(now.made)]
            yield Label("constructor", f"makes the {step}"), now._replace(made=(*now.made, step))
        if not now.died:
            yield Label("rank 0", "dies", fair=False), now._replace(died=True)
        elif "monitor" in now.made and now.monitor is Attempt.OUTSIDE:
            state = ATTEMPT.step(now.monitor, AttemptOn.MAY).dest
            after = now._replace(monitor=state, broken="queue" not in now.made)
            yield Label("monitor", "fails what is in the queue"), after


@dataclass(frozen=True)
class Registering:
    """A callback is registered while the monitor finds a failure; `atomic`: looking and keeping are one step."""

    atomic: bool

    def moves(self, now: Built) -> Iterator[tuple[Label, Built]]:
        """The caller registers; a rank dies, and the monitor calls the callback that there is."""
        state = now.registers
        if state is Attempt.OUTSIDE and now.died:
            refused = ATTEMPT.step(state, AttemptOn.MAY_NOT).dest
            yield (
                Label("caller", "looks: it has failed; calls back"),
                now._replace(registers=refused, told=True),
            )
        elif state is Attempt.OUTSIDE:
            looked = ATTEMPT.step(state, AttemptOn.MAY).dest
            if self.atomic:
                looked = ATTEMPT.step(looked, AttemptOn.ENTER).dest
            yield Label("caller", "looks: nothing has failed"), now._replace(registers=looked)
        elif state is Attempt.ALLOWED:
            kept = ATTEMPT.step(state, AttemptOn.ENTER).dest
            yield Label("caller", "keeps the callback"), now._replace(registers=kept)
        if not now.died:
            told = state is Attempt.INSIDE
            yield (
                Label("monitor", "finds a failure, calls back", fair=False),
                now._replace(died=True, told=told),
            )


_PROPERTIES: list[Property[Race]] = [
    never(
        "the teardown runs once",
        "Of all who ask for it, one does it.",
        lambda now: len(now.entered) > 1,
        twin=lambda now: Attempt.REFUSED in now.threads,
    ),
    never(
        "nothing closed is used",
        "Nobody uses what was closed, and nothing is closed under somebody who uses it.",
        lambda now: now.broken,
        twin=lambda now: Attempt.REFUSED in now.threads,
    ),
]
_ORDER: Property[Race] = always(
    "futures stand in the order of their calls",
    "The n-th future that is noted is that of the n-th call that was sent.",
    lambda now: now.left == now.entered[: len(now.left)],
    twin=lambda now: len(now.left) > 1,
)


_BUILT: list[Property[Built]] = [
    never(
        "nothing unmade is used",
        "Nobody uses a part of the executor that its constructor has still to make.",
        lambda now: now.broken,
        twin=lambda now: now.monitor is Attempt.ALLOWED,
    ),
    leads_to(
        "a callback that is kept is called",
        "Whenever it is registered, a failure callback comes to be called if something fails.",
        lambda now: now.died and now.registers is not Attempt.OUTSIDE,
        lambda now: now.told,
    ),
]


def _built(rules: SetUp | Registering) -> Trial:
    return Trial(Small("races", Built(), rules.moves), [_BUILT[isinstance(rules, Registering)]])


def _trial(rules: Rules) -> Trial:
    return Trial(Small("races", rules.start(), rules.moves), _PROPERTIES)


def _lists(atomic: bool) -> Trial:
    return Trial(Small("races", Rules().start(), Lists(atomic).moves), [_ORDER])


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "stop-entered-twice",
            "The flag that says 'shutting down' is looked at and then set: two threads both find it unset.",
            ("vllm-project/vllm#56282", "xorbitsai/inference#3202"),
            "races",
            "the teardown runs once",
            4,
            bad=lambda: _trial(Rules(atomic=False, rechecks=False, once=True)),
            right=lambda: _trial(Rules(once=True)),
        ),
        Variant(
            "check-then-enqueue",
            "A call sees that nothing has failed, is serialised, and is written to a queue that was cleared meanwhile.",
            ("vllm-project/vllm#56251", "vllm-project/vllm#56976"),
            "races",
            "nothing closed is used",
            3,
            bad=lambda: _trial(Rules(threads=1, atomic=False, rechecks=False, closes=True)),
            right=lambda: _trial(Rules(threads=1, atomic=False, closes=True)),
        ),
        Variant(
            "closed-under-a-sender",
            "A queue's socket is closed while another thread is inside a send.",
            ("NVIDIA/TensorRT-LLM#17988",),
            "races",
            "nothing closed is used",
            2,
            bad=lambda: _trial(Rules(threads=1, closes=True, waits=False)),
            right=lambda: _trial(Rules(threads=1, closes=True)),
        ),
        Variant(
            "append-after-send",
            "A call is sent, and its future noted afterwards: another thread does both between the two.",
            ("vllm-project/vllm#38644",),
            "races",
            "futures stand in the order of their calls",
            3,
            bad=lambda: _lists(False),
            right=lambda: _lists(True),
        ),
        Variant(
            "monitor-before-queue",
            "The monitor starts before the queue of futures exists (0.11.2); a rank that dies at once breaks it.",
            (),
            "races",
            "nothing unmade is used",
            3,
            bad=lambda: _built(SetUp(("monitor", "queue"))),
            right=lambda: _built(SetUp(("queue", "monitor"))),
        ),
        Variant(
            "callback-kept-too-late",
            "A callback is registered between the look at 'failed' and the monitor's look for a callback.",
            ("joblib/loky#75",),
            "races",
            "a callback that is kept is called",
            3,
            bad=lambda: _built(Registering(False)),
            right=lambda: _built(Registering(True)),
        ),
    ]
