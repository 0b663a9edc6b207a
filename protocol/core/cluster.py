"""An aggregate machine, its members, and the coupling between them, stepped as one pure function.

Theory of operation:

1. A cluster's state is a tuple: the aggregate's state, then each member's, in rank order. It is hashable, so it is a
   piece of the explorer's state as it stands.
2. `apply` takes a state and one event for the aggregate or one member, and gives the next state and the steps taken:
   the event's own, then every step that the coupling brings about, to a fixed point.
3. The result depends on nothing but (state, slot, event, chosen row), so it is remembered: at run time a step is one
   look-up. The memory has a bound: N ranks answer in 2^N orders, and an executor runs for months.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from .coupling import Coupled
from .errors import IllegalEventError, TableError
from .table import Table
from .vocabulary import Effect, Event, Identity, State

AGGREGATE = -1
MEMORY = 1 << 14  # remembered steps a cluster, about 1 kB each


class Step(NamedTuple):
    """One transition taken. `slot` is the member's rank; -1 is the aggregate."""

    cluster: str
    machine: str
    slot: int
    event: Event
    source: State
    dest: State
    effects: tuple[Effect, ...]

    def __str__(self) -> str:
        whose = "" if self.slot < 0 else f"[{self.slot}]"
        return f"{self.cluster}.{self.machine}{whose}: {self.source.name} --{self.event.value}--> {self.dest.name}"


ClusterState = tuple[State, ...]


class Cluster:
    """`aggregate` with any number of `member`s; without `member`, the aggregate alone."""

    def __init__(
        self, name: str, aggregate: Table, member: Table | None = None, coupling: Sequence[Coupled] = ()
    ) -> None:
        self.name = name
        self.aggregate = aggregate
        self.member = member
        self.coupling = tuple(coupling)
        self._memo: dict[tuple[ClusterState, int, Event, int], tuple[ClusterState, tuple[Step, ...]]] = {}
        self._lint()

    def _lint(self) -> None:
        found = []
        for row in self.coupling:
            watched, target = (
                (self.aggregate, self.member) if row.quantity == "each" else (self.member, self.aggregate)
            )
            if row.watched is not watched:
                found.append(f"{row.quantity}({row.watched.name}) does not watch this cluster's own machine")
            elif watched is None or not row.states <= set(watched.states):
                found.append(f"{row.quantity}({row.watched.name}) names states that the machine lacks")
            if target is None or not isinstance(row.then, target.events):  # by class: see lint
                found.append(f"{row.then.value!r} is no event of the machine that would get it")
            elif any(
                alternative.conditions or alternative.unless
                for (_, event), rows in target.alternatives.items()
                if event is row.then
                for alternative in rows
            ):
                found.append(f"{row.then.value!r} is guarded; a coupling has no message to show to a guard")
        if found:
            raise TableError(f"{self.name} (coupling)", found)

    @property
    def table_names(self) -> frozenset[str]:
        """The names of the tables it is made of."""
        return frozenset(table.name for table in (self.aggregate, self.member) if table)

    def but(self, table: Table) -> Cluster:
        """The same cluster with the table of that name replaced."""

        def swapped(old: Table) -> Table:
            return table if old.name == table.name else old

        return Cluster(
            self.name,
            swapped(self.aggregate),
            None if self.member is None else swapped(self.member),
            [replace(row, watched=swapped(row.watched)) for row in self.coupling],
        )

    def initial(self, members: int = 0) -> ClusterState:
        """The state in which everything begins, with `members` members."""
        if self.member is None:
            return (self.aggregate.initial,)
        return (self.aggregate.initial, *(self.member.initial for _ in range(members)))

    def table(self, slot: int) -> Table:
        """The table of the aggregate (-1) or of a member."""
        if slot < 0:
            return self.aggregate
        assert self.member is not None
        return self.member

    def apply(
        self,
        state: ClusterState,
        slot: int,
        event: Event,
        own: Identity | None = None,
        message: Identity | None = None,
    ) -> tuple[ClusterState, tuple[Step, ...]]:
        """Give `event` to the aggregate (slot -1) or a member; returns the next state and the steps taken.

        Raises `IllegalEventError` if the machine has no row for it; nothing has changed then.
        """
        table = self.table(slot)
        try:
            choice = table.select(state[slot + 1], event, own, message)
        except IllegalEventError as error:
            raise type(error)(
                f"{self.name}.{error.machine}", None if slot < 0 else slot, error.state, event, error.allowed
            ) from None
        key = (state, slot, event, choice)
        known = self._memo.get(key)
        if known is None:
            if len(self._memo) >= MEMORY:
                self._memo.clear()
            known = self._memo[key] = self._compute(state, slot, event, choice)
        return known

    def _compute(
        self, state: ClusterState, slot: int, event: Event, choice: int
    ) -> tuple[ClusterState, tuple[Step, ...]]:
        states = list(state)
        steps: list[Step] = []
        self._take(states, steps, slot, event, choice)
        limit = sum(len(table.states) for table in (self.aggregate, self.member) if table) * len(states)
        while self._couple(states, steps):
            if len(steps) > limit:
                raise TableError(self.name, ["the coupling never comes to rest"])
        return tuple(states), tuple(steps)

    def _take(self, states: list[State], steps: list[Step], slot: int, event: Event, choice: int) -> None:
        table = self.table(slot)
        source = states[slot + 1]
        row = table.alternatives[source, event][choice]
        states[slot + 1] = row.dest
        steps.append(Step(self.name, table.name, slot, event, source, row.dest, row.after))

    def _couple(self, states: list[State], steps: list[Step]) -> bool:
        """Apply the first coupling row that acts; False if none does."""
        members = states[1:]
        for row in self.coupling:
            if row.quantity == "each":
                if states[0] not in row.states:
                    continue
                for slot, state in enumerate(members):
                    if self.table(slot).moves(state, row.then):
                        self._take(states, steps, slot, row.then, 0)
                        return True
                continue
            hold = [state in row.states for state in members]
            met = all(hold) if row.quantity == "every" else any(hold)
            if met and self.aggregate.moves(states[0], row.then):
                self._take(states, steps, AGGREGATE, row.then, 0)
                return True
        return False
