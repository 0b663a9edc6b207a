"""Bounded queues: who waits for room while somebody waits for it, as a small model.

Theory of operation:

1. A producer puts items into a queue of few places and then ends; a consumer takes them. Each of the reports adds one
   wait: the consumer joins the producer before it drains, or is not there at all; the end waits until all is taken; the
   producer holds a lock, while it waits for room, that the consumer needs to make some.
2. The right rule waits for room with a bound, drains before it joins, lets go at the end, and holds no lock in a wait.
3. `InFlight` closes the circle: the producer's own answers come back through a second bounded queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on
from ..explore import Label, Property, eventually
from .small import NoEffect, Small
from .variant import Trial, Variant


class Putting(State):
    """A producer."""

    PUTTING = "The producer has something to put, or to drop."
    ENDING = "Everything is put; the producer ends when it may."
    ENDED = "The producer has ended."


class PuttingOn(Event):
    """What can happen to a producer."""

    PUT = "put", Kind.MESSAGE, "There was room."
    DROPPED = "dropped", Kind.DEADLINE, "There was none for long enough."
    ALL_PUT = "all_put", Kind.WORK, "Nothing is left to put."
    OVER = "over", Kind.MESSAGE, "Nothing keeps the producer any more."


PUTTING = Table(
    name="putting",
    purpose="A producer that puts its items and ends.",
    states=Putting,
    events=PuttingOn,
    effects=NoEffect,
    initial=Putting.PUTTING,
    final=frozenset({Putting.ENDED}),
    rows=(
        on(PuttingOn.PUT, Putting.PUTTING, None),
        on(PuttingOn.DROPPED, Putting.PUTTING, None),
        on(PuttingOn.ALL_PUT, Putting.PUTTING, Putting.ENDING),
        on(PuttingOn.OVER, Putting.ENDING, Putting.ENDED),
    ),
)


class Room(NamedTuple):
    """The producer, what it has left, and what lies in the queue."""

    producer: State = Putting.PUTTING
    left: int = 2
    queued: int = 0


@dataclass(frozen=True)
class Rules:
    """Who waits for what; see the theory. `size`: places in the queue."""

    size: int = 1
    stopped: bool = False
    joins_first: bool = False
    bounded: bool = False
    lingers: bool = False
    locked: bool = False
    coalesced: bool = False

    def moves(self, now: Room) -> Iterator[tuple[Label, Room]]:
        """What producer and consumer can do."""

        def to(event: Event, **changes: int) -> Room:
            dest = PUTTING.step(now.producer, event).dest
            return now._replace(producer=dest, **changes)

        blocked = now.producer is Putting.PUTTING and now.left > 0 and now.queued == self.size
        if now.producer is Putting.PUTTING:
            if not now.left:
                yield Label("producer", "has put everything"), to(PuttingOn.ALL_PUT)
            elif self.coalesced and now.queued:
                yield Label("producer", "finds one there already"), to(PuttingOn.PUT, left=now.left - 1)
            elif not blocked:
                yield Label("producer", "puts"), to(PuttingOn.PUT, left=now.left - 1, queued=now.queued + 1)
            elif self.bounded:
                yield Label("producer", "drops"), to(PuttingOn.DROPPED, left=now.left - 1)
        if now.producer is Putting.ENDING and not (self.lingers and now.queued):
            yield Label("producer", "ends"), to(PuttingOn.OVER)
        waits = self.stopped or (self.joins_first and now.producer is not Putting.ENDED)
        if now.queued and not waits and not (self.locked and blocked):
            yield Label("consumer", "takes"), now._replace(queued=now.queued - 1)


class Flight(NamedTuple):
    """The caller, the calls it has still to send, and what is on its way."""

    caller: State
    left: int
    calls: int = 0
    busy: bool = False
    replies: int = 0


@dataclass(frozen=True)
class InFlight:
    """`ahead`: a caller that finds no room takes replies meanwhile; else it takes them when all calls are sent."""

    collects_meanwhile: bool
    calls: int = 4

    def moves(self, now: Flight) -> Iterator[tuple[Label, Flight]]:
        """What caller and worker can do; each queue has one place."""
        if now.caller is Putting.PUTTING:
            if not now.left:
                dest = PUTTING.step(now.caller, PuttingOn.ALL_PUT).dest
                yield Label("caller", "has sent every call"), now._replace(caller=dest)
            elif not now.calls:
                yield Label("caller", "sends a call"), now._replace(left=now.left - 1, calls=1)
        collects = now.caller is Putting.ENDING or (self.collects_meanwhile and now.caller is Putting.PUTTING)
        if now.replies and collects:
            yield Label("caller", "takes a reply"), now._replace(replies=0)
        if now.caller is Putting.ENDING and not (now.calls or now.busy or now.replies):
            dest = PUTTING.step(now.caller, PuttingOn.OVER).dest
            yield Label("caller", "has every reply"), now._replace(caller=dest)
        if now.calls and not now.busy:
            yield Label("worker", "takes a call"), now._replace(calls=0, busy=True)
        if now.busy and not now.replies:
            yield Label("worker", "replies"), now._replace(busy=False, replies=1)


def _room(rules: Rules) -> Trial:
    ends: Property[Room] = eventually(
        "the producer ends",
        "Whatever the consumer does, the producer comes to its end.",
        lambda now: now.producer is Putting.ENDED,
    )
    return Trial(Small("room", Room(), rules.moves), [ends])


def _in_flight(rules: InFlight) -> Trial:
    ends: Property[Flight] = eventually(
        "every call is answered",
        "However many calls are in flight, the caller comes to have every reply.",
        lambda now: now.caller is Putting.ENDED,
    )
    return Trial(Small("room", Flight(Putting.PUTTING, rules.calls), rules.moves), [ends])


def _variant(
    name: str, sentence: str, reports: tuple[str, ...], length: int, bad: Rules, right: Rules
) -> Variant:
    return Variant(
        name, sentence, reports, "room", "the producer ends", length, lambda: _room(bad), lambda: _room(right)
    )


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        _variant(
            "join-before-drain",
            "The child cannot end before its queue has room, and the parent joins it before it reads the queue.",
            ("python/cpython#73983", "python/cpython#91594"),
            1,
            Rules(joins_first=True),
            Rules(),
        ),
        _variant(
            "publish-blocks-the-loop",
            "A side channel's queue is full because nobody reads it; the engine's loop waits for room, and all stops.",
            ("vllm-project/vllm#53859", "NVIDIA/TensorRT-LLM#18297"),
            1,
            Rules(stopped=True),
            Rules(stopped=True, bounded=True),
        ),
        _variant(
            "linger-for-ever",
            "The end waits until every message has been taken, and there is nobody to take it.",
            ("zeromq/pyzmq#1003", "NVIDIA/TensorRT-LLM#18297"),
            3,
            Rules(size=2, stopped=True, lingers=True),
            Rules(size=2, stopped=True),
        ),
        _variant(
            "a-byte-a-wake",
            "Each task writes a wake-up under the lock; the pipe is full, and its reader needs the lock to read.",
            ("python/cpython#105829",),
            1,
            Rules(locked=True),
            Rules(locked=True, coalesced=True),
        ),
        Variant(
            "in-flight-without-bound",
            "More calls are sent than the queues hold, and no reply is taken until all are sent.",
            ("ray-project/ray#47097",),
            "room",
            "every call is answered",
            6,
            bad=lambda: _in_flight(InFlight(False)),
            right=lambda: _in_flight(InFlight(True)),
        ),
    ]
