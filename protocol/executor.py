"""The executor's side of the whole protocol, as one pure function from (state, fact) to (state, steps).

Theory of operation:

1. The state is a tuple of cluster states, the calls that still owe replies, and the listeners. It is hashable and
   never mutated: the runtime holds the current one, the explorer holds thousands.
2. A fact is something that is so: a process was made, a message came, a process died, time passed, somebody asked.
   Facts that concern several protocols are given to each, in the order that the tables below write down.
3. After a fact, the coupling between the protocols is applied until nothing moves.
4. Each step is returned with the call it belongs to (0: none). Effects are in the steps; nothing is done here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .core import Cluster, Event, Identity, State, Step, Table, TableError
from .core.cluster import AGGREGATE, MEMORY, ClusterState
from .core.coupling import When, check_coupling
from .futures import CALL_CLUSTER, CALLER_CLUSTER, CallOn, FuturesDo, Reply, ReplyOn
from .life import EXECUTOR_COUPLING, LIFE_CLUSTER, LifeOn
from .queues import BROADCAST_CLUSTER, REPLIES_CLUSTER, GateOn, ReaderOn, SeatOn
from .ready import START_CLUSTER, RankStartOn, StartOn
from .shutdown import LISTENER_CLUSTER, STOP_CLUSTER, RankStopOn, StopOn

Happened = tuple[tuple[int, Step], ...]
Calls = tuple[tuple[Identity, ClusterState], ...]


class ExecutorState(NamedTuple):
    """Everything the executor knows; `calls` are those that still owe replies, oldest first."""

    life: ClusterState
    start: ClusterState
    broadcast: ClusterState
    replies: ClusterState
    stop: ClusterState
    calls: Calls = ()
    listeners: tuple[State, ...] = ()


# Facts that concern several protocols. The order is the order in which they learn of it.
RANK_MADE: tuple[tuple[str, Event], ...] = (("stop", RankStopOn.SPAWNED), ("start", RankStartOn.SPAWNED))
RANK_DIED: tuple[tuple[str, Event], ...] = (
    ("stop", RankStopOn.DIED),
    ("start", RankStartOn.DIED),
    ("broadcast", SeatOn.DIED),
    ("replies", ReaderOn.DIED),
)
START_DEADLINE: tuple[tuple[str, Event], ...] = (
    ("start", StartOn.DEADLINE),
    ("broadcast", GateOn.DEADLINE),
    ("replies", GateOn.DEADLINE),
)
CLUSTERS = ("life", "start", "broadcast", "replies", "stop")
_RESTLESS = 100  # steps a machine after which a coupling is taken to run in circles


@dataclass(frozen=True)
class ExecutorProtocol:
    """The clusters and the coupling between them. Variants and mutants are made with `but`."""

    life: Cluster = LIFE_CLUSTER
    start: Cluster = START_CLUSTER
    broadcast: Cluster = BROADCAST_CLUSTER
    replies: Cluster = REPLIES_CLUSTER
    stop: Cluster = STOP_CLUSTER
    call: Cluster = CALL_CLUSTER
    caller: Cluster = CALLER_CLUSTER
    listener: Cluster = LISTENER_CLUSTER
    coupling: tuple[When, ...] = EXECUTOR_COUPLING
    rank_made: tuple[tuple[str, Event], ...] = RANK_MADE
    rank_died: tuple[tuple[str, Event], ...] = RANK_DIED
    at_start_deadline: tuple[tuple[str, Event], ...] = START_DEADLINE
    _rest: dict[ExecutorState, tuple[ExecutorState, Happened]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Lint the coupling. Raises `TableError`."""
        check_coupling("executor", self, self.coupling, frozenset(CLUSTERS))

    def but(self, table: Table) -> ExecutorProtocol:
        """The same protocol with the table of that name replaced wherever it stands."""
        changed: dict[str, Any] = {
            name: cluster.but(table)
            for name, cluster in vars(self).items()
            if isinstance(cluster, Cluster) and table.name in cluster.table_names
        }
        if not changed:
            raise LookupError(f"the executor's side has no table {table.name!r}")
        return replace(self, **changed, _rest={})

    def initial(self, ranks: int) -> ExecutorState:
        """Nothing has been made yet, for `ranks` ranks."""
        return ExecutorState(
            self.life.initial(),
            self.start.initial(ranks),
            self.broadcast.initial(ranks),
            self.replies.initial(ranks),
            self.stop.initial(ranks),
        )

    # --- facts ------------------------------------------------------------------------------------------------------

    def give(
        self,
        state: ExecutorState,
        cluster: str,
        slot: int,
        event: Event,
        own: Identity | None = None,
        message: Identity | None = None,
    ) -> tuple[ExecutorState, Happened]:
        """One event for one machine, then the coupling. Raises `IllegalEventError`; nothing has changed then."""
        state, steps = self._one(state, cluster, slot, event, own, message)
        return self._settle(state, tuple((0, step) for step in steps))

    def made(self, state: ExecutorState, rank: int) -> tuple[ExecutorState, Happened]:
        """The process of `rank` was made."""
        return self._all(state, tuple((name, rank, event) for name, event in self.rank_made))

    def died(self, state: ExecutorState, rank: int) -> tuple[ExecutorState, Happened]:
        """The process of `rank` is gone: each protocol learns it, and each call that it owes a reply."""
        happened: list[tuple[int, Step]] = []
        for name, event in self.rank_died:
            state, steps = self._one(state, name, rank, event)
            happened += [(0, step) for step in steps]
        calls = []
        for identity, call in state.calls:
            call, steps = self.call.apply(call, rank, ReplyOn.DIED)
            happened += [(identity.call, step) for step in steps]
            calls.append((identity, call))
        return self._settle(state._replace(calls=_owing(calls)), tuple(happened))

    def start_deadline(self, state: ExecutorState) -> tuple[ExecutorState, Happened]:
        """The time for the whole start is over."""
        return self._all(state, tuple((name, AGGREGATE, event) for name, event in self.at_start_deadline))

    def stop_alarm(self, state: ExecutorState) -> tuple[ExecutorState, Happened]:
        """The time of the present stage of the stop is over."""
        return self.give(state, "stop", AGGREGATE, StopOn.ALARM)

    def ask_stop(self, state: ExecutorState) -> tuple[ExecutorState, Happened]:
        """Somebody asks for a stop."""
        return self.give(state, "life", AGGREGATE, LifeOn.STOP)

    def fault(self, state: ExecutorState) -> tuple[ExecutorState, Happened]:
        """Something is broken beyond one call."""
        return self.give(state, "life", AGGREGATE, LifeOn.FAULT)

    def submit(self, state: ExecutorState, identity: Identity) -> tuple[ExecutorState, Happened]:
        """A call is submitted. Raises `IllegalEventError` unless the executor is SERVING.

        Calls are numbered upwards: two of one number could not be told apart.
        """
        if state.calls and identity.call <= state.calls[-1][0].call:
            raise ValueError(f"call {identity.call} comes after call {state.calls[-1][0].call}")
        life, steps = self.life.apply(state.life, AGGREGATE, LifeOn.SUBMIT)
        if life != state.life:
            state = state._replace(life=life)
        call = self.call.initial(len(state.start) - 1)
        return (
            _with_calls(state, (*state.calls, (identity, call))),
            tuple((identity.call, step) for step in steps),
        )

    def reply(
        self, state: ExecutorState, rank: int, event: ReplyOn, message: Identity
    ) -> tuple[ExecutorState, Happened]:
        """An answer came from `rank`. It is offered to the calls that the rank owes, oldest first.

        No step at all means that nobody owed it: it is stale, and dropped.
        """
        happened: list[tuple[int, Step]] = []
        for index, (identity, call) in enumerate(state.calls):
            if call[rank + 1] is not Reply.OWED:
                continue
            own = Identity(identity.epoch, rank, identity.call)
            after, steps = self.call.apply(call, rank, event, own, message)
            happened += [(identity.call, step) for step in steps]
            if FuturesDo.PASS_ON not in steps[0].effects or after != call:
                kept = ((identity, after),) if Reply.OWED in after else ()
                calls = (*state.calls[:index], *kept, *state.calls[index + 1 :])
                return _with_calls(state, calls), tuple(happened)
        return state, ()

    def give_up(self, state: ExecutorState, number: int, event: CallOn) -> tuple[ExecutorState, Happened]:
        """Cancel call `number`, or let its deadline pass. It stays in the books while replies are owed."""
        for index, (identity, call) in enumerate(state.calls):
            if identity.call == number:
                after, steps = self.call.apply(call, AGGREGATE, event)
                calls = (*state.calls[:index], (identity, after), *state.calls[index + 1 :])
                return _with_calls(state, calls), tuple((number, step) for step in steps)
        return state, ()

    def listen(self, state: ExecutorState) -> tuple[ExecutorState, Happened]:
        """A failure callback is registered; if the executor has failed, it is told in the same breath."""
        return self._settle(state._replace(listeners=(*state.listeners, self.listener.aggregate.initial)), ())

    # --- coupling ---------------------------------------------------------------------------------------------------

    def _one(
        self,
        state: ExecutorState,
        name: str,
        slot: int,
        event: Event,
        own: Identity | None = None,
        message: Identity | None = None,
    ) -> tuple[ExecutorState, tuple[Step, ...]]:
        cluster: Cluster = getattr(self, name)
        after, steps = cluster.apply(getattr(state, name), slot, event, own, message)
        changed: dict[str, Any] = {name: after}
        return state._replace(**changed), steps

    def _all(
        self, state: ExecutorState, facts: tuple[tuple[str, int, Event], ...]
    ) -> tuple[ExecutorState, Happened]:
        happened: list[tuple[int, Step]] = []
        for name, slot, event in facts:
            state, steps = self._one(state, name, slot, event)
            happened += [(0, step) for step in steps]
        return self._settle(state, tuple(happened))

    def _settle(self, state: ExecutorState, happened: Happened) -> tuple[ExecutorState, Happened]:
        """Apply the coupling until nothing moves. Remembered by state: the coupling depends on nothing else."""
        known = self._rest.get(state)
        if known is None:
            if len(self._rest) >= MEMORY:
                self._rest.clear()
            known = self._rest[state] = self._rested(state)
        return known[0], happened + known[1]

    def _rested(self, state: ExecutorState) -> tuple[ExecutorState, Happened]:
        happened: list[tuple[int, Step]] = []
        while (moved := self._couple(state)) is not None:
            state, steps = moved
            happened += steps
            if len(happened) > _RESTLESS * (len(state.start) + len(state.calls) + len(state.listeners)):
                raise TableError("executor", ["the coupling between the protocols never comes to rest"])
        return state, tuple(happened)

    def _couple(self, state: ExecutorState) -> tuple[ExecutorState, Happened] | None:
        """Apply the first row that acts; None if none does."""
        for row in self.coupling:
            if not all(getattr(state, name)[0] in states for name, states in row.conditions):
                continue
            if row.cluster == "call":
                for index, (identity, call) in enumerate(state.calls):
                    if self.call.aggregate.moves(call[0], row.then):
                        after, steps = self.call.apply(call, AGGREGATE, row.then)
                        calls = (*state.calls[:index], (identity, after), *state.calls[index + 1 :])
                        return _with_calls(state, calls), tuple((identity.call, step) for step in steps)
            elif row.cluster == "listener":
                for index, listener in enumerate(state.listeners):
                    if self.listener.aggregate.moves(listener, row.then):
                        (told,), steps = self.listener.apply((listener,), AGGREGATE, row.then)
                        listeners = (*state.listeners[:index], told, *state.listeners[index + 1 :])
                        numbered = tuple((0, step._replace(slot=index)) for step in steps)
                        return state._replace(listeners=listeners), numbered
            elif getattr(self, row.cluster).aggregate.moves(getattr(state, row.cluster)[0], row.then):
                state, steps = self._one(state, row.cluster, AGGREGATE, row.then)
                return state, tuple((0, step) for step in steps)
        return None


def _owing(calls: list[tuple[Identity, ClusterState]]) -> Calls:
    return tuple((identity, call) for identity, call in calls if Reply.OWED in call)


def _with_calls(state: ExecutorState, calls: Calls) -> ExecutorState:
    return ExecutorState(
        state.life, state.start, state.broadcast, state.replies, state.stop, calls, state.listeners
    )
