"""A flag, and a bell that says "look again": lost wake-ups, as a model of their own.

Theory of operation:

1. The truth is in the flag (here: how many messages there are). The bell is a hint. A reader looks, arms the bell,
   looks again, and only then parks; what comes after the arming rings it, so nothing can fall between.
2. A bell may be lost, or be used up by another operation on the same descriptor (an edge). So each park has a bound,
   and its end is a look.
3. Taking away the second look, the bound, or a ring gives the lost wake-ups of the reports. They show with *one*
   message followed by silence: any later message rescues the reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on
from ..explore import Label, Property, leads_to
from .small import NoEffect, Small
from .variant import Trial, Variant


class Wait(State):
    """A reader that waits for something to be there."""

    LOOKING = "The reader has not looked since it was last told to."
    ARMED = "The reader saw nothing and asked to be woken."
    PARKED = "The reader sleeps."
    DONE = "The reader has seen what it waited for."


class WaitOn(Event):
    """What can happen to a waiting reader."""

    SEEN = "seen", Kind.MESSAGE, "It is there."
    NOTHING = "nothing", Kind.WORK, "It is not there."
    PARK = "park", Kind.WORK, "There was nothing at the second look either."
    BELL = "bell", Kind.MESSAGE, "The bell rang."
    BOUND = "bound", Kind.DEADLINE, "The reader has slept long enough."


WAIT = Table(
    name="wait",
    purpose="A reader that waits: look, arm, look again, park.",
    states=Wait,
    events=WaitOn,
    effects=NoEffect,
    initial=Wait.LOOKING,
    final=frozenset({Wait.DONE}),
    rows=(
        on(WaitOn.SEEN, [Wait.LOOKING, Wait.ARMED], Wait.DONE),
        on(WaitOn.NOTHING, Wait.LOOKING, Wait.ARMED),
        on(WaitOn.PARK, Wait.ARMED, Wait.PARKED),
        on(WaitOn.BELL, Wait.PARKED, Wait.LOOKING),
        on(WaitOn.BOUND, Wait.PARKED, Wait.LOOKING),
    ),
)


class Doorbell(NamedTuple):
    """The reader, the flag, the bell, and what may still go wrong."""

    reader: State = Wait.LOOKING
    there: bool = False
    rung: bool = False
    losses: int = 0
    edges: int = 0


@dataclass(frozen=True)
class Rules:
    """The rules of waiting; each may be taken away."""

    looks_again: bool = True
    bounded: bool = True
    rings: bool = True
    remembers: bool = True
    """A bell that rings before the reader sleeps is heard when it goes to sleep."""
    losses: int = 0
    edges: int = 0

    def moves(self, now: Doorbell) -> Iterator[tuple[Label, Doorbell]]:
        """What the writer, the reader and the descriptor can do."""

        def reader(event: Event, word: str, **changes: bool) -> tuple[Label, Doorbell]:
            dest = WAIT.step(now.reader, event).dest
            return Label("reader", word), now._replace(reader=dest, **changes)

        if not now.there:
            heard = self.rings and (self.remembers or now.reader is Wait.PARKED)
            yield Label("writer", "puts it there, rings"), now._replace(there=True, rung=heard)
            if now.losses:
                lost = now._replace(there=True, losses=now.losses - 1)
                yield Label("writer", "puts it there, the ring is lost", fair=False), lost
        if now.rung and now.edges:
            eaten = now._replace(rung=False, edges=now.edges - 1)
            yield Label("reader", "uses up the edge with an operation of its own", fair=False), eaten
        if now.reader is Wait.LOOKING:
            event = WaitOn.SEEN if now.there else WaitOn.NOTHING
            yield reader(event, "looks")
        elif now.reader is Wait.ARMED:
            if now.there and self.looks_again:
                yield reader(WaitOn.SEEN, "looks again")
            else:
                yield reader(WaitOn.PARK, "goes to sleep")
        elif now.reader is Wait.PARKED:
            if now.rung:
                yield reader(WaitOn.BELL, "is woken", rung=False)
            if self.bounded:
                yield reader(WaitOn.BOUND, "has slept long enough")


def properties() -> list[Property[Doorbell]]:
    """What waiting promises."""
    return [
        leads_to(
            "what is there is seen",
            "Whatever becomes of the bell, a reader comes to see what it waits for.",
            lambda now: now.there and now.reader is not Wait.DONE,
            lambda now: now.reader is Wait.DONE,
        )
    ]


def _trial(rules: Rules) -> Trial:
    start = Doorbell(losses=rules.losses, edges=rules.edges)
    return Trial(Small("bell", start, rules.moves), properties())


def _variant(
    name: str, sentence: str, reports: tuple[str, ...], length: int, bad: Rules, right: Rules
) -> Variant:
    return Variant(
        name,
        sentence,
        reports,
        "bell",
        "what is there is seen",
        length,
        lambda: _trial(bad),
        lambda: _trial(right),
    )


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        _variant(
            "look-then-park",
            "A signal comes between the last look and the sleep, when nobody listens for it: the sleeper sleeps on.",
            ("python/cpython#2139", "python/cpython#74888"),
            3,
            Rules(looks_again=False, bounded=False, remembers=False),
            Rules(bounded=False, remembers=False),
        ),
        _variant(
            "edge-used-up",
            "Another operation on the descriptor uses up its edge; whoever waits for it sleeps with a message pending.",
            ("zeromq/pyzmq#1203", "zeromq/pyzmq#1085"),
            4,
            Rules(bounded=False, edges=1),
            Rules(edges=1),
        ),
        _variant(
            "lost-ring-unbounded-park",
            "The one notification is lost, and nothing follows: a park without a bound never ends.",
            ("blehnen/DotNetWorkQueue#331",),
            3,
            Rules(bounded=False, losses=1),
            Rules(losses=1),
        ),
        _variant(
            "change-without-a-ring",
            "A cancel takes the work away and rings for nobody; the manager sleeps, with nothing left to wake it.",
            ("python/cpython#94440",),
            3,
            Rules(rings=False, bounded=False),
            Rules(bounded=False),
        ),
    ]
