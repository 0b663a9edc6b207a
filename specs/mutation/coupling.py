"""Mutants of what stands between the tables: coupling rows, the worker's agenda, and the facts that several learn.

Theory of operation:

1. A coupling row is dropped, watches one state less, loses a condition, asks for some where it asked for every one (or
   the other way round), or brings about another event of the same machine. Two neighbouring rows change places.
2. A fact that several protocols learn is kept from one of them, or told to two of them in the other order.
3. What the lint of clusters and couplings refuses cannot be made, and `lint` says why.
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


@dataclass(frozen=True)
class Change:
    """One list of rows with one thing wrong in it."""

    where: str
    name: str
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
        for words, changed in _of_rows(rows, partial(_target, targets)):
            yield Change(where, f"{where}: {words}", _inside(users, changed))
    for where, side, attribute in (
        ("executor coupling", "executor", "coupling"),
        ("worker coupling", "worker", "coupling"),
        ("agenda", "worker", "agenda"),
    ):
        protocol = executor if side == "executor" else worker
        whens: tuple[When, ...] = getattr(protocol, attribute)
        for words, between in _of_rows(whens, partial(_watched, protocol)):
            yield Change(where, f"{where}: {words}", _between(side, attribute, between))
    for side, attribute in (
        ("executor", "rank_made"),
        ("executor", "rank_died"),
        ("executor", "at_start_deadline"),
        ("worker", "at_stop"),
        ("worker", "at_orphaned"),
    ):
        facts: tuple[Any, ...] = getattr(executor if side == "executor" else worker, attribute)
        for words, told in _of_list(facts, lambda fact: f"{fact[0]} {fact[-1].value}"):
            yield Change(attribute, f"{attribute}: {words}", _between(side, attribute, told))


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


def _of_list(rows: Sequence[Any], text: Callable[[Any], str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    kept = tuple(rows)
    for at, row in enumerate(kept):
        yield f"drop {text(row)}", (*kept[:at], *kept[at + 1 :])
    for at in range(len(kept) - 1):
        one, other = kept[at], kept[at + 1]
        yield f"{text(other)} before {text(one)}", (*kept[:at], other, one, *kept[at + 2 :])


def _of_rows(rows: Sequence[Any], target: Callable[[Any], Table]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    kept = tuple(rows)
    yield from _of_list(kept, _text)
    for at, row in enumerate(kept):
        for words, changed in _of_row(row, target(row).events):
            yield f"{_text(row)} {words}", (*kept[:at], changed, *kept[at + 1 :])


def _of_row(row: Any, events: type[Event]) -> Iterator[tuple[str, Any]]:
    for event in events:
        if event is not row.then:
            yield f"brings about {event.value}", replace(row, then=event)
    if isinstance(row, Coupled):
        if row.quantity != "each":
            other: Any = "some" if row.quantity == "every" else "every"
            yield f"asks for {other}", replace(row, quantity=other)
        if len(row.states) > 1:
            for state in sorted(row.states, key=lambda state: state.name):
                yield f"does not watch {state.name}", replace(row, states=row.states - {state})
        return
    for at, (cluster, states) in enumerate(row.conditions):
        rest = (*row.conditions[:at], *row.conditions[at + 1 :])
        if rest:
            yield f"does not watch {cluster}", replace(row, conditions=rest)
        if len(states) > 1:
            for state in sorted(states, key=lambda state: state.name):
                less = (*row.conditions[:at], (cluster, states - {state}), *row.conditions[at + 1 :])
                yield f"does not watch {cluster} {state.name}", replace(row, conditions=less)


def _text(row: Any) -> str:
    if isinstance(row, Coupled):
        return f"{row.quantity} {row.watched.name} {_states(row.states)} → {row.then.value}"
    watched = ", ".join(f"{cluster} {_states(states)}" for cluster, states in row.conditions)
    return f"{watched} → {row.cluster} {row.then.value}"


def _states(states: frozenset[Any]) -> str:
    return "|".join(sorted(state.name for state in states))
