"""What a message is on its way: one of a sequence, on one channel, whole. Small models.

Theory of operation:

1. A message may get lost. Only its number tells the next one's reader, and only a deadline tells the last one's.
2. Two channels are not ordered with each other: what READY on the one promises need not be so on the other.
3. A sender can die between the halves of a message; whoever reads the second half waits for it or for the death.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on
from ..explore import Label, Property, leads_to, never
from .edit import ignored
from .small import NoEffect, Small
from .variant import Trial, Variant


class Reading(State):
    """A reader of a message that comes in two halves."""

    EXPECTING = "The reader waits for the next message."
    HALF = "The first half is here; the reader waits for the second."
    WHOLE = "The message is here."
    BROKEN = "The message will never be whole, or never come; the reader knows."


class ReadingOn(Event):
    """What can happen to a reader."""

    FIRST = "first", Kind.MESSAGE, "The first half came."
    SECOND = "second", Kind.MESSAGE, "The second half came."
    GAP = "gap", Kind.MESSAGE, "What came is not the next one."
    DIED = "died", Kind.DEATH, "The sender is gone."
    DEADLINE = "deadline", Kind.DEADLINE, "The reader has waited long enough."


READING = Table(
    name="half_read",
    purpose="A reader of a message in two halves, from a sender that may die or be cut off.",
    states=Reading,
    events=ReadingOn,
    effects=NoEffect,
    initial=Reading.EXPECTING,
    final=frozenset({Reading.WHOLE, Reading.BROKEN}),
    rows=(
        on(ReadingOn.FIRST, Reading.EXPECTING, Reading.HALF),
        on(ReadingOn.SECOND, Reading.HALF, Reading.WHOLE),
        on(ReadingOn.GAP, [Reading.EXPECTING, Reading.HALF], Reading.BROKEN),
        on(ReadingOn.DIED, [Reading.EXPECTING, Reading.HALF], Reading.BROKEN),
        on(ReadingOn.DEADLINE, [Reading.EXPECTING, Reading.HALF], Reading.BROKEN),
    ),
)
_DEAF_IN_THE_MIDDLE = ignored(READING, ReadingOn.DIED, Reading.HALF)


class Halves(NamedTuple):
    """The reader, how many halves were written and read, and whether the sender lives."""

    reader: State = Reading.EXPECTING
    written: int = 0
    read: int = 0
    sender: bool = True


@dataclass(frozen=True)
class Frame:
    """One message in two halves, by a sender that may die between them; read by `table`."""

    table: Table

    def moves(self, now: Halves) -> Iterator[tuple[Label, Halves]]:
        """What sender and reader do."""
        if now.sender and now.written < 2:
            yield Label("sender", "writes a half"), now._replace(written=now.written + 1)
        if now.sender:
            yield Label("sender", "is killed", fair=False), now._replace(sender=False)
        if now.reader not in (Reading.EXPECTING, Reading.HALF):
            return
        if now.written > now.read:
            event = ReadingOn.FIRST if now.reader is Reading.EXPECTING else ReadingOn.SECOND
            dest = self.table.step(now.reader, event).dest
            yield Label("reader", "reads a half"), now._replace(reader=dest, read=now.read + 1)
        elif not now.sender:
            dest = self.table.step(now.reader, ReadingOn.DIED).dest
            yield Label("reader", "sees the sender's end"), now._replace(reader=dest)


class Link(NamedTuple):
    """Numbered messages: how many were sent, which lie in the channel, how many were taken."""

    sent: int = 0
    lying: tuple[int, ...] = ()
    taken: int = 0
    lost: int = 0
    reader: State = Reading.EXPECTING


@dataclass(frozen=True)
class Sequence:
    """Two messages, of which one may get lost; `numbered`: the reader looks at the number, and at the time."""

    numbered: bool

    def moves(self, now: Link) -> Iterator[tuple[Label, Link]]:
        """What sender, channel and reader do."""
        if now.sent < 2:
            number = now.sent + 1
            yield Label("sender", f"sends {number}"), now._replace(sent=number, lying=(*now.lying, number))
            if not now.lost:
                yield Label("channel", f"loses {number}", fair=False), now._replace(sent=number, lost=number)
        if now.reader is not Reading.EXPECTING:
            return
        if now.lying:
            first = now.lying[0]
            if self.numbered and first != now.taken + 1:
                broken = READING.step(now.reader, ReadingOn.GAP).dest
                yield Label("reader", f"misses {now.taken + 1}"), now._replace(reader=broken)
            else:
                yield (
                    Label("reader", f"takes {first}"),
                    now._replace(lying=now.lying[1:], taken=now.taken + 1),
                )
        elif self.numbered and now.taken < 2 and now.sent == 2:
            broken = READING.step(now.reader, ReadingOn.DEADLINE).dest
            yield Label("reader", "has waited long enough"), now._replace(reader=broken)


class Channels(NamedTuple):
    """A worker that says READY on one channel and is connected on another; the work that was sent to it."""

    ready: bool = False
    connected: bool = False
    sent: bool = False
    lost: bool = False


@dataclass(frozen=True)
class Ready:
    """`same_channel`: READY travels on the channel that the work will come on."""

    same_channel: bool

    def moves(self, now: Channels) -> Iterator[tuple[Label, Channels]]:
        """What worker and front end do."""
        if not now.connected:
            yield Label("worker", "is connected"), now._replace(connected=True)
        if not now.ready and (now.connected or not self.same_channel):
            yield Label("worker", "says READY"), now._replace(ready=True)
        if now.ready and not now.sent:
            yield Label("front end", "sends work"), now._replace(sent=True, lost=not now.connected)


def _frame(table: Table) -> Trial:
    asked: Property[Halves] = leads_to(
        "half a message is no wait for ever",
        "A reader whose sender is gone gets the message, or knows that it will not.",
        lambda now: not now.sender and now.reader in (Reading.EXPECTING, Reading.HALF),
        lambda now: now.reader in (Reading.WHOLE, Reading.BROKEN),
    )
    return Trial(Small("messages", Halves(), Frame(table).moves), [asked])


def _sequence(numbered: bool) -> Trial:
    asked: Property[Link] = leads_to(
        "a loss is noticed",
        "When a message is lost, its reader comes to know, by the next one's number or by the time.",
        lambda now: bool(now.lost),
        lambda now: now.reader is Reading.BROKEN,
    )
    return Trial(Small("messages", Link(), Sequence(numbered).moves), [asked])


def _ready(same_channel: bool) -> Trial:
    asked: Property[Channels] = never(
        "READY is kept",
        "What is sent to a worker after its READY reaches it.",
        lambda now: now.lost,
        twin=lambda now: now.sent,
    )
    return Trial(Small("messages", Channels(), Ready(same_channel).moves), [asked])


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "no-sequence",
            "Messages carry no number and waits have no limit: one is lost, and both sides wait for each other.",
            ("vllm-project/vllm#50835",),
            "messages",
            "a loss is noticed",
            3,
            bad=lambda: _sequence(False),
            right=lambda: _sequence(True),
        ),
        Variant(
            "ready-on-another-channel",
            "READY comes on a pipe and the work goes to a socket that is not connected yet.",
            ("vllm-project/vllm#15906",),
            "messages",
            "READY is kept",
            2,
            bad=lambda: _ready(False),
            right=lambda: _ready(True),
        ),
        Variant(
            "half-a-message",
            "The sender is killed between the halves of a message; the reader waits in the middle of it.",
            ("pytorch/pytorch#114688",),
            "messages",
            "half a message is no wait for ever",
            3,
            bad=lambda: _frame(_DEAF_IN_THE_MIDDLE),
            right=lambda: _frame(READING),
            table=_DEAF_IN_THE_MIDDLE,
        ),
    ]
