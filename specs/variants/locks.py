"""Locks that are never released: a holder that dies, and a handler that interrupts the holder. A small model.

Theory of operation. Two parties want one lock: two processes, or a thread and the signal handler (or finaliser) that
interrupts it. A process may die while it holds the lock; a handler runs on top of the thread, which does not move until
it returns. Neither may need the other's lock: stop messages have a channel of their own, and a handler only notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on, stay
from ..explore import Label, Property, leads_to
from .small import NoEffect, Small
from .variant import Trial, Variant


class Party(State):
    """Somebody who wants a lock."""

    IDLE = "It does not want the lock yet."
    WANTING = "It waits for the lock."
    HOLDING = "It holds the lock."
    DONE = "It has had the lock and let go."
    DEAD = "Its process is gone."


class PartyOn(Event):
    """What can happen to somebody who wants a lock."""

    WANT = "want", Kind.WORK, "It asks for the lock."
    TAKE = "take", Kind.MESSAGE, "The lock is free."
    RELEASE = "release", Kind.WORK, "It lets go."
    PASS = "pass", Kind.WORK, "It turns out that it needs no lock."
    DIED = "died", Kind.DEATH, "It is killed."


PARTY = Table(
    name="party",
    purpose="Somebody who wants a lock, has it, and lets go, or dies of it.",
    states=Party,
    events=PartyOn,
    effects=NoEffect,
    initial=Party.IDLE,
    final=frozenset({Party.DONE, Party.DEAD}),
    rows=(
        on(PartyOn.WANT, Party.IDLE, Party.WANTING),
        on(PartyOn.TAKE, Party.WANTING, Party.HOLDING),
        on(PartyOn.PASS, Party.WANTING, Party.DONE),
        on(PartyOn.RELEASE, Party.HOLDING, Party.DONE),
        on(PartyOn.DIED, [Party.WANTING, Party.HOLDING], Party.DEAD),
        *stay([Party.DONE, Party.DEAD], PartyOn.DIED),
    ),
)


class Lock(NamedTuple):
    """The first, who may be killed or interrupted, and the second, who waits for it or runs on top of it."""

    first: State = Party.IDLE
    second: State = Party.IDLE


@dataclass(frozen=True)
class Rules:
    """`interrupts`: the second is a handler on the first's thread. `needs`: the second needs the first's lock."""

    interrupts: bool
    needs: bool

    def moves(self, now: Lock) -> Iterator[tuple[Label, Lock]]:
        """What the two can do."""

        def first(event: Event) -> Lock:
            return now._replace(first=PARTY.step(now.first, event).dest)

        def second(event: Event) -> Lock:
            return now._replace(second=PARTY.step(now.second, event).dest)

        inside = now.second in (Party.WANTING, Party.HOLDING)
        if not (self.interrupts and inside):
            if now.first is Party.IDLE:
                yield Label("first", "wants the lock"), first(PartyOn.WANT)
            elif now.first is Party.WANTING and now.second is not Party.HOLDING:
                yield Label("first", "takes the lock"), first(PartyOn.TAKE)
            elif now.first is Party.HOLDING:
                yield Label("first", "lets go"), first(PartyOn.RELEASE)
        if not self.interrupts and now.first is Party.HOLDING:
            yield Label("first", "is killed", fair=False), first(PartyOn.DIED)
        if now.second is Party.IDLE:
            yield Label("second", "comes in between", fair=False), second(PartyOn.WANT)
        elif now.second is Party.WANTING:
            if not self.needs:
                yield Label("second", "does without"), second(PartyOn.PASS)
            elif now.first not in (Party.HOLDING, Party.DEAD):
                yield Label("second", "takes the lock"), second(PartyOn.TAKE)
        elif now.second is Party.HOLDING:
            yield Label("second", "lets go"), second(PartyOn.RELEASE)


def _trial(rules: Rules) -> Trial:
    property_: Property[Lock] = leads_to(
        "who wants a lock gets on",
        "Somebody who waits for a lock gets it, or learns that it needs none.",
        lambda now: now.second is Party.WANTING,
        lambda now: now.second is not Party.WANTING,
    )
    return Trial(Small("locks", Lock(), rules.moves), [property_])


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "lock-dies-with-holder",
            "A worker is killed while it holds the queue's lock; the message that says 'done' is behind that lock.",
            ("pytorch/pytorch#21554",),
            "locks",
            "who wants a lock gets on",
            4,
            bad=lambda: _trial(Rules(interrupts=False, needs=True)),
            right=lambda: _trial(Rules(interrupts=False, needs=False)),
        ),
        Variant(
            "lock-in-handler",
            "A signal handler, or a finaliser, takes a lock that the thread it interrupts holds.",
            ("benoitc/gunicorn#3004", "python/cpython#109593"),
            "locks",
            "who wants a lock gets on",
            3,
            bad=lambda: _trial(Rules(interrupts=True, needs=True)),
            right=lambda: _trial(Rules(interrupts=True, needs=False)),
        ),
    ]
