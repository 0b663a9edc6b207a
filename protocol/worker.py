"""A worker's side of the whole protocol, as one pure function from (state, fact) to (state, steps).

Theory of operation:

1. Five machines: boot (its way to READY), intake (reader of the broadcast queue), outlet (writer of its reply queue),
   serve (calls), leave (its end).
2. What a worker does by itself, in order, is its agenda: join the broadcast queue once READY is said; begin to serve
   once both queues are open. Each is an action of its own, for a process can die between any two outputs.
3. A stop or the executor's death is one fact that every machine learns, in the order written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .core import Cluster, Event, Step, Table, when
from .core.cluster import AGGREGATE, ClusterState
from .core.coupling import When, check_coupling
from .futures import SERVE_CLUSTER, ServeOn
from .life import WORKER_COUPLING
from .queues import INTAKE_CLUSTER, OUTLET_CLUSTER, Gate, GateOn, Reader, ReaderOn, SeatOn
from .ready import BOOT_CLUSTER, Boot, BootOn
from .shutdown import LEAVE_CLUSTER, LeaveOn


class WorkerState(NamedTuple):
    """Everything one worker knows."""

    boot: ClusterState
    intake: ClusterState
    outlet: ClusterState
    serve: ClusterState
    leave: ClusterState


AGENDA = (
    when(("boot", Boot.READY), then=("intake", ReaderOn.HANDLE)),
    when(("intake", Reader.OPEN), ("outlet", Gate.OPEN), then=("serve", ServeOn.BEGIN)),
)

# Facts that concern several machines. The order is the order in which they learn of it.
STOP: tuple[tuple[str, int, Event], ...] = (
    ("boot", AGGREGATE, BootOn.STOP),
    ("intake", AGGREGATE, ReaderOn.CLOSE),
    ("outlet", AGGREGATE, GateOn.CLOSE),
    ("serve", AGGREGATE, ServeOn.STOP),
    ("leave", AGGREGATE, LeaveOn.ASKED),
)
ORPHANED: tuple[tuple[str, int, Event], ...] = (
    ("boot", AGGREGATE, BootOn.ORPHANED),
    ("intake", AGGREGATE, ReaderOn.DIED),
    ("outlet", 0, SeatOn.DIED),
    ("serve", AGGREGATE, ServeOn.ORPHANED),
    ("leave", AGGREGATE, LeaveOn.ORPHANED),
)
CLUSTERS = ("boot", "intake", "outlet", "serve", "leave")


@dataclass(frozen=True)
class WorkerProtocol:
    """The clusters, the coupling between them, and the agenda. Variants and mutants are made with `but`."""

    boot: Cluster = BOOT_CLUSTER
    intake: Cluster = INTAKE_CLUSTER
    outlet: Cluster = OUTLET_CLUSTER
    serve: Cluster = SERVE_CLUSTER
    leave: Cluster = LEAVE_CLUSTER
    coupling: tuple[When, ...] = WORKER_COUPLING
    agenda: tuple[When, ...] = AGENDA
    at_stop: tuple[tuple[str, int, Event], ...] = STOP
    at_orphaned: tuple[tuple[str, int, Event], ...] = ORPHANED
    # Remembered, as in a cluster; a worker has few states, so these stay small.
    _given: dict[tuple[WorkerState, str, Event, int], tuple[WorkerState, tuple[Step, ...]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _due: dict[WorkerState, tuple[str, Event] | None] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Lint the coupling and the agenda. Raises `TableError`."""
        check_coupling("worker", self, (*self.coupling, *self.agenda), frozenset(CLUSTERS))

    def but(self, table: Table) -> WorkerProtocol:
        """The same protocol with the table of that name replaced wherever it stands."""
        changed: dict[str, Any] = {
            name: cluster.but(table)
            for name, cluster in vars(self).items()
            if isinstance(cluster, Cluster) and table.name in cluster.table_names
        }
        if not changed:
            raise LookupError(f"a worker's side has no table {table.name!r}")
        return replace(self, **changed, _given={}, _due={})

    def initial(self) -> WorkerState:
        """The process runs and has said nothing."""
        return WorkerState(
            self.boot.initial(),
            self.intake.initial(),
            self.outlet.initial(1),
            self.serve.initial(),
            self.leave.initial(),
        )

    def give(
        self, state: WorkerState, cluster: str, event: Event, slot: int = AGGREGATE
    ) -> tuple[WorkerState, tuple[Step, ...]]:
        """One event for one machine, then the coupling. Raises `IllegalEventError`; nothing has changed then."""
        key = (state, cluster, event, slot)
        known = self._given.get(key)
        if known is None:
            known = self._given[key] = self._all(state, ((cluster, slot, event),))
        return known

    def stop(self, state: WorkerState) -> tuple[WorkerState, tuple[Step, ...]]:
        """The executor closed the control channel."""
        return self._all(state, self.at_stop)

    def orphaned(self, state: WorkerState) -> tuple[WorkerState, tuple[Step, ...]]:
        """The executor's process is gone."""
        return self._all(state, self.at_orphaned)

    def due(self, state: WorkerState) -> tuple[str, Event] | None:
        """What the agenda says to do next, or None."""
        if state not in self._due:
            rows = (row for row in self.agenda if self._acts(state, row))
            self._due[state] = next(((row.cluster, row.then) for row in rows), None)
        return self._due[state]

    def _all(
        self, state: WorkerState, facts: tuple[tuple[str, int, Event], ...]
    ) -> tuple[WorkerState, tuple[Step, ...]]:
        taken: list[Step] = []
        for name, slot, event in facts:
            cluster: Cluster = getattr(self, name)
            after, steps = cluster.apply(getattr(state, name), slot, event)
            state = state._replace(**{name: after})
            taken += steps
        for row in self.coupling:
            if self._acts(state, row):
                state, steps = self._all(state, ((row.cluster, AGGREGATE, row.then),))
                taken += steps
        return state, tuple(taken)

    def _acts(self, state: WorkerState, row: When) -> bool:
        target: Cluster = getattr(self, row.cluster)
        return all(getattr(state, name)[0] in states for name, states in row.conditions) and (
            target.aggregate.moves(getattr(state, row.cluster)[0], row.then)
        )
