"""Random facts for both sides: whatever comes, in whatever order, the invariants hold after every step.

A fact that is not allowed must be refused and change nothing. Facts are drawn by rank and name, never by what the
state would like, so most programs contain refusals; they are drawn weighted, so that most programs also get far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from procession.protocol.core import Cluster, Event, Identity, IllegalEventError, Kind, State, Step, Table
from procession.protocol.core.cluster import ClusterState
from procession.protocol.core.coupling import When
from procession.protocol.core.table import Row
from procession.protocol.executor import ExecutorProtocol, ExecutorState, Happened
from procession.protocol.futures import CALL, REPLY, Call, CallOn, FuturesDo, Reply, ReplyOn, ServeOn
from procession.protocol.life import LIFE, Life, LifeDo, LifeOn
from procession.protocol.queues import SEAT, Gate, GateOn, QueueDo, Reader, ReaderOn, Seat, SeatOn
from procession.protocol.ready import Boot, BootOn, RankStart, RankStartOn, ReadyDo, Start
from procession.protocol.shutdown import (
    LISTENER,
    Leave,
    LeaveOn,
    Listener,
    ListenerOn,
    RankStop,
    Stop,
    StopDo,
)
from procession.protocol.worker import WorkerProtocol, WorkerState

EPOCH = 2
Fact = tuple[Any, ...]


def moves_left(
    states: Any, protocol: Any, coupling: tuple[When, ...], clusters: tuple[str, ...]
) -> list[str]:
    """Every coupling row, inside or between clusters, that would still act: at rest there is none."""
    found = []
    for name in clusters:
        cluster: Cluster = getattr(protocol, name)
        state: ClusterState = getattr(states, name)
        for row in cluster.coupling:
            if row.quantity == "each":
                if state[0] in row.states:
                    found += [
                        f"{name}[{slot}] {row.then}"
                        for slot, member in enumerate(state[1:])
                        if cluster.table(slot).moves(member, row.then)
                    ]
            else:
                hold = [member in row.states for member in state[1:]]
                met = all(hold) if row.quantity == "every" else any(hold)
                if met and cluster.aggregate.moves(state[0], row.then):
                    found.append(f"{name} {row.then}")
    for when in coupling:
        target: Cluster = getattr(protocol, when.cluster)
        held = {"call": "calls", "listener": "listeners"}.get(when.cluster)
        if held is None:
            aggregates = [getattr(states, when.cluster)[0]]
        else:
            aggregates = [one[1][0] if held == "calls" else one for one in getattr(states, held)]
        if all(getattr(states, name)[0] in named for name, named in when.conditions):
            found += [
                f"{when.cluster} {when.then}" for one in aggregates if target.aggregate.moves(one, when.then)
            ]
    return found


# --- the executor's side ----------------------------------------------------------------------------------------------

WORDS = [event for event in RankStartOn if event.kind is Kind.MESSAGE]
EXECUTOR_CLUSTERS = ("life", "start", "broadcast", "replies", "stop")


class Book:
    """What an executor did so far, told from its steps alone; raises AssertionError at the first invariant broken."""

    def __init__(self, protocol: ExecutorProtocol, ranks: int) -> None:
        self.protocol = protocol
        self.ranks = ranks
        self.state = protocol.initial(ranks)
        self.settled: Counter[int] = Counter()
        self.told: Counter[int] = Counter()
        self.announced: Counter[str] = Counter()
        self.reaped: set[int] = set()
        self.next_call = 1
        self.refused = 0
        self.check()

    def act(self, fact: Fact) -> None:
        """One fact; a refused one must have changed nothing."""
        before = self.state
        copy = tuple(before)
        try:
            after, happened = self.perform(fact)
        except IllegalEventError:
            self.refused += 1
            assert tuple(before) == copy
            return
        if fact[0] == "submit":
            assert before.life == (Life.SERVING,)
            self.next_call += 1
        self.note(happened)
        self.state = after
        self.check()

    def perform(self, fact: Fact) -> tuple[ExecutorState, Happened]:
        """Give the fact to the protocol."""
        name, rank, number, flag = fact
        protocol, state, rank = self.protocol, self.state, rank % self.ranks
        call = number % self.next_call
        own, message = Identity(EPOCH, rank), Identity(EPOCH, (rank + (number == 0)), 0)
        acts: dict[str, Callable[[], tuple[ExecutorState, Happened]]] = {
            "made": lambda: protocol.made(state, rank),
            "word": lambda: protocol.give(state, "start", rank, WORDS[number % len(WORDS)], own, message),
            "next": lambda: protocol.give(state, "start", rank, self.next_word(rank), own, own),
            "stale": lambda: protocol.give(
                state, "start", rank, self.next_word(rank), own, Identity(EPOCH - 1, rank)
            ),
            "handle": lambda: protocol.give(state, "replies", rank, ReaderOn.HANDLE),
            "opened": lambda: protocol.give(state, "replies", rank, ReaderOn.OPENED),
            "joined": lambda: protocol.give(state, "broadcast", rank, SeatOn.JOINED),
            "died": lambda: protocol.died(state, rank),
            "deadline": lambda: protocol.start_deadline(state),
            "alarm": lambda: protocol.stop_alarm(state),
            "stop": lambda: protocol.ask_stop(state),
            "fault": lambda: protocol.fault(state),
            "submit": lambda: protocol.submit(state, Identity(EPOCH, call=self.next_call)),
            "reply": lambda: protocol.reply(
                state, rank, ReplyOn.RAISED if flag else ReplyOn.RETURNED, Identity(EPOCH, rank, call)
            ),
            "old reply": lambda: protocol.reply(
                state, rank, ReplyOn.RETURNED, Identity(EPOCH - 1, rank, call)
            ),
            "give up": lambda: protocol.give_up(state, call, CallOn.CANCEL if flag else CallOn.DEADLINE),
            "listen": lambda: protocol.listen(state),
        }
        return acts[name]()

    def next_word(self, rank: int) -> RankStartOn:
        """The word of the handshake that comes next, so that programs get somewhere."""
        order: dict[State, RankStartOn] = {
            RankStart.SPAWNED: RankStartOn.HELLO,
            RankStart.DEVICE: RankStartOn.WEIGHTS,
            RankStart.WEIGHTS: RankStartOn.QUEUES,
        }
        return order.get(self.state.start[rank + 1], RankStartOn.READY)

    def note(self, happened: Happened) -> None:
        """Count what was done, and see that nothing was done twice or to a process that is gone."""
        for call, step in happened:
            for effect in step.effects:
                if effect in (FuturesDo.RESOLVE, FuturesDo.FAIL):
                    self.settled[call] += 1
                    assert self.settled[call] == 1, f"call {call} is settled twice"
                elif effect is StopDo.CALL_BACK:
                    self.told[step.slot] += 1
                    assert self.told[step.slot] == 1, f"listener {step.slot} is told twice"
                    assert self.announced["announce_failure"], f"listener {step.slot} is told of no failure"
                elif isinstance(effect, LifeDo):
                    self.announced[effect.value] += 1
                    assert self.announced[effect.value] == 1, f"{effect.value} twice"
            if step.slot >= 0 and step.cluster in EXECUTOR_CLUSTERS:
                done = set(step.effects) - {ReadyDo.DROP_STALE}
                assert not (step.slot in self.reaped and done), f"{step} acts on a reaped rank"
            if StopDo.REAP in step.effects:
                self.reaped.add(step.slot)

    def check(self) -> None:
        """What holds between any two facts."""
        state = self.state
        life, start, stop = state.life[0], state.start, state.stop
        assert moves_left(state, self.protocol, self.protocol.coupling, EXECUTOR_CLUSTERS) == []
        # Start, queues and life agree.
        all_ready = all(rank is RankStart.READY for rank in start[1:])
        assert (start[0] is Start.UP) == (all_ready and start[0] is not Start.FAILED)
        if start[0] is Start.STARTING:
            assert not {RankStart.FAILED, RankStart.DEAD, RankStart.CANCELLED} & set(start)
        if start[0] is Start.FAILED:
            assert life not in (Life.STARTING, Life.JOINING, Life.SERVING)
            assert {RankStart.READY, RankStart.FAILED, RankStart.DEAD, RankStart.CANCELLED} >= set(start[1:])
        gates = {state.broadcast[0], state.replies[0]}
        if life is Life.STARTING:
            assert start[0] is Start.STARTING
        if life is Life.JOINING:
            assert start[0] is Start.UP
            assert Gate.GATHERING in gates
        if life is Life.SERVING:
            assert start[0] is Start.UP
            assert gates == {Gate.OPEN}
            assert set(state.broadcast[1:]) == {Seat.OPEN}
            assert set(state.replies[1:]) == {Reader.OPEN}
            assert set(stop[1:]) == {RankStop.ALIVE}
        running = life in (Life.STARTING, Life.JOINING, Life.SERVING)
        assert (Gate.CLOSED in gates) == (not running)
        # Stop and life agree, and no signal is ahead of its stage.
        assert (stop[0] is Stop.RUNNING) == running
        assert (stop[0] in (Stop.DOWN, Stop.SURVIVORS)) == (life in (Life.DOWN, Life.FAILED))
        stages = {RankStop.ASKED: 1, RankStop.TERMINATED: 2, RankStop.KILLED: 3, RankStop.SURVIVOR: 4}
        stage = {Stop.RUNNING: 0, Stop.CLOSING: 1, Stop.TERMINATING: 2, Stop.KILLING: 3, Stop.SURVIVORS: 4}
        if stop[0] is Stop.DOWN:
            assert {RankStop.REAPED, RankStop.ABSENT} >= set(stop[1:])
        else:
            assert all(stages.get(rank, 0) <= stage[stop[0]] for rank in stop[1:])  # type: ignore[call-overload, index]
        # Calls.
        for identity, call in state.calls:
            assert Reply.OWED in call, f"call {identity.call} owes nothing and is kept"
            assert call[0] is not Call.OPEN or life is Life.SERVING, (
                f"call {identity.call} is open, and {life}"
            )
            assert (call[0] is not Call.OPEN) == bool(self.settled[identity.call])
            assert call[0] is not Call.OPEN or life is Life.SERVING, (
                f"call {identity.call} is open, and {life}"
            )
            for rank in range(self.ranks):
                assert stop[rank + 1] is not RankStop.REAPED or call[rank + 1] is not Reply.OWED
        kept = [identity.call for identity, _ in state.calls]
        assert kept == sorted(set(kept))
        for number in range(1, self.next_call):
            assert number in kept or self.settled[number] == 1, (
                f"call {number} left the books and was not settled"
            )
        # Listeners and announcements.
        wanted = {
            Life.STOPPING: Listener.RELEASED,
            Life.DOWN: Listener.RELEASED,
            Life.FAILING: Listener.TOLD,
            Life.FAILED: Listener.TOLD,
        }.get(life, Listener.LISTENING)  # type: ignore[call-overload]
        assert set(state.listeners) <= {wanted}
        assert set(self.told) == ({*range(len(state.listeners))} if wanted is Listener.TOLD else set())
        assert self.announced["announce_failure"] == (life in (Life.FAILING, Life.FAILED))
        assert self.announced["announce_end"] == (life in (Life.DOWN, Life.FAILED))


NAMES = [
    *("made", "word", "next", "next", "next", "stale", "handle", "opened", "joined", "deadline"),
    *("died", "alarm", "alarm", "stop", "fault", "listen"),
    *("submit", "submit", "reply", "reply", "reply", "old reply", "give up"),
]
FACTS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 2), st.integers(0, 7), st.booleans()), max_size=60
)


def started(ranks: int) -> list[Fact]:
    """The facts that bring `ranks` ranks to SERVING."""
    names = ("made", "next", "next", "next", "next", "handle", "joined")
    facts: list[Fact] = [(name, rank, 1, False) for rank in range(ranks) for name in names]
    return [*facts, *(("opened", rank, 1, False) for rank in range(ranks))]


def drive(protocol: ExecutorProtocol, ranks: int, begin: int, facts: list[Fact]) -> Book:
    """An executor that met the first `begin` facts of a start, and then `facts`."""
    book = Book(protocol, ranks)
    for fact in [*started(ranks)[:begin], *facts]:
        book.act(fact)
    return book


PROTOCOL = ExecutorProtocol()


@settings(max_examples=250, deadline=None)
@given(st.integers(1, 3), st.sampled_from([0, 9, 99, 99]), FACTS)
def test_the_executors_invariants(ranks: int, begin: int, facts: list[Fact]) -> None:
    drive(PROTOCOL, ranks, begin, facts)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_programs_get_somewhere(ranks: int) -> None:
    """The facts above are not all refused: a start, a call and an end."""
    book = drive(
        PROTOCOL,
        ranks,
        99,
        [
            ("listen", 0, 0, False),
            ("submit", 0, 0, False),
            *(("reply", rank, 1, False) for rank in range(ranks)),
        ],
    )
    assert book.state.life == (Life.SERVING,)
    assert book.settled[1] == 1
    for rank in range(ranks):
        book.act(("died", rank, 0, False))
    assert (book.state.life, book.told[0], book.refused) == ((Life.FAILED,), 1, 0)
    book.act(("died", 0, 0, False))
    assert book.refused == 1


def mutant(table: Table, source: State, event: Event, **change: Any) -> ExecutorProtocol:
    """The protocol with the row for `event` in `source` changed."""
    rows = [
        cast(Row, {**row, **change}) if row["trigger"] is event and source in row["source"] else row
        for row in table.rows
    ]
    return PROTOCOL.but(table.but(rows=rows, waits={}))


SUBMIT: Fact = ("submit", 0, 0, False)
DIED: Fact = ("died", 0, 0, False)
STOP: Fact = ("stop", 0, 0, False)
LISTEN: Fact = ("listen", 0, 0, False)
MUTANTS: dict[str, tuple[ExecutorProtocol, list[Fact], str]] = {
    "a death settles a call by itself": (
        mutant(REPLY, Reply.OWED, ReplyOn.DIED, after=[FuturesDo.FAIL]),
        [SUBMIT, DIED],
        "call 1 is settled twice",
    ),
    "a dead rank is sent an OPEN": (
        mutant(SEAT, Seat.OPEN, SeatOn.DIED, after=[QueueDo.SEND_OPEN]),
        [DIED],
        "acts on a reaped rank",
    ),
    "a stop that closes no queue": (
        ExecutorProtocol(coupling=tuple(row for row in PROTOCOL.coupling if row.then is not GateOn.CLOSE)),
        [STOP],
        "assert ",
    ),
    "a listener is told of a stop": (
        mutant(LISTENER, Listener.LISTENING, ListenerOn.RELEASE, after=[StopDo.CALL_BACK]),
        [LISTEN, STOP],
        "told of no failure",
    ),
    "a close that fails no call": (
        mutant(CALL, Call.OPEN, CallOn.CLOSE, dest=None, after=[]),
        [SUBMIT, STOP],
        "call 1 is open, and STOPPING",
    ),
    "the first fault is announced by each": (
        mutant(LIFE, Life.FAILING, LifeOn.FAULT, after=[LifeDo.ANNOUNCE_FAILURE]),
        [DIED, ("fault", 0, 0, False)],
        "announce_failure twice",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_invariants_can_fail(name: str) -> None:
    broken, facts, text = MUTANTS[name]
    with pytest.raises(AssertionError, match=text):
        drive(broken, 2, 99, facts)
    drive(PROTOCOL, 2, 99, facts)


# --- the worker's side ------------------------------------------------------------------------------------------------

WORKER = WorkerProtocol()
WORKER_CLUSTERS = ("boot", "intake", "outlet", "serve", "leave")
WORKER_EVENTS: list[tuple[str, Event, int]] = [
    *(("boot", event, -1) for event in BootOn if event not in (BootOn.STOP, BootOn.ORPHANED)),
    ("intake", ReaderOn.OPENED, -1),
    ("outlet", SeatOn.JOINED, 0),
    *(("serve", event, -1) for event in (ServeOn.CALL, ServeOn.RETURNED, ServeOn.RAISED, ServeOn.SENT)),
    ("leave", LeaveOn.CLEAN, -1),
]
WORKER_FACTS = st.lists(
    st.one_of(st.sampled_from(["due", "due", "stop", "orphaned"]), st.sampled_from(WORKER_EVENTS)),
    max_size=40,
)
WORKER_START: list[Any] = [
    *(("boot", event, -1) for event in (BootOn.BORN, BootOn.DEVICE_UP, BootOn.WEIGHTS_UP, BootOn.QUEUES_UP)),
    "due",
    ("intake", ReaderOn.OPENED, -1),
    ("outlet", SeatOn.JOINED, 0),
    "due",
]


class WorkerBook:
    """What a worker did so far; raises AssertionError at the first invariant broken."""

    def __init__(self, protocol: WorkerProtocol) -> None:
        self.protocol = protocol
        self.state: WorkerState = protocol.initial()
        self.done: Counter[str] = Counter()

    def act(self, fact: Any) -> None:
        """One fact; a refused one must have changed nothing."""
        protocol, before = self.protocol, self.state
        copy = tuple(before)
        try:
            if fact == "due":
                due = protocol.due(before)
                if due is None:
                    return
                self.state, steps = protocol.give(before, *due)  # never refused: due means that it acts
                assert self.state != before
            elif fact == "stop":
                self.state, steps = protocol.stop(before)
            elif fact == "orphaned":
                self.state, steps = protocol.orphaned(before)
            else:
                self.state, steps = protocol.give(before, *fact)
        except IllegalEventError:
            assert fact != "due"
            assert tuple(before) == copy
            assert self.state is before
            return
        self.note(steps)
        self.check()

    def note(self, steps: tuple[Step, ...]) -> None:
        """Count effects; nothing that a worker does once may be done twice."""
        for step in steps:
            self.done.update(effect.value for effect in step.effects)
        once = ("send_hello", "send_ready", "send_failed", "send_joined", "send_open", "run_shutdown", "exit")
        for name in once:
            assert self.done[name] <= 1, f"{name} twice"
        assert self.done["send_ready"] + self.done["send_failed"] <= 1

    def check(self) -> None:
        """What holds between any two facts."""
        state = self.state
        boot, intake, serve, leave = state.boot[0], state.intake[0], state.serve[0], state.leave[0]
        assert moves_left(state, self.protocol, self.protocol.coupling, WORKER_CLUSTERS) == []
        answered = self.done["send_reply"] + self.done["send_failure"]
        assert answered <= self.done["run_method"] <= answered + 1
        assert (leave is Leave.GONE) == bool(self.done["exit"])
        if self.done["run_method"]:
            assert boot is Boot.READY
        if intake in (Reader.JOINED, Reader.OPEN):
            assert boot is Boot.READY
        if serve.name in ("IDLE", "RUNNING", "REPLYING"):
            assert leave is Leave.STAYING
            assert (intake, state.outlet[0]) == (Reader.OPEN, Gate.OPEN)
        if boot is Boot.FAILED:
            assert leave is Leave.GONE
        if leave is Leave.STAYING:
            assert boot not in (Boot.STOPPED, Boot.FAILED)
        else:
            assert self.protocol.due(state) is None


def drive_worker(protocol: WorkerProtocol, begin: int, facts: list[Any]) -> WorkerBook:
    """A worker that met the first `begin` facts of its start, and then `facts`."""
    book = WorkerBook(protocol)
    for fact in [*WORKER_START[:begin], *facts]:
        book.act(fact)
    return book


@settings(max_examples=250, deadline=None)
@given(st.sampled_from([0, 0, 4, 99, 99]), WORKER_FACTS)
def test_the_workers_invariants(begin: int, facts: list[Any]) -> None:
    drive_worker(WORKER, begin, facts)


def test_the_workers_invariants_can_fail() -> None:
    call = ("serve", ServeOn.CALL, -1)
    serve = WORKER.serve.aggregate
    rows: list[Row] = [
        {**row, "after": []} if row["trigger"] is ServeOn.RETURNED else row for row in serve.rows
    ]
    silent = serve.but(rows=rows)
    facts = [call, ("serve", ServeOn.RETURNED, -1), ("serve", ServeOn.SENT, -1), call]
    with pytest.raises(AssertionError):
        drive_worker(WORKER.but(silent), 99, facts)
    assert drive_worker(WORKER, 99, facts).done["run_method"] == 2
    with pytest.raises(AssertionError):
        drive_worker(WorkerProtocol(coupling=()), 0, [("boot", BootOn.RAISED, -1)])
