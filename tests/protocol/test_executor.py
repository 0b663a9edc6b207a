"""Golden conversations of the executor's side: what happens, in which order, written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from procession.protocol.core import (
    Event,
    Identity,
    IllegalEventError,
    LocalProtocolError,
    RemoteProtocolError,
    TableError,
    when,
)
from procession.protocol.core.coupling import When
from procession.protocol.executor import (
    RANK_DIED,
    RANK_MADE,
    START_DEADLINE,
    ExecutorProtocol,
    ExecutorState,
    Happened,
)
from procession.protocol.futures import Call, CallOn, ReplyOn
from procession.protocol.life import Life, LifeOn
from procession.protocol.queues import Gate, ReaderOn, Seat, SeatOn
from procession.protocol.ready import RankStart, RankStartOn, ReadyDo, Start
from procession.protocol.shutdown import Listener, RankStop, Stop, StopDo

PROTOCOL = ExecutorProtocol()
EPOCH = 4
PHASES = (RankStartOn.HELLO, RankStartOn.WEIGHTS, RankStartOn.QUEUES, RankStartOn.READY)


class Executor:
    """An executor that is told facts, and the lines of what came of each.

    `said` are the lines of the last fact, `done` its effects as "effect[rank]" or "effect#call".
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.state: ExecutorState = PROTOCOL.initial(ranks)
        self.said: list[str] = []
        self.done: list[str] = []

    def hear(self, result: tuple[ExecutorState, Happened]) -> Executor:
        """Take over what the protocol answered."""
        self.state, happened = result
        self.said = [(f"#{call} " if call else "") + str(step) for call, step in happened]
        self.done = []
        for call, step in happened:
            where = f"#{call}" if call else f"[{step.slot}]" if step.slot >= 0 else ""
            self.done += [f"{effect.value}{where}" for effect in step.effects]
        return self

    def says(self, rank: int, event: RankStartOn, epoch: int = EPOCH, who: int | None = None) -> Executor:
        """A word of the READY handshake on the channel of `rank`."""
        message = Identity(epoch, rank if who is None else who)
        return self.hear(PROTOCOL.give(self.state, "start", rank, event, Identity(EPOCH, rank), message))

    def queue(self, name: str, rank: int, event: Event) -> Executor:
        """A word of queue readiness."""
        return self.hear(PROTOCOL.give(self.state, name, rank, event))

    def made(self, *ranks: int) -> Executor:
        """Processes were made."""
        for rank in ranks:
            self.hear(PROTOCOL.made(self.state, rank))
        return self

    def died(self, rank: int) -> Executor:
        """A process is gone."""
        return self.hear(PROTOCOL.died(self.state, rank))

    def alarm(self) -> Executor:
        """The stage's time is over."""
        return self.hear(PROTOCOL.stop_alarm(self.state))

    def stop(self) -> Executor:
        """Somebody asks for a stop."""
        return self.hear(PROTOCOL.ask_stop(self.state))

    def submit(self, call: int) -> Executor:
        """A call is submitted."""
        return self.hear(PROTOCOL.submit(self.state, Identity(EPOCH, call=call)))

    def reply(self, rank: int, call: int, event: ReplyOn = ReplyOn.RETURNED, epoch: int = EPOCH) -> Executor:
        """An answer came."""
        return self.hear(PROTOCOL.reply(self.state, rank, event, Identity(epoch, rank, call)))

    def give_up(self, call: int, event: CallOn) -> Executor:
        """A caller cancels, or its deadline passes."""
        return self.hear(PROTOCOL.give_up(self.state, call, event))

    def listen(self) -> Executor:
        """A failure callback is registered."""
        return self.hear(PROTOCOL.listen(self.state))

    def ready(self, *ranks: int) -> Executor:
        """Every word of the handshake, for each rank."""
        for rank in ranks:
            for phase in PHASES:
                self.says(rank, phase)
        return self

    @property
    def calls(self) -> dict[int, str]:
        """The calls in the books, and the state of each with what each rank owes."""
        return {
            identity.call: " ".join(state.name for state in states) for identity, states in self.state.calls
        }


def serving(ranks: int = 2) -> Executor:
    """An executor that accepts calls."""
    executor = Executor(ranks).made(*range(ranks)).ready(*range(ranks))
    for rank in range(ranks):
        executor.queue("replies", rank, ReaderOn.HANDLE).queue("broadcast", rank, SeatOn.JOINED)
        executor.queue("replies", rank, ReaderOn.OPENED)
    assert executor.state.life == (Life.SERVING,)
    return executor


def refuses(executor: Executor, act: Callable[[Executor], object], error: type[IllegalEventError]) -> str:
    """`act` is refused with `error` and changes nothing; returns the error's text."""
    before = executor.state
    with pytest.raises(error) as caught:
        act(executor)
    assert executor.state == before
    return str(caught.value)


# --- start ------------------------------------------------------------------------------------------------------------


def test_two_ranks_come_up() -> None:
    story: list[str] = []
    executor = Executor(2)
    for rank in (0, 1):
        story += executor.made(rank).said
    for phase in PHASES:
        for rank in (1, 0):
            story += executor.says(rank, phase).said
    for rank in (0, 1):
        story += executor.queue("replies", rank, ReaderOn.HANDLE).said
        assert executor.done == [f"send_joined[{rank}]"]
    story += executor.queue("broadcast", 1, SeatOn.JOINED).said
    story += executor.queue("replies", 1, ReaderOn.OPENED).said
    story += executor.queue("broadcast", 0, SeatOn.JOINED).said
    assert executor.done == ["send_open[0]", "send_open[1]"]
    assert executor.state.life == (Life.JOINING,)
    story += executor.queue("replies", 0, ReaderOn.OPENED).said
    assert executor.done == ["announce_up"]
    assert story == [
        "stop.rank_stop[0]: ABSENT --spawned--> ALIVE",
        "start.rank_start[0]: ABSENT --spawned--> SPAWNED",
        "stop.rank_stop[1]: ABSENT --spawned--> ALIVE",
        "start.rank_start[1]: ABSENT --spawned--> SPAWNED",
        "start.rank_start[1]: SPAWNED --hello--> DEVICE",
        "start.rank_start[0]: SPAWNED --hello--> DEVICE",
        "start.rank_start[1]: DEVICE --weights--> WEIGHTS",
        "start.rank_start[0]: DEVICE --weights--> WEIGHTS",
        "start.rank_start[1]: WEIGHTS --queues--> QUEUES",
        "start.rank_start[0]: WEIGHTS --queues--> QUEUES",
        "start.rank_start[1]: QUEUES --ready--> READY",
        "start.rank_start[0]: QUEUES --ready--> READY",
        "start.start: STARTING --all_ready--> UP",
        "life.life: STARTING --ranks_ready--> JOINING",
        "replies.reader[0]: UNKNOWN --handle--> JOINED",
        "replies.reader[1]: UNKNOWN --handle--> JOINED",
        "broadcast.seat[1]: EXPECTED --joined--> JOINED",
        "replies.reader[1]: JOINED --opened--> OPEN",
        "broadcast.seat[0]: EXPECTED --joined--> JOINED",
        "broadcast.gate: GATHERING --all_in--> OPEN",
        "broadcast.seat[0]: JOINED --open--> OPEN",
        "broadcast.seat[1]: JOINED --open--> OPEN",
        "replies.reader[0]: JOINED --opened--> OPEN",
        "replies.gate: GATHERING --all_in--> OPEN",
        "life.life: JOINING --queues_open--> SERVING",
    ]


def test_queues_that_open_before_the_last_ready_is_read() -> None:
    """A queue's channel is not ordered with the handshake's: a JOINED may be read before the READY that it follows."""
    executor = Executor(1).made(0)
    for phase in PHASES[:-1]:
        executor.says(0, phase)
    executor.queue("broadcast", 0, SeatOn.JOINED)
    assert executor.state.life == (Life.STARTING,)
    executor.says(0, RankStartOn.READY)
    assert executor.state.life == (Life.JOINING,)
    executor.queue("replies", 0, ReaderOn.HANDLE).queue("replies", 0, ReaderOn.OPENED)
    assert executor.state.life == (Life.SERVING,)


def test_a_rank_says_that_a_phase_failed() -> None:
    executor = Executor(2).made(0, 1).says(0, RankStartOn.HELLO)
    executor.says(0, RankStartOn.FAILED)
    assert executor.said == [
        "start.rank_start[0]: DEVICE --failed--> FAILED",
        "start.start: STARTING --rank_failed--> FAILED",
        "start.rank_start[1]: SPAWNED --cancel--> CANCELLED",
        "life.life: STARTING --fault--> FAILING",
        "stop.stop: RUNNING --stop--> CLOSING",
        "stop.rank_stop[0]: ALIVE --ask--> ASKED",
        "stop.rank_stop[1]: ALIVE --ask--> ASKED",
        "broadcast.gate: GATHERING --close--> CLOSED",
        "broadcast.seat[0]: EXPECTED --close--> CLOSED",
        "broadcast.seat[1]: EXPECTED --close--> CLOSED",
        "replies.gate: GATHERING --close--> CLOSED",
        "replies.reader[0]: UNKNOWN --close--> CLOSED",
        "replies.reader[1]: UNKNOWN --close--> CLOSED",
    ]
    assert executor.done == [
        "announce_failure",
        "wake_blocked",
        "arm_grace",
        "close_control[0]",
        "close_control[1]",
    ]
    # What was on its way changes nothing: the other's words, and the end of the one that failed.
    for phase in (*PHASES, RankStartOn.FAILED):
        executor.says(1, phase)
        assert executor.said == [f"start.rank_start[1]: CANCELLED --{phase.value}--> CANCELLED"]
    executor.died(0).died(1)
    assert (executor.state.life, executor.state.stop[0]) == ((Life.FAILED,), Stop.DOWN)


@pytest.mark.parametrize("heard", range(4))
def test_a_rank_dies_in_a_phase(heard: int) -> None:
    executor = Executor(2).made(0, 1).ready(1)
    for phase in PHASES[:heard]:
        executor.says(0, phase)
    phase_name = executor.state.start[1].name
    assert phase_name == ("SPAWNED", "DEVICE", "WEIGHTS", "QUEUES")[heard]
    executor.died(0)
    assert executor.said[:9] == [
        "stop.rank_stop[0]: ALIVE --died--> REAPED",
        f"start.rank_start[0]: {phase_name} --died--> DEAD",
        "start.start: STARTING --rank_died--> FAILED",
        "broadcast.seat[0]: EXPECTED --died--> GONE",
        "broadcast.gate: GATHERING --lost--> CLOSED",
        "broadcast.seat[1]: EXPECTED --close--> CLOSED",
        "replies.reader[0]: UNKNOWN --died--> GONE",
        "replies.gate: GATHERING --lost--> CLOSED",
        "replies.reader[1]: UNKNOWN --close--> CLOSED",
    ]
    assert executor.said[9:] == [
        "life.life: STARTING --fault--> FAILING",
        "stop.stop: RUNNING --stop--> CLOSING",
        "stop.rank_stop[1]: ALIVE --ask--> ASKED",
    ]
    assert "close_control[0]" not in executor.done
    # The dead rank's READY was still in its pipe.
    assert executor.says(0, RankStartOn.READY).said == ["start.rank_start[0]: DEAD --ready--> DEAD"]


def test_a_rank_dies_between_ready_and_joined() -> None:
    executor = Executor(2).made(0, 1).ready(0, 1)
    assert executor.state.life == (Life.JOINING,)
    executor.queue("replies", 0, ReaderOn.HANDLE).queue("replies", 1, ReaderOn.HANDLE)
    executor.queue("broadcast", 1, SeatOn.JOINED)
    executor.died(0)
    assert (executor.state.life, executor.state.broadcast) == (
        (Life.FAILING,),
        (Gate.CLOSED, Seat.GONE, Seat.CLOSED),
    )
    assert executor.state.start == (Start.UP, RankStart.READY, RankStart.READY)  # the start itself went well
    assert executor.queue("broadcast", 0, SeatOn.JOINED).done == []
    assert executor.queue("replies", 0, ReaderOn.OPENED).done == []


@pytest.mark.parametrize(
    "identity", [(EPOCH - 1, 0), (EPOCH, 1), (EPOCH - 1, 1)], ids=["epoch", "rank", "both"]
)
@pytest.mark.parametrize("heard", range(5))
def test_a_stale_word_is_dropped_whenever_it_comes(heard: int, identity: tuple[int, int]) -> None:
    executor = Executor(2).made(0, 1)
    for phase in PHASES[:heard]:
        executor.says(0, phase)
    before = executor.state
    for event in (*PHASES, RankStartOn.FAILED):
        executor.says(0, event, *identity)
        assert executor.done == [f"{ReadyDo.DROP_STALE.value}[0]"]
        assert executor.state == before


@pytest.mark.parametrize("heard", range(5))
def test_a_word_out_of_turn_is_the_peers_fault(heard: int) -> None:
    executor = Executor(2).made(0, 1)
    for phase in PHASES[:heard]:
        executor.says(0, phase)
    for event in PHASES:
        if event not in PHASES[heard : heard + 1]:
            refuses(executor, lambda e, event=event: e.says(0, event), RemoteProtocolError)  # type: ignore[misc]


def test_a_word_out_of_turn_in_words() -> None:
    text = refuses(Executor(1).made(0), lambda e: e.says(0, RankStartOn.READY), RemoteProtocolError)
    assert text == (
        "the peer broke the protocol: machine 'start.rank_start' of rank 0 is in state SPAWNED (The process was made; "
        "nothing has been heard from it.) and met 'ready'; allowed there: cancel, died, failed, hello"
    )


def test_a_word_of_a_rank_that_was_never_made_is_the_peers_fault() -> None:
    text = refuses(Executor(1), lambda e: e.says(0, RankStartOn.HELLO), RemoteProtocolError)
    assert text == (
        "the peer broke the protocol: machine 'start.rank_start' of rank 0 is in state ABSENT (No process has been "
        "made for the rank yet.) and met 'hello'; allowed there: cancel, spawned"
    )


@pytest.mark.parametrize("steps", range(3))
def test_the_time_for_the_start_is_over(steps: int) -> None:
    """While ranks start; while queues open; and once serving, when it no longer matters."""
    executor = [Executor(2).made(0, 1).ready(0), Executor(2).made(0, 1).ready(0, 1), serving()][steps]
    executor.hear(PROTOCOL.start_deadline(executor.state))
    assert executor.state.life == ((Life.FAILING,), (Life.FAILING,), (Life.SERVING,))[steps]
    assert (executor.done == []) == (steps == 2)


# --- calls ------------------------------------------------------------------------------------------------------------


def test_two_calls_with_replies_out_of_order_between_ranks() -> None:
    executor = serving().submit(1).submit(2)
    assert executor.calls == {1: "OPEN OWED OWED", 2: "OPEN OWED OWED"}
    assert executor.reply(1, 1).said == ["#1 call.reply[1]: OWED --returned--> RETURNED"]
    assert executor.reply(1, 2).said == ["#2 call.reply[1]: OWED --returned--> RETURNED"]
    assert executor.calls == {1: "OPEN OWED RETURNED", 2: "OPEN OWED RETURNED"}
    assert executor.reply(0, 1).said == [
        "#1 call.reply[0]: OWED --returned--> RETURNED",
        "#1 call.call: OPEN --all_replied--> RESOLVED",
    ]
    assert executor.done == ["resolve#1"]
    assert executor.reply(0, 2).done == ["resolve#2"]
    assert executor.calls == {}


def test_a_reply_to_a_later_call_passes_the_earlier_one() -> None:
    executor = serving().submit(1).submit(2)
    assert executor.reply(0, 2).said == [
        "#1 call.reply[0]: OWED --returned--> OWED",
        "#2 call.reply[0]: OWED --returned--> RETURNED",
    ]
    assert executor.done == ["pass_on#1"]


@pytest.mark.parametrize(("call", "epoch"), [(7, EPOCH), (1, EPOCH - 1)], ids=["call", "epoch"])
def test_a_stale_reply_is_dropped(call: int, epoch: int) -> None:
    executor = serving().submit(1)
    before = executor.state
    for event in (ReplyOn.RETURNED, ReplyOn.RAISED):
        executor.reply(0, call, event, epoch)
        assert executor.said == []
        assert executor.state == before
    assert serving().reply(0, 1).said == []


def test_a_second_reply_of_the_same_rank_is_dropped() -> None:
    executor = serving().submit(1).reply(0, 1)
    before = executor.state
    assert executor.reply(0, 1).said == []
    assert executor.state == before


def test_a_rank_that_owes_no_result_fails_the_call() -> None:
    """Rank 0 gives the result, and did; rank 1 acknowledges only, and raised."""
    executor = serving().submit(1).reply(0, 1)
    assert executor.reply(1, 1, ReplyOn.RAISED).done == ["fail#1"]
    assert executor.calls == {}
    assert executor.state.life == (Life.SERVING,)


def test_the_first_failure_does_not_wait_for_the_others() -> None:
    executor = serving().submit(1)
    assert executor.reply(1, 1, ReplyOn.RAISED).done == ["fail#1"]
    assert executor.calls == {1: "FAILED OWED RAISED"}
    assert executor.reply(0, 1, ReplyOn.RAISED).done == []
    assert executor.calls == {}


def test_a_deadline_then_late_replies() -> None:
    executor = serving().submit(1).reply(0, 1)
    assert executor.give_up(1, CallOn.DEADLINE).said == ["#1 call.call: OPEN --deadline--> EXPIRED"]
    assert executor.done == ["fail#1"]
    executor.submit(2)
    assert executor.calls == {1: "EXPIRED RETURNED OWED", 2: "OPEN OWED OWED"}
    assert executor.reply(1, 1).done == []  # late, dropped, and no answer to call 2
    assert executor.calls == {2: "OPEN OWED OWED"}
    executor.reply(1, 2)
    assert executor.reply(0, 2).done == ["resolve#2"]


def test_a_cancelled_call_stays_cancelled() -> None:
    executor = serving().submit(1)
    assert executor.give_up(1, CallOn.CANCEL).done == ["fail#1"]
    assert executor.give_up(1, CallOn.CANCEL).done == []
    assert executor.give_up(1, CallOn.DEADLINE).said == ["#1 call.call: CANCELLED --deadline--> CANCELLED"]
    assert executor.reply(0, 1, ReplyOn.RAISED).done == []
    assert executor.reply(1, 1).done == []
    assert executor.calls == {}
    assert executor.give_up(1, CallOn.CANCEL).said == []  # not in the books any more


def test_a_close_fails_every_open_call_once() -> None:
    executor = serving().submit(1).submit(2).submit(3).give_up(2, CallOn.DEADLINE).stop()
    assert [done for done in executor.done if "#" in done] == ["fail#1", "fail#3"]
    assert executor.calls == {1: "FAILED OWED OWED", 2: "EXPIRED OWED OWED", 3: "FAILED OWED OWED"}
    assert executor.stop().done == []
    executor.reply(0, 1)
    assert executor.died(0).done == ["reap[0]"]
    assert executor.died(1).done == ["reap[1]", "disarm", "announce_end"]
    assert executor.calls == {}


def test_a_death_fails_the_calls_that_the_rank_owes() -> None:
    executor = serving(3).submit(1).submit(2).reply(1, 1)
    executor.died(1)
    assert [line for line in executor.said if line.startswith("#")] == [
        "#1 call.reply[1]: RETURNED --died--> RETURNED",
        "#2 call.reply[1]: OWED --died--> LOST",
        "#2 call.call: OPEN --rank_lost--> FAILED",
        "#1 call.call: OPEN --close--> FAILED",  # the executor fails, and with it every call
    ]
    assert executor.calls == {1: "FAILED OWED RETURNED OWED", 2: "FAILED OWED LOST OWED"}


def test_submit_is_refused_unless_serving() -> None:
    others = {
        Life.STARTING: Executor(2).made(0, 1),
        Life.JOINING: Executor(2).made(0, 1).ready(0, 1),
        Life.STOPPING: serving().stop(),
        Life.FAILING: serving().died(1),
        Life.DOWN: serving().stop().died(0).died(1),
        Life.FAILED: serving().died(1).died(0),
    }
    assert {life: executor.state.life[0] for life, executor in others.items()} == {
        life: life for life in others
    }
    for life, executor in others.items():
        text = refuses(executor, lambda e: e.submit(1), LocalProtocolError)
        assert f"machine 'life.life' is in state {life.name} (" in text
        assert "met 'submit'" in text
    assert serving().submit(1).said == ["#1 life.life: SERVING --submit--> SERVING"]


# --- listeners --------------------------------------------------------------------------------------------------------


def test_a_listener_before_and_one_after_a_failure_are_each_told_once() -> None:
    executor = serving().listen()
    assert executor.done == []
    executor.died(0)
    assert [done for done in executor.done if done.startswith("call_back")] == ["call_back[0]"]
    assert executor.listen().done == ["call_back[1]"]
    executor.died(1)
    assert executor.state.life == (Life.FAILED,)
    assert executor.done == ["reap[1]", "disarm", "announce_end"]
    assert executor.listen().done == ["call_back[2]"]
    assert executor.state.listeners == (Listener.TOLD,) * 3


def test_a_stop_that_was_asked_for_tells_nobody() -> None:
    executor = serving().listen().stop()
    assert list(executor.state.listeners) == [Listener.RELEASED]
    executor.died(0).listen().died(1).listen()
    assert executor.state.life == (Life.DOWN,)
    assert executor.state.listeners == (Listener.RELEASED,) * 3
    assert executor.hear(PROTOCOL.fault(executor.state)).done == []


# --- stop -------------------------------------------------------------------------------------------------------------


def test_a_stop_escalates_to_survivors_and_a_late_death_ends_it() -> None:
    executor = serving(2).stop()
    assert executor.said == [
        "life.life: SERVING --stop--> STOPPING",
        "stop.stop: RUNNING --stop--> CLOSING",
        "stop.rank_stop[0]: ALIVE --ask--> ASKED",
        "stop.rank_stop[1]: ALIVE --ask--> ASKED",
        "broadcast.gate: OPEN --close--> CLOSED",
        "broadcast.seat[0]: OPEN --close--> CLOSED",
        "broadcast.seat[1]: OPEN --close--> CLOSED",
        "replies.gate: OPEN --close--> CLOSED",
        "replies.reader[0]: OPEN --close--> CLOSED",
        "replies.reader[1]: OPEN --close--> CLOSED",
    ]
    assert executor.done == ["wake_blocked", "arm_grace", "close_control[0]", "close_control[1]"]
    assert executor.died(0).done == ["reap[0]"]
    assert executor.alarm().done == ["arm_term", "send_sigterm[1]"]  # nothing for the rank that is reaped
    assert executor.alarm().done == ["arm_kill", "send_sigkill[1]"]
    assert executor.alarm().said == [
        "stop.stop: KILLING --alarm--> SURVIVORS",
        "stop.rank_stop[1]: KILLED --give_up--> SURVIVOR",
        "life.life: STOPPING --end--> DOWN",
    ]
    assert executor.done == ["disarm", "report_survivor[1]", "announce_end"]
    assert executor.died(1).said == [
        "stop.rank_stop[1]: SURVIVOR --died--> REAPED",
        "stop.stop: SURVIVORS --all_gone--> DOWN",
        "start.rank_start[1]: READY --died--> READY",
        "broadcast.seat[1]: CLOSED --died--> CLOSED",
        "replies.reader[1]: CLOSED --died--> CLOSED",
    ]
    assert executor.state.life == (Life.DOWN,)


def test_a_second_stop_finds_the_path_taken() -> None:
    executor = serving().stop()
    before = executor.state
    assert executor.stop().said == ["life.life: STOPPING --stop--> STOPPING"]
    assert executor.hear(PROTOCOL.fault(executor.state)).said == ["life.life: STOPPING --fault--> STOPPING"]
    assert executor.state == before
    executor.died(0).died(1)
    assert executor.stop().said == ["life.life: DOWN --stop--> DOWN"]


def test_the_first_cause_stays_the_cause() -> None:
    executor = serving().died(0).stop()
    assert executor.state.life == (Life.FAILING,)
    executor.died(1)
    assert executor.state.life == (Life.FAILED,)


def test_a_stop_during_the_start() -> None:
    executor = Executor(2).made(0, 1).ready(0).stop()
    assert executor.state.start == (Start.FAILED, RankStart.READY, RankStart.CANCELLED)
    assert executor.state.stop == (Stop.CLOSING, RankStop.ASKED, RankStop.ASKED)
    assert executor.state.life == (Life.STOPPING,)  # not FAILING: somebody asked for it


def test_a_stop_before_anything_was_made_ends_at_once() -> None:
    executor = Executor(2).stop()
    assert executor.state.life == (Life.DOWN,)
    assert executor.state.stop == (Stop.DOWN, RankStop.ABSENT, RankStop.ABSENT)
    assert StopDo.CLOSE_CONTROL.value not in " ".join(executor.done)


def test_a_rank_dies_once() -> None:
    executor = serving().died(0)
    text = refuses(executor, lambda e: e.died(0), LocalProtocolError)
    assert "machine 'stop.rank_stop' of rank 0 is in state REAPED" in text


# --- what is written down ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (when(("strat", Start.UP), then=("life", LifeOn.FAULT)), "no cluster 'strat' to watch"),
        (when(("start", Life.DOWN), then=("life", LifeOn.FAULT)), "lacks a state"),
        (when(("life", Life.DOWN), then=("nobody", LifeOn.FAULT)), "no cluster 'nobody'"),
        (when(("life", Life.DOWN), then=("call", LifeOn.FAULT)), "no event of 'call'"),
    ],
)
def test_a_coupling_row_between_clusters_names_what_exists(row: When, fault: str) -> None:
    with pytest.raises(TableError, match=fault):
        ExecutorProtocol(coupling=(row,))


def test_every_fact_for_several_clusters_names_what_exists() -> None:
    for name, event in (*RANK_MADE, *RANK_DIED):
        assert isinstance(event, getattr(PROTOCOL, name).member.events)
    for name, event in START_DEADLINE:
        assert isinstance(event, getattr(PROTOCOL, name).aggregate.events)


def test_a_variant_shares_nothing_remembered() -> None:
    """A call that is never failed by a raise: the variant does it, the original never does."""
    variant = PROTOCOL.but(
        PROTOCOL.call.aggregate.but(
            rows=[
                {**row, "dest": Call.RESOLVED} if row["trigger"] is CallOn.RANK_RAISED else row
                for row in PROTOCOL.call.aggregate.rows
            ]
        )
    )
    state = serving().submit(1).state
    for protocol, ending in ((PROTOCOL, Call.FAILED), (variant, Call.RESOLVED), (PROTOCOL, Call.FAILED)):
        after, _ = protocol.reply(state, 0, ReplyOn.RAISED, Identity(EPOCH, 0, 1))
        assert after.calls[0][1][0] is ending
    assert variant.life is PROTOCOL.life
    assert variant._rest is not PROTOCOL._rest
