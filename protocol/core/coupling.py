"""How one machine's state brings about another machine's event, as rows.

Three kinds of row, which between them say everything about how machines act on each other:

- `every(MEMBER, STATE, ..., then=EVENT)`: every member is in one of the states → the aggregate gets the event;
- `some(MEMBER, STATE, ..., then=EVENT)`: at least one is → the aggregate gets the event;
- `each(AGGREGATE, STATE, ..., then=EVENT)`: the aggregate is in one of the states → every member gets the event.

`when(...)` is the same between clusters. A row acts only where its event moves the machine that gets it, and rows are
applied until none acts any more: a fixed point, as in h11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .errors import TableError
from .table import Table
from .vocabulary import Event, State


@dataclass(frozen=True)
class Coupled:
    """One coupling row inside a cluster: `watched` in `states`, by `quantity`, brings about `then`."""

    quantity: Literal["every", "some", "each"]
    watched: Table
    states: frozenset[State]
    then: Event


def every(watched: Table, *states: State, then: Event) -> Coupled:
    """All members of `watched` are in one of `states`."""
    return Coupled("every", watched, frozenset(states), then)


def some(watched: Table, *states: State, then: Event) -> Coupled:
    """At least one member of `watched` is in one of `states`."""
    return Coupled("some", watched, frozenset(states), then)


def each(watched: Table, *states: State, then: Event) -> Coupled:
    """The aggregate `watched` is in one of `states`; every member gets the event."""
    return Coupled("each", watched, frozenset(states), then)


@dataclass(frozen=True)
class When:
    """One coupling row between clusters: each named cluster's aggregate is in one of the states."""

    conditions: tuple[tuple[str, frozenset[State]], ...]
    cluster: str
    then: Event


def when(*conditions: tuple[str, State | tuple[State, ...]], then: tuple[str, Event]) -> When:
    """`when(("start", Start.UP), then=("life", LifeOn.RANKS_READY))`."""
    normal = tuple(
        (name, frozenset(states if isinstance(states, tuple) else (states,))) for name, states in conditions
    )
    return When(normal, *then)


def check_coupling(whose: str, protocol: object, rows: Sequence[When], watched: frozenset[str]) -> None:
    """Lint rows between the clusters that `protocol` has as attributes; `watched` may stand in conditions.

    Raises `TableError` with every fault found.
    """
    found = []
    for row in rows:
        for name, states in row.conditions:
            if name not in watched:
                found.append(f"there is no cluster {name!r} to watch")
            elif not states <= set(getattr(protocol, name).aggregate.states):
                found.append(f"{name!r} lacks a state of {sorted(state.name for state in states)}")
        target = getattr(getattr(protocol, row.cluster, None), "aggregate", None)
        if target is None:
            found.append(f"there is no cluster {row.cluster!r} to give {row.then.value!r} to")
        elif not isinstance(row.then, target.events):
            found.append(f"{row.then.value!r} is no event of {row.cluster!r}")
    if found:
        raise TableError(f"{whose} (coupling)", found)
