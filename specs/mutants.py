"""Broken tables, made from the good ones: what a checker that checks anything must convict.

Theory of operation:

1. A mutant is one table with one small defect: a row is dropped (for one source), leads elsewhere, loses an effect, or
   has two effects in the other order; or one of the table's guards always holds, never holds, or means its opposite.
   A guard changes in the whole table at once: by halves, the rows would overlap, and lint would say so.
2. Lint refuses many of them already. They are made without it, so that the checker is tried on all; `lint` says what
   lint would have said.
3. A broken table may have states without end, so a search is cut at `ENOUGH`; a violation found by then is one.
4. `trial` runs models until one convicts. All properties of that model are judged, so that the one that somebody would
   think of is named, whichever has the shortest counterexample.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from ..protocol.core import Effect, Identity, Table
from ..protocol.core.lint import faults
from ..protocol.core.table import Guard, Row, compiled
from ..protocol.executor import ExecutorProtocol
from ..protocol.worker import WorkerProtocol
from .explore import Limits, Report, Verdict, check
from .models import MODELS, Model

ENOUGH = Limits(states=60_000)


@dataclass(frozen=True)
class Mutant:
    """A broken table and what was done to it."""

    name: str
    table: Table

    @property
    def lint(self) -> tuple[str, ...]:
        """What lint says of it; empty if it would be imported."""
        return tuple(faults(self.table))

    def protocols(self) -> tuple[ExecutorProtocol, WorkerProtocol]:
        """Both sides, with the broken table wherever the good one stands."""
        executor, worker = ExecutorProtocol(), WorkerProtocol()
        with suppress(LookupError):  # a side that has no such table stays as it is
            executor = executor.but(self.table)
        with suppress(LookupError):
            worker = worker.but(self.table)
        return executor, worker


def with_rows(table: Table, rows: Iterable[Row]) -> Table:
    """The same table with other rows, without lint."""
    made = copy.copy(table)
    kept = tuple(rows)
    object.__setattr__(made, "rows", kept)
    object.__setattr__(made, "alternatives", compiled(kept))
    return made


def mutants(table: Table) -> Iterator[Mutant]:
    """Every mutant of `table`, in a fixed order."""
    yield from _dropped(table)
    yield from _redirected(table)
    yield from _effects(table)
    yield from _guards(table)


def swapped(table: Table, first: int, second: int) -> Table:
    """The table in which two rows have exchanged what they lead to: destination and effects. Without lint."""
    rows = [copy.copy(row) for row in table.rows]
    one, other = rows[first], rows[second]
    for row, source in ((one, table.rows[second]), (other, table.rows[first])):
        row["dest"], row["after"] = source["dest"], list(source["after"])
    return with_rows(table, rows)


def row_of(table: Table, trigger: str, source: str, dest: str) -> int:
    """The position of a row, by the names of its event, one of its sources, and its destination ("" if it stays).

    Raises LookupError if there is none.
    """
    for index, row in enumerate(table.rows):
        leads = "" if row["dest"] is None else row["dest"].name
        if row["trigger"].value == trigger and leads == dest and any(s.name == source for s in row["source"]):
            return index
    raise LookupError(f"table {table.name!r} has no row {source} --{trigger}--> {dest or '(stays)'}")


def without_row(table: Table, trigger: str, source: str, dest: str) -> Mutant:
    """The mutant that lacks one row, for one of its sources."""
    return _without(table, row_of(table, trigger, source, dest), source)


def with_guard(table: Table, guard: Guard, how: str) -> Mutant:
    """The mutant in which `guard` "always holds", "never holds", or "is negated"."""
    changed = _HOW[how](guard)

    def replaced(guards: list[Guard]) -> list[Guard]:
        return [changed if one is guard else one for one in guards]

    rows: list[Row] = [
        {**row, "conditions": replaced(row["conditions"]), "unless": replaced(row["unless"])}
        for row in table.rows
    ]
    return Mutant(f"{table.name}: {guard.__name__} {how}", with_rows(table, rows))


def without_effect(table: Table, trigger: str, source: str, dest: str, effect: str) -> Mutant:
    """The mutant whose row, for all its sources, lacks one effect."""
    index = row_of(table, trigger, source, dest)
    left = [one for one in table.rows[index]["after"] if one.value != effect]
    return _with_effects(table, index, left, f"without {effect}")


def _text(row: Row, source: str | None = None) -> str:
    sources = source or "|".join(state.name for state in row["source"])
    guards = [guard.__name__ for guard in row["conditions"]] + [f"not {g.__name__}" for g in row["unless"]]
    words = f"{row['trigger'].value} [{', '.join(guards)}]" if guards else row["trigger"].value
    return f"{sources} --{words}--> {'(stays)' if row['dest'] is None else row['dest'].name}"


def _replaced(table: Table, index: int, rows: list[Row]) -> Table:
    return with_rows(table, [*table.rows[:index], *rows, *table.rows[index + 1 :]])


def _without(table: Table, index: int, source: str) -> Mutant:
    row = table.rows[index]
    left = [state for state in row["source"] if state.name != source]
    kept: list[Row] = [{**row, "source": left}] if left else []
    return Mutant(f"{table.name}: drop {_text(row, source)}", _replaced(table, index, kept))


def _dropped(table: Table) -> Iterator[Mutant]:
    for index, row in enumerate(table.rows):
        for source in row["source"]:
            yield _without(table, index, source.name)


def _redirected(table: Table) -> Iterator[Mutant]:
    for index, row in enumerate(table.rows):
        for source in row["source"]:
            others = [state for state in row["source"] if state is not source]
            here = source if row["dest"] is None else row["dest"]
            for dest in table.states:
                if dest is here:
                    continue
                rows: list[Row] = [{**row, "source": [source], "dest": dest}]
                if others:
                    rows.append({**row, "source": others})
                name = f"{table.name}: {_text(row, source.name)} leads to {dest.name}"
                yield Mutant(name, _replaced(table, index, rows))


def _effects(table: Table) -> Iterator[Mutant]:
    for index, row in enumerate(table.rows):
        effects = row["after"]
        for at, effect in enumerate(effects):
            yield _with_effects(table, index, [*effects[:at], *effects[at + 1 :]], f"without {effect.value}")
        for one, other in combinations(range(len(effects)), 2):
            turned = list(effects)
            turned[one], turned[other] = turned[other], turned[one]
            words = f"with {turned[one].value} before {turned[other].value}"
            yield _with_effects(table, index, turned, words)


def _with_effects(table: Table, index: int, effects: list[Effect], words: str) -> Mutant:
    row = table.rows[index]
    return Mutant(f"{table.name}: {_text(row)} {words}", _replaced(table, index, [{**row, "after": effects}]))


def _guards(table: Table) -> Iterator[Mutant]:
    found = {guard: None for row in table.rows for guard in (*row["conditions"], *row["unless"])}
    for guard in found:
        for how in _HOW:
            yield with_guard(table, guard, how)


def _always(_guard: Guard) -> Guard:
    def holds(_own: Identity, _message: Identity) -> bool:
        return True

    return holds


def _never(_guard: Guard) -> Guard:
    def fails(_own: Identity, _message: Identity) -> bool:
        return False

    return fails


def _negated(guard: Guard) -> Guard:
    def opposite(own: Identity, message: Identity) -> bool:
        return not guard(own, message)

    return opposite


_HOW = {"always holds": _always, "never holds": _never, "is negated": _negated}


# --- trial --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conviction:
    """Which model convicted a mutant, and which of its properties it violates."""

    model: str
    properties: tuple[str, ...]
    length: int
    """Steps of the shortest counterexample."""
    report: Report


def trial(
    mutant: Mutant, models: Iterable[Model] = tuple(MODELS.values()), limits: Limits | None = ENOUGH
) -> Conviction | None:
    """Run models until one convicts the mutant; None if none does."""
    executor, worker = mutant.protocols()
    for model in models:
        found = convicted(model, executor, worker, limits)
        if found is not None:
            return found
    return None


def convicted(
    model: Model,
    executor: ExecutorProtocol | None = None,
    worker: WorkerProtocol | None = None,
    limits: Limits | None = ENOUGH,
) -> Conviction | None:
    """Run one model on these protocols; None if none of its properties is violated."""
    world = model.world(executor=executor, worker=worker)
    report = check(world, model.properties(world), limits)
    wrong = [outcome for outcome in report.outcomes if outcome.verdict is Verdict.VIOLATED]
    if not wrong:
        return None
    runs = [len(outcome.counterexample) for outcome in wrong if outcome.counterexample is not None]
    return Conviction(model.name, tuple(outcome.name for outcome in wrong), min(runs, default=0), report)
