"""How states, events and coupling rows are worded in the small language.

Theory of operation. These functions turn words of the tables into text and know nothing of where it goes; `tables` puts
it into procedures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ...protocol.core import Cluster, Event, State, Table
from ...protocol.core.coupling import Coupled, When
from .glue.words import Machine

T = TypeVar("T")


def name_of(word: State | Event | Machine) -> str:
    return f"{type(word).__name__}.{word.name}"


def there(*machines: Machine) -> str:
    """The condition that the model has such machines at all; folding then leaves out what can never be."""
    counts = {_COUNTED.get(machine) for machine in machines}
    return f"{counts.pop()} > 0 and " if len(counts) == 1 and None not in counts else ""


_COUNTED = {
    Machine.CALL: "CALLS",
    Machine.CALL_OF: "CALLS",
    Machine.CALLER: "THREADS",
    Machine.LISTENER: "LISTENERS",
}


def tuple_of(words: Iterable[State | Event | Machine]) -> str:
    return "(" + "".join(f"{name_of(word)}, " for word in words).strip() + ")"


def among(variable: str, states: Sequence[State]) -> str:
    return f"{variable} in {tuple_of(states)}" if states else ""


def chain(items: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Each with the word that begins its branch."""
    for number, item in enumerate(items):
        yield ("elif" if number else "if"), item


def target(machine: str, slot: str, number: str, event: str, indent: int) -> Iterator[str]:
    lines = (
        "w.found = True",
        f"w.machine = {machine}",
        f"w.slot = {slot}",
        f"w.number = {number}",
        f"w.event = {event}",
    )
    yield from (" " * indent + line for line in lines)


def _moved_by(table: Table, event: Event) -> list[State]:
    return [state for state in table.states if table.moves(state, event)]


def acts_when(row: When, table: Table, watched: str, state: str) -> str:
    """When a row between clusters acts; empty if never."""
    moved = among(state, _moved_by(table, row.then))
    if not moved:
        return ""
    met = [among(watched.format(name), sorted(states, key=str)) for name, states in row.conditions]
    return " and ".join([*met, moved])


def coupling_rows(
    cluster: Cluster, name: str, aggregate: str, member: str, members: str, number: str
) -> Iterator[str]:
    """The coupling rows inside one cluster, each as an `if`."""
    for row in cluster.coupling:
        yield from _coupled(cluster, row, name, aggregate, member, members, number)


def _coupled(
    cluster: Cluster, row: Coupled, name: str, aggregate: str, member: str, members: str, number: str
) -> Iterator[str]:
    states = sorted(row.states, key=str)
    if row.quantity == "each":
        assert cluster.member is not None
        moved = among(member, _moved_by(cluster.member, row.then))
        watched = among(aggregate, states)
        if moved and watched:
            yield f"        for q in range({members}):"
            yield f"            if not w.found and {watched} and {moved}:"
            yield from target(f"Machine.{name.upper()}_OF", "q", number, name_of(row.then), 16)
        return
    moved = among(aggregate, _moved_by(cluster.aggregate, row.then))
    if moved:
        quantity = "all" if row.quantity == "every" else "any"
        watched = among(member, states) or "False"
        yield f"        if not w.found and {moved} and {quantity}({watched} for q in range({members})):"
        yield from target(f"Machine.{name.upper()}", "0", number, name_of(row.then), 12)
