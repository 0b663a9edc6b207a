"""Changed tables and changed coupling: what a variant differs by, written as an edit of the good one.

Theory of operation. Each edit names rows by event and source, and fails when the table has no such row, so that a
variant cannot outlive the row it spoils. Edits are made without lint: several of the reference system's rules are
refused by it, and are to be convicted by the checker all the same. What lint says of a variant is shown beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...protocol.core import Effect, Event, State, Table, on
from ...protocol.core.coupling import When
from ...protocol.core.table import Guard, Row
from ...protocol.executor import ExecutorProtocol
from ..mutants import with_rows


def one_by_one(table: Table) -> Iterator[Row]:
    """The table's rows, each with a single source."""
    for row in table.rows:
        for source in row["source"]:
            yield {**row, "source": [source]}


def changed(
    table: Table, trigger: Event, sources: State | tuple[State, ...], dest: State | None, *after: Effect
) -> Table:
    """The table whose rows for `trigger` in `sources` lead to `dest` (None: stay there) and have the effects `after`.

    Guards are kept. Raises LookupError if one of the sources has no such row.
    """
    wanted = sources if isinstance(sources, tuple) else (sources,)
    rows: list[Row] = []
    met: set[State] = set()
    for row in one_by_one(table):
        # By class as well: two machines may spell an event alike.
        if row["source"][0] in wanted and row["trigger"] is trigger:
            met.add(row["source"][0])
            row = {**row, "dest": dest, "after": list(after)}
        rows.append(row)
    if missing := set(wanted) - met:
        raise LookupError(f"{table.name!r} has no row for {trigger.value!r} in {missing}")
    return with_rows(table, rows)


def ignored(table: Table, trigger: Event, *sources: State) -> Table:
    """The table that stays where it is, and does nothing, on `trigger` in `sources`."""
    return changed(table, trigger, sources, None)


def added(table: Table, trigger: Event, source: State, dest: State, *after: Effect) -> Table:
    """The table with one more row, in place of whatever stood for that event and source."""
    rows = [r for r in one_by_one(table) if r["source"][0] is not source or r["trigger"] is not trigger]
    return with_rows(table, [*rows, on(trigger, source, dest, after=after)])


def unguarded(table: Table, guard: Guard) -> Table:
    """The table that never asks `guard`: its conditions are gone, and so are the rows for where it fails."""
    rows: list[Row] = [
        {**row, "conditions": [one for one in row["conditions"] if one is not guard]}
        for row in table.rows
        if guard not in row["unless"]
    ]
    if len(rows) == len(table.rows):
        raise LookupError(f"{table.name!r} does not ask {guard.__name__}")
    return with_rows(table, rows)


def uncoupled(protocol: ExecutorProtocol, cluster: str, then: Event) -> ExecutorProtocol:
    """The protocol without the coupling rows that bring about `then` in `cluster`."""
    rows = tuple(row for row in protocol.coupling if (row.cluster, row.then) != (cluster, then))
    if len(rows) == len(protocol.coupling):
        raise LookupError(f"no coupling brings about {then.value!r} in {cluster!r}")
    return coupled(protocol, rows)


def coupled(protocol: ExecutorProtocol, rows: tuple[When, ...]) -> ExecutorProtocol:
    """The protocol with these coupling rows instead of its own."""
    return replace(protocol, coupling=rows, _rest={})


def swapped(protocol: ExecutorProtocol, **clusters: Any) -> ExecutorProtocol:
    """The protocol with other clusters, by field name."""
    return replace(protocol, **clusters, _rest={})
