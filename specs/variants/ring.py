"""A ring of slots with a written flag and a read flag a reader: the reference system's queue, as a model of its own.

Theory of operation:

1. One writer and some readers go round the ring. A slot is written only when every reader has read what was in it, and
   read by each reader once; then its read flag is set. Both sides wait at the slot that is their next one.
2. A reader can raise while it reads (the message does not unpickle), and can die. Its flags are then set all the same:
   a raise counts as read (`finally`), and the writer stops waiting for the dead.
3. Each rule has a flag here that takes it away. Messages are numbered, so that what is lost, overwritten or read out of
   order shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on, stay
from ..explore import Label, Property, always, leads_to, never
from .small import NoEffect, Small, put
from .variant import Trial, Variant


class Reading(State):
    """One reader of the ring."""

    WAITING = "The reader waits at its next slot."
    INSIDE = "The reader holds the slot and makes sense of the message."
    DEAD = "The reader's process is gone."


class ReadingOn(Event):
    """What can happen to a reader."""

    ENTER = "enter", Kind.MESSAGE, "The slot is written and this reader has not read it."
    LEAVE = "leave", Kind.WORK, "The message is understood."
    RAISED = "raised", Kind.WORK, "The message is not understood."
    DIED = "died", Kind.DEATH, "The process is gone."


READING = Table(
    name="reading",
    purpose="One reader of a ring, between two slots or in one.",
    states=Reading,
    events=ReadingOn,
    effects=NoEffect,
    initial=Reading.WAITING,
    final=frozenset({Reading.DEAD}),
    rows=(
        on(ReadingOn.ENTER, Reading.WAITING, Reading.INSIDE),
        on(ReadingOn.LEAVE, Reading.INSIDE, Reading.WAITING),
        on(ReadingOn.RAISED, Reading.INSIDE, Reading.WAITING),
        on(ReadingOn.DIED, [Reading.WAITING, Reading.INSIDE], Reading.DEAD),
        *stay(Reading.DEAD, ReadingOn.DIED),
    ),
)


class Slot(NamedTuple):
    """One slot: the number of the message in it (0: none yet), and which readers have read it."""

    message: int = 0
    read: frozenset[int] = frozenset()


class Ring(NamedTuple):
    """The ring, its readers, and what each has read (the last number)."""

    slots: tuple[Slot, ...]
    written: int
    write_at: int
    readers: tuple[State, ...]
    read_at: tuple[int, ...]
    got: tuple[tuple[int, ...], ...]
    deaths: int


@dataclass(frozen=True)
class Rules:
    """The rules of the ring; each may be taken away. `size` slots, `messages` to send, to `readers` readers."""

    size: int = 1
    readers: int = 1
    messages: int = 2
    poison: int = 0
    """The number of a message on which every reader raises."""
    deaths: int = 0
    waits_in_place: bool = True
    waits_for_all: bool = True
    releases_on_raise: bool = True
    sees_the_dead: bool = True

    def start(self) -> Ring:
        """Nothing has been written."""
        nobody = tuple(() for _ in range(self.readers))
        waiting: tuple[State, ...] = (Reading.WAITING,) * self.readers
        return Ring((Slot(),) * self.size, 0, 0, waiting, (0,) * self.readers, nobody, self.deaths)

    def moves(self, now: Ring) -> Iterator[tuple[Label, Ring]]:
        """What the writer and the readers can do."""
        if now.written < self.messages:
            yield from self._write(now)
        for reader, state in enumerate(now.readers):
            if state is not Reading.DEAD:
                yield from self._read(now, reader, state)

    def _write(self, now: Ring) -> Iterator[tuple[Label, Ring]]:
        at = now.write_at
        if not self._is_free(now, at):
            skipped = (at + 1) % self.size
            if self.waits_in_place or not self._is_free(now, skipped):
                return
            at = skipped  # the busy slot is left for another one
        number = now.written + 1
        after = now._replace(
            slots=put(now.slots, at, Slot(number)), written=number, write_at=(at + 1) % self.size
        )
        yield Label("writer", f"writes {number} to slot {at}"), after

    def _is_free(self, now: Ring, at: int) -> bool:
        slot = now.slots[at]
        if not slot.message:
            return True
        expected = [
            reader
            for reader, state in enumerate(now.readers)
            if not (self.sees_the_dead and state is Reading.DEAD)
        ]
        held = [reader in slot.read for reader in expected]
        return all(held) if self.waits_for_all else not held or any(held)

    def _read(self, now: Ring, reader: int, state: State) -> Iterator[tuple[Label, Ring]]:
        name, at = f"reader {reader}", now.read_at[reader]
        slot = now.slots[at]

        def moved(event: Event, **changes: object) -> Ring:
            dest = READING.step(state, event).dest
            return now._replace(readers=put(now.readers, reader, dest), **changes)  # type: ignore[arg-type]

        def over(event: Event, released: bool) -> Ring:
            if not released:
                return moved(event)
            return moved(
                event,
                slots=put(now.slots, at, slot._replace(read=slot.read | {reader})),
                read_at=put(now.read_at, reader, (at + 1) % self.size),
                got=put(now.got, reader, (*now.got[reader], slot.message)),
            )

        if state is Reading.WAITING:
            if slot.message and reader not in slot.read:
                yield Label(name, f"enters slot {at}"), moved(ReadingOn.ENTER)
            elif not self.waits_in_place:
                at = (at + 1) % self.size
                yield Label(name, f"skips to slot {at}"), now._replace(read_at=put(now.read_at, reader, at))
        if state is Reading.INSIDE:
            if slot.message == self.poison:
                # Kept, it is met again at the next read, and raises again.
                released = self.releases_on_raise
                yield Label(name, f"raises on {slot.message}"), over(ReadingOn.RAISED, released)
            else:
                yield Label(name, f"has read {slot.message}"), over(ReadingOn.LEAVE, True)
        if now.deaths:
            yield Label(name, "dies", fair=False), moved(ReadingOn.DIED, deaths=now.deaths - 1)


def _in_order(now: Ring) -> bool:
    return all(got == tuple(range(1, len(got) + 1)) for got in now.got)


def _is_blocked(rules: Rules) -> Callable[[Ring], bool]:
    return lambda now: now.written < rules.messages


def _lives(now: Ring) -> bool:
    return any(state is not Reading.DEAD for state in now.readers)


def _overwritten(now: Ring) -> bool:
    present = {slot.message for slot in now.slots}
    return any(
        len(got) < now.written and len(got) + 1 not in present
        for state, got in zip(now.readers, now.got, strict=True)
        if state is not Reading.DEAD
    )


def properties(rules: Rules) -> list[Property[Ring]]:
    """What a ring promises."""
    waits = _is_blocked(rules)
    return [
        always(
            "each reads all in order",
            "What a reader has read are the first messages, each once, in the order in which they were written.",
            _in_order,
            twin=lambda now: any(now.got),
        ),
        never(
            "nothing unread is overwritten",
            "What a living reader has still to read is in the ring.",
            _overwritten,
            twin=lambda now: now.written > 1,
        ),
        leads_to(
            "the writer gets on",
            "Whatever readers do or die of, the writer comes to write all it has.",
            waits,
            lambda now: not waits(now),
        ),
        leads_to(
            "what is written is read",
            "While a reader lives, each message comes to be read by it.",
            lambda now: _lives(now) and _behind(now),
            lambda now: not _behind(now),
        ),
    ]


def _behind(now: Ring) -> bool:
    return any(
        len(got) < now.written and state is not Reading.DEAD
        for state, got in zip(now.readers, now.got, strict=True)
    )


def _trial(rules: Rules) -> Trial:
    return Trial(Small("ring", rules.start(), rules.moves), properties(rules))


def _variant(
    name: str, sentence: str, reports: tuple[str, ...], violates: str, length: int, bad: Rules, right: Rules
) -> Variant:
    return Variant(
        name, sentence, reports, "ring", violates, length, lambda: _trial(bad), lambda: _trial(right)
    )


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        _variant(
            "skips-the-busy-slot",
            "Whoever finds its next slot not ready goes on to another one: messages are read out of order, or never.",
            ("vllm-project/vllm#5801",),
            "each reads all in order",
            5,
            Rules(size=2, waits_in_place=False),
            Rules(size=2),
        ),
        _variant(
            "overwrites-unread",
            "One reader's flag is taken for everybody's, and a slot is used again while another still has to read it.",
            ("vllm-project/vllm#44414",),
            "nothing unread is overwritten",
            4,
            Rules(readers=2, waits_for_all=False),
            Rules(readers=2),
        ),
        _variant(
            "raise-keeps-the-slot",
            "A reader that raises inside its slot never sets its flag: the ring fills up, and the writer waits on.",
            ("vllm-project/vllm#45224",),
            "the writer gets on",
            3,
            Rules(poison=1, releases_on_raise=False),
            Rules(poison=1),
        ),
        _variant(
            "dead-reader-blocks-writer",
            "A reader dies with its slot unread; the writer waits for its flag for ever, and nobody can wake it.",
            ("vllm-project/vllm#45644", "orioledb/orioledb#1197"),
            "the writer gets on",
            2,
            Rules(deaths=1, sees_the_dead=False),
            Rules(deaths=1),
        ),
    ]
