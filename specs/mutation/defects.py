"""Every defect that is tried, under one roof: of a table, of a coupling row, of a list of facts.

Theory of operation:

1. A defect gives the two protocols with one thing wrong in them, or says why they cannot even be made: what lint
   refuses is refused when it is imported, and never runs.
2. `rows` names the pairs of state and event whose rows differ, so that a model in which none of them is ever taken
   need not be asked: it would find exactly what it finds without the defect (see `baseline`).
3. The list has a fixed order and each name is unique: a process that is told a name finds the same defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial

from ...protocol.core import Table
from ...protocol.executor import ExecutorProtocol
from ...protocol.worker import WorkerProtocol
from ..diagrams import tables
from ..mutants import Mutant, mutants
from . import coupling

Key = tuple[str, str, str]
"""Table, state and event, by name."""
Sides = tuple[ExecutorProtocol, WorkerProtocol]


@dataclass(frozen=True)
class Defect:
    """One thing that is wrong: where, what, and the protocols that have it."""

    where: str
    """The table, or the list of rows or facts, that is changed."""
    name: str
    rows: tuple[frozenset[Key], ...]
    """Per row that differs, the pairs of state and event in which it acts. What a coupling row brings about may be met
    in any state."""
    asks: bool
    """Whether it may act where the good row was only looked at: a row that stayed, and now leads elsewhere; a coupling
    row that acts more often."""
    make: Callable[[], Sides]
    refused: Callable[[], tuple[str, ...]]

    @cached_property  # to lint all takes seconds, and a process tries one
    def lint(self) -> tuple[str, ...]:
        """What is refused when it is imported; empty if nothing is."""
        return self.refused()

    @property
    def touches(self) -> frozenset[Key]:
        """Every pair of state and event at which a row differs."""
        return frozenset().union(*self.rows)


@cache
def defects() -> tuple[Defect, ...]:
    """All of them."""
    return (*_of_tables(), *_of_coupling())


def _lint(made: Mutant | coupling.Change) -> tuple[str, ...]:
    return made.lint


def _of_tables() -> Iterator[Defect]:
    for name, table in tables().items():
        for mutant in mutants(table):
            yield Defect(
                name, mutant.name, *_differs(table, mutant), mutant.protocols, partial(_lint, mutant)
            )


def _differs(table: Table, mutant: Mutant) -> tuple[tuple[frozenset[Key], ...], bool]:
    keys: list[Key] = []
    asks = False
    changed = mutant.table.alternatives
    for (state, event), rows in table.alternatives.items():
        other = changed.get((state, event))
        if other != rows:
            keys.append((table.name, state.name, event.value))
            asks = asks or (rows[0].dest is state and other is not None and other[0].dest is not state)
    return tuple(frozenset({key}) for key in keys), asks


def _of_coupling() -> Iterator[Defect]:
    for change in coupling.changes():
        rows = tuple(
            frozenset((table.name, state.name, event.value) for state in table.states)
            for table, event in change.takes
        )
        yield Defect(change.where, change.name, rows, change.more, change.make, partial(_lint, change))
