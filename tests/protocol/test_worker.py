"""Golden conversations of a worker's side, from boot to its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from procession.protocol.core import Event, IllegalEventError, LocalProtocolError, Step
from procession.protocol.core.table import Row
from procession.protocol.futures import Serve, ServeOn
from procession.protocol.queues import Gate, Reader, ReaderOn, Seat, SeatOn
from procession.protocol.ready import Boot, BootOn
from procession.protocol.shutdown import Leave, LeaveOn
from procession.protocol.worker import CLUSTERS, ORPHANED, STOP, WorkerProtocol, WorkerState

PROTOCOL = WorkerProtocol()
PHASES = (BootOn.BORN, BootOn.DEVICE_UP, BootOn.WEIGHTS_UP, BootOn.QUEUES_UP)


class Worker:
    """A worker that is told facts; `said` are the lines of the last one, `done` its effects."""

    def __init__(self) -> None:
        self.state: WorkerState = PROTOCOL.initial()
        self.said: list[str] = []
        self.done: list[str] = []

    def hear(self, result: tuple[WorkerState, tuple[Step, ...]]) -> Worker:
        """Take over what the protocol answered."""
        self.state, steps = result
        self.said = [str(step) for step in steps]
        self.done = [effect.value for step in steps for effect in step.effects]
        return self

    def give(self, cluster: str, event: Event, slot: int = -1) -> Worker:
        """One event for one machine."""
        return self.hear(PROTOCOL.give(self.state, cluster, event, slot))

    def boot(self, *events: BootOn) -> Worker:
        """Phases come to their ends."""
        for event in events:
            self.give("boot", event)
        return self

    def due(self) -> Worker:
        """What the agenda says."""
        due = PROTOCOL.due(self.state)
        assert due is not None
        return self.give(*due)

    def stop(self) -> Worker:
        """The control channel is closed."""
        return self.hear(PROTOCOL.stop(self.state))

    def orphaned(self) -> Worker:
        """The executor is gone."""
        return self.hear(PROTOCOL.orphaned(self.state))


def serving(*then: ServeOn) -> Worker:
    """A worker that serves, and what it met since."""
    worker = Worker().boot(*PHASES).due()
    worker.give("intake", ReaderOn.OPENED).give("outlet", SeatOn.JOINED, 0).due()
    for event in then:
        worker.give("serve", event)
    return worker


# Every state in which a worker may learn that it is to end, by how it got there.
PLACES: dict[str, Callable[[], Worker]] = {
    "born": Worker,
    "device": lambda: Worker().boot(*PHASES[:1]),
    "weights": lambda: Worker().boot(*PHASES[:2]),
    "queues": lambda: Worker().boot(*PHASES[:3]),
    "ready": lambda: Worker().boot(*PHASES),
    "joined": lambda: Worker().boot(*PHASES).due(),
    "intake open": lambda: Worker().boot(*PHASES).due().give("intake", ReaderOn.OPENED),
    "outlet open": lambda: Worker().boot(*PHASES).due().give("outlet", SeatOn.JOINED, 0),
    "idle": serving,
    "replying": lambda: serving(ServeOn.CALL, ServeOn.RETURNED),
    "idle again": lambda: serving(ServeOn.CALL, ServeOn.RAISED, ServeOn.SENT),
}


def test_a_worker_boots_and_serves() -> None:
    story: list[str] = []
    effects: list[list[str]] = []
    worker = Worker()
    for event in PHASES:
        assert PROTOCOL.due(worker.state) is None
        story += worker.boot(event).said
        effects.append(worker.done)
    for act in (
        worker.due,
        lambda: worker.give("outlet", SeatOn.JOINED, 0),
        lambda: worker.give("intake", ReaderOn.OPENED),
        worker.due,
        lambda: worker.give("serve", ServeOn.CALL),
        lambda: worker.give("serve", ServeOn.RETURNED),
        lambda: worker.give("serve", ServeOn.SENT),
        lambda: worker.give("serve", ServeOn.CALL),
        lambda: worker.give("serve", ServeOn.RAISED),
        lambda: worker.give("serve", ServeOn.SENT),
    ):
        story += act().said
        effects.append(worker.done)
    assert PROTOCOL.due(worker.state) is None
    assert story == [
        "boot.boot: BORN --born--> DEVICE",
        "boot.boot: DEVICE --device_up--> WEIGHTS",
        "boot.boot: WEIGHTS --weights_up--> QUEUES",
        "boot.boot: QUEUES --queues_up--> READY",
        "intake.reader: UNKNOWN --handle--> JOINED",
        "outlet.seat[0]: EXPECTED --joined--> JOINED",
        "outlet.gate: GATHERING --all_in--> OPEN",
        "outlet.seat[0]: JOINED --open--> OPEN",
        "intake.reader: JOINED --opened--> OPEN",
        "serve.serve: CLOSED --begin--> IDLE",
        "serve.serve: IDLE --call--> RUNNING",
        "serve.serve: RUNNING --returned--> REPLYING",
        "serve.serve: REPLYING --sent--> IDLE",
        "serve.serve: IDLE --call--> RUNNING",
        "serve.serve: RUNNING --raised--> REPLYING",
        "serve.serve: REPLYING --sent--> IDLE",
    ]
    assert effects == [
        ["send_hello", "init_device"],
        ["send_phase", "load_model"],
        ["send_phase", "make_queues"],
        ["send_ready"],
        ["send_joined"],
        ["send_open"],
        [],
        [],
        ["run_method"],
        ["send_reply"],
        [],
        ["run_method"],
        ["send_failure"],
        [],
    ]


@pytest.mark.parametrize("first", ["intake", "outlet"])
def test_the_queues_open_in_either_order(first: str) -> None:
    worker = Worker().boot(*PHASES).due()
    opens = {
        "intake": lambda: worker.give("intake", ReaderOn.OPENED),
        "outlet": lambda: worker.give("outlet", SeatOn.JOINED, 0),
    }
    opens.pop(first)()
    assert PROTOCOL.due(worker.state) is None
    opens.popitem()[1]()
    assert PROTOCOL.due(worker.state) == ("serve", ServeOn.BEGIN)


@pytest.mark.parametrize("heard", range(4))
def test_a_phase_raises(heard: int) -> None:
    worker = Worker().boot(*PHASES[:heard])
    phase = worker.state.boot[0].name
    worker.give("boot", BootOn.RAISED)
    assert worker.said == [f"boot.boot: {phase} --raised--> FAILED", "leave.leave: STAYING --broken--> GONE"]
    assert worker.done == ["send_failed", "exit"]
    assert PROTOCOL.due(worker.state) is None


@pytest.mark.parametrize("place", PLACES)
def test_a_stop(place: str) -> None:
    worker = PLACES[place]().stop()
    assert "run_shutdown" in worker.done
    assert "exit" not in worker.done
    assert worker.state.boot[0] in (Boot.READY, Boot.STOPPED)
    assert worker.state == WorkerState(
        worker.state.boot,
        (Reader.CLOSED,),
        (Gate.CLOSED, Seat.CLOSED),
        (Serve.STOPPED,),
        (Leave.LEAVING,),
    )
    assert PROTOCOL.due(worker.state) is None
    assert worker.give("leave", LeaveOn.CLEAN).done == ["exit"]


@pytest.mark.parametrize("place", PLACES)
def test_an_orphan_leaves_at_once(place: str) -> None:
    worker = PLACES[place]().orphaned()
    assert worker.done == ["exit"]  # no clean-up: it may need a peer
    assert worker.state == WorkerState(
        worker.state.boot, (Reader.GONE,), (Gate.CLOSED, Seat.GONE), (Serve.STOPPED,), (Leave.GONE,)
    )
    assert PROTOCOL.due(worker.state) is None
    assert worker.orphaned().done == []  # told twice, by two descriptors


@pytest.mark.parametrize("place", PLACES)
def test_an_orphan_that_was_already_asked_to_stop(place: str) -> None:
    worker = PLACES[place]().stop().orphaned()
    assert worker.done == ["exit"]
    assert worker.state.leave == (Leave.GONE,)


def test_a_stop_in_words() -> None:
    assert serving().stop().said == [
        "boot.boot: READY --stop--> READY",
        "intake.reader: OPEN --close--> CLOSED",
        "outlet.gate: OPEN --close--> CLOSED",
        "outlet.seat[0]: OPEN --close--> CLOSED",
        "serve.serve: IDLE --stop--> STOPPED",
        "leave.leave: STAYING --asked--> LEAVING",
    ]


def test_words_on_their_way_when_the_worker_stopped() -> None:
    worker = PLACES["joined"]().stop()
    before = worker.state
    worker.give("intake", ReaderOn.OPENED).give("outlet", SeatOn.JOINED, 0)
    assert worker.state == before


@pytest.mark.parametrize(
    ("place", "cluster", "event"),
    [
        ("born", "boot", BootOn.QUEUES_UP),
        ("ready", "intake", ReaderOn.OPENED),
        ("joined", "serve", ServeOn.CALL),
        ("idle", "serve", ServeOn.RETURNED),
        ("replying", "serve", ServeOn.CALL),
    ],
)
def test_out_of_turn_is_refused(place: str, cluster: str, event: Event) -> None:
    worker = PLACES[place]()
    before = worker.state
    with pytest.raises(IllegalEventError, match=f"machine '{cluster}.* met '{event.value}'"):
        worker.give(cluster, event)
    assert worker.state == before


def test_a_fact_that_one_machine_refuses_changes_none() -> None:
    """The serve table, less its row for a stop while a reply is written."""
    serve = PROTOCOL.serve.aggregate
    rows: list[Row] = [
        {**row, "source": [state for state in row["source"] if state is not Serve.REPLYING]}
        if row["trigger"] is ServeOn.STOP
        else row
        for row in serve.rows
    ]
    variant = PROTOCOL.but(serve.but(rows=rows, waits={}))
    state = PLACES["replying"]().state
    with pytest.raises(LocalProtocolError, match=r"'serve\.serve' is in state REPLYING"):
        variant.stop(state)
    assert PROTOCOL.stop(state)[0].leave == (Leave.LEAVING,)


def test_every_row_between_clusters_names_what_exists() -> None:
    for row in (*PROTOCOL.coupling, *PROTOCOL.agenda):
        for name, states in row.conditions:
            assert name in CLUSTERS
            assert states <= set(getattr(PROTOCOL, name).aggregate.states)
        assert isinstance(row.then, getattr(PROTOCOL, row.cluster).aggregate.events)
    for name, slot, event in (*STOP, *ORPHANED):
        assert name in CLUSTERS
        assert isinstance(event, getattr(PROTOCOL, name).table(slot).events)
    assert [name for name, _, _ in STOP] == [name for name, _, _ in ORPHANED] == list(CLUSTERS)
