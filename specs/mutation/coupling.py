"""Mutants of what stands between the tables: coupling rows, the worker's agenda, and the facts that several learn.

Theory of operation:

1. A coupling row is dropped, watches one state less, loses a condition, asks for some where it asked for every one (or
   the other way round), or brings about another event of the same machine. Two neighbouring rows change places.
2. A fact that several protocols learn is kept from one of them, or told to two of them in the other order.
3. `takes` are the tables and events of the rows that change. A change that only lets rows act less, or in another
   order, shows nowhere but where one of them acted. (The first row that acts is taken, again and again: as long as
   neither of two neighbours acts, it does not matter which is looked at first.) One that lets a row act `more` may show
   anywhere.
4. What the lint of clusters and couplings refuses cannot be made, and `lint` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...protocol.core import Cluster, Coupled, Event, Table, TableError
from ...protocol.core.coupling import When
from ...protocol.executor import ExecutorProtocol
from ...protocol.worker import WorkerProtocol

Sides = tuple[ExecutorProtocol, WorkerProtocol]
Taken = tuple[Table, Event]


@dataclass(frozen=True)
class Change:
    """One list of rows with one thing wrong in it."""

    where: str
    name: str
    takes: tuple[Taken, ...]
    """What the changed rows bring about."""
    more: bool
    """Whether a row may act where it did not."""
    make: Callable[[], Sides]

    @property
    def lint(self) -> tuple[str, ...]:
        """Why the protocols cannot be made; empty if they can."""
        try:
            self.make()
        except TableError as error:
            return error.faults
        return ()


def changes() -> Iterator[Change]:
    """Every change, in a fixed order."""
    executor, worker = ExecutorProtocol(), WorkerProtocol()
    shared: dict[tuple[Coupled, ...], list[tuple[str, str]]] = {}
    for side, protocol in (("executor", executor), ("worker", worker)):
        for name, cluster in vars(protocol).items():
            if isinstance(cluster, Cluster) and cluster.coupling:
                shared.setdefault(cluster.coupling, []).append((side, name))
    for rows, users in shared.items():
        where = f"coupling of {' and '.join(name for _, name in users)}"
        targets = getattr(executor if users[0][0] == "executor" else worker, users[0][1])
        for words, takes, more, changed in _of_rows(rows, partial(_target, targets)):
            yield Change(where, f"{where}: {words}", takes, more, _inside(users, changed))
    for where, side, attribute in (
        ("executor coupling", "executor", "coupling"),
        ("worker coupling", "worker", "coupling"),
        ("agenda", "worker", "agenda"),
    ):
        protocol = executor if side == "executor" else worker
        whens: tuple[When, ...] = getattr(protocol, attribute)
        for words, takes, more, between in _of_rows(whens, partial(_watched, protocol)):
            yield Change(where, f"{where}: {words}", takes, more, _between(side, attribute, between))
    for side, attribute in (
        ("executor", "rank_made"),
        ("executor", "rank_died"),
        ("executor", "at_start_deadline"),
        ("worker", "at_stop"),
        ("worker", "at_orphaned"),
    ):
        knows = executor if side == "executor" else worker
        facts: tuple[Any, ...] = getattr(knows, attribute)
        hears = partial(_hears, knows)
        for words, takes, told in _of_list(facts, lambda fact: f"{fact[0]} {fact[-1].value}", hears):
            yield Change(attribute, f"{attribute}: {words}", takes, False, _between(side, attribute, told))


def _inside(users: list[tuple[str, str]], rows: tuple[Any, ...]) -> Callable[[], Sides]:
    def make() -> Sides:
        executor, worker = ExecutorProtocol(), WorkerProtocol()
        for side, name in users:
            old: Cluster = getattr(executor if side == "executor" else worker, name)
            new: dict[str, Any] = {name: Cluster(old.name, old.aggregate, old.member, rows)}
            if side == "executor":
                executor = replace(executor, **new, _rest={})
            else:
                worker = replace(worker, **new, _given={}, _due={})
        return executor, worker

    return make


def _between(side: str, attribute: str, rows: tuple[Any, ...]) -> Callable[[], Sides]:
    def make() -> Sides:
        executor, worker = ExecutorProtocol(), WorkerProtocol()
        new: dict[str, Any] = {attribute: rows}
        if side == "executor":
            return replace(executor, **new, _rest={}), worker
        return executor, replace(worker, **new, _given={}, _due={})

    return make


def _target(cluster: Cluster, row: Coupled) -> Table:
    target = cluster.member if row.quantity == "each" else cluster.aggregate
    assert target is not None
    return target


def _watched(protocol: ExecutorProtocol | WorkerProtocol, row: When) -> Table:
    cluster: Cluster = getattr(protocol, row.cluster)
    return cluster.aggregate


def _hears(protocol: ExecutorProtocol | WorkerProtocol, fact: tuple[Any, ...]) -> Taken:
    cluster: Cluster = getattr(protocol, fact[0])
    table = cluster.aggregate
    if cluster.member is not None and isinstance(fact[-1], cluster.member.events):
        table = cluster.member
    return table, fact[-1]


def _of_list(
    rows: Sequence[Any], text: Callable[[Any], str], taken: Callable[[Any], Taken]
) -> Iterator[tuple[str, tuple[Taken, ...], tuple[Any, ...]]]:
    kept = tuple(rows)
    for at, row in enumerate(kept):
        yield f"drop {text(row)}", (taken(row),), (*kept[:at], *kept[at + 1 :])
    for at in range(len(kept) - 1):
        one, other = kept[at], kept[at + 1]
        words = f"{text(other)} before {text(one)}"
        yield words, (taken(one), taken(other)), (*kept[:at], other, one, *kept[at + 2 :])


def _of_rows(
    rows: Sequence[Any], target: Callable[[Any], Table]
) -> Iterator[tuple[str, tuple[Taken, ...], bool, tuple[Any, ...]]]:
    kept = tuple(rows)

    def taken(row: Any) -> Taken:
        return target(row), row.then

    for words, takes, changed in _of_list(kept, _text, taken):
        yield words, takes, False, changed
    for at, row in enumerate(kept):
        for words, more, other in _of_row(row, target(row).events):
            changed = (*kept[:at], other, *kept[at + 1 :])
            yield f"{_text(row)} {words}", (taken(row),), more, changed


def _of_row(row: Any, events: type[Event]) -> Iterator[tuple[str, bool, Any]]:
    """What is wrong, whether the row may act more than before, and the row."""
    for event in events:
        if event is not row.then:
            yield f"brings about {event.value}", True, replace(row, then=event)
    if isinstance(row, Coupled):
        if row.quantity != "each":
            other: Any = "some" if row.quantity == "every" else "every"
            yield f"asks for {other}", True, replace(row, quantity=other)
        if len(row.states) > 1:
            for state in sorted(row.states, key=lambda state: state.name):
                yield f"does not watch {state.name}", False, replace(row, states=row.states - {state})
        return
    for at, (cluster, states) in enumerate(row.conditions):
        rest = (*row.conditions[:at], *row.conditions[at + 1 :])
        if rest:
            yield f"does not watch {cluster}", True, replace(row, conditions=rest)
        if len(states) > 1:
            for state in sorted(states, key=lambda state: state.name):
                less = (*row.conditions[:at], (cluster, states - {state}), *row.conditions[at + 1 :])
                yield f"does not watch {cluster} {state.name}", False, replace(row, conditions=less)


def _text(row: Any) -> str:
    if isinstance(row, Coupled):
        return f"{row.quantity} {row.watched.name} {_states(row.states)} → {row.then.value}"
    watched = ", ".join(f"{cluster} {_states(states)}" for cluster, states in row.conditions)
    return f"{watched} → {row.cluster} {row.then.value}"


def _states(states: frozenset[Any]) -> str:
    return "|".join(sorted(state.name for state in states))
