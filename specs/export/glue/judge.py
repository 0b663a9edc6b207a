"""What must never be done, judged step by step, as specs/world/judge.py has it.

Theory of operation. `judge` looks at a row that is about to be taken. What a machine was told must be true once the
action is over, so `judge` notes what was said and `judge_said` asks at the end; of a call it is asked at once, for no
reply changes twice in one action, and the call may be out of the books by the end.
"""

from __future__ import annotations

from ....protocol.futures import Call, CallOn, Reply
from ....protocol.life import Life, LifeOn
from ....protocol.queues import Gate, GateOn, Reader, ReaderOn, Seat, SeatOn
from ....protocol.ready import Boot, RankStart, RankStartOn, Start, StartOn
from ....protocol.shutdown import ListenerOn, RankStop, RankStopOn, Stop, StopOn
from ...world import Line
from .ends import ending
from .words import CALLS, MOVES, RANKS, Machine, W
from .written import by_time, of_death, says_failed, says_ready

# --- messages ---------------------------------------------------------------------------------------------------------


def strange(w: W) -> bool:
    """The message is of another epoch or rank."""
    return not (w.same_epoch and w.same_rank)


def on_control(w: W) -> bool:
    """The event is one that a rank says on its control channel."""
    return w.event in (
        RankStartOn.HELLO,
        RankStartOn.WEIGHTS,
        RankStartOn.QUEUES,
        RankStartOn.READY,
        RankStartOn.FAILED,
    )


def judge(w: W) -> None:
    """Note what must never be done, where a row is about to be taken."""
    if w.works:
        judge_worker(w)
    else:
        listen_to(w)
        if w.dest is not w.source:
            w.changed = True
            judge_move(w)


def judge_worker(w: W) -> None:
    """What a worker counts as said, it says; and it takes nobody for dead who is not."""
    moves: bool = w.dest is not w.source and w.machine is Machine.BOOT
    if moves and (
        (w.dest is Boot.READY and not says_ready(w)) or (w.dest is Boot.FAILED and not says_failed(w))
    ):
        w.o_unsaid = True
    if of_death(w) and w.line[w.rank] is not Line.GONE:
        w.o_mistold = True


def judge_move(w: W) -> None:
    """A machine of the executor is about to move."""
    if w.message and strange(w) and w.machine is Machine.START_OF and on_control(w):
        w.o_stale_taken = True
    if w.message and (strange(w) or not w.same_call) and w.machine is Machine.CALL_OF:
        w.o_mixed = True
    if w.machine is Machine.START_OF and w.dest is RankStart.READY and w.event is not RankStartOn.READY:
        w.o_unsaid = True
    if by_time(w) and not w.timed:
        w.o_mistold = True
    if w.machine is Machine.STOP and not goes_forward(w):
        w.o_skipped = True
    if w.machine is Machine.STOP and w.dest is Stop.DOWN:
        w.came_down = True
    hear(w)
    remember(w)


def remember(w: W) -> None:
    """One and the same event moves a machine once an action."""
    for k in range(MOVES):
        if (
            k < w.logged
            and w.log_machine[k] is w.machine
            and w.log_slot[k] == w.slot
            and w.log_number[k] == w.number
            and w.log_event[k] is w.event
        ):
            w.o_again = True
    if w.logged < MOVES:
        w.log_machine[w.logged] = w.machine
        w.log_slot[w.logged] = w.slot
        w.log_number[w.logged] = w.number
        w.log_event[w.logged] = w.event
        w.logged += 1


# --- who waits is told ------------------------------------------------------------------------------------------------


def listen_to(w: W) -> None:
    """What happens that somebody may wait for."""
    moves: bool = w.dest is not w.source
    if w.machine is Machine.STOP_OF and w.event is RankStopOn.DIED:
        w.died = True
    if w.machine is Machine.START and w.event is StartOn.DEADLINE:
        w.late = True
        w.late_start = w.late_start or moves
    if w.machine is Machine.BROADCAST and w.event is GateOn.DEADLINE:
        w.late = True
        w.late_broadcast = w.late_broadcast or moves
    if w.machine is Machine.REPLIES and w.event is GateOn.DEADLINE:
        w.late = True
        w.late_replies = w.late_replies or moves
    if CALLS > 0 and w.machine is Machine.CALL:
        if w.dest is Call.FAILED and w.event is CallOn.RANK_RAISED:
            w.failed_raised[w.number] = True
        if w.dest is Call.FAILED and w.event is CallOn.RANK_LOST:
            w.failed_lost[w.number] = True
        if w.dest is Call.RESOLVED:
            w.resolved[w.number] = True


def look_before(w: W) -> None:
    """Who waits for what, before anything happens."""
    w.start_before = w.x_start
    w.broadcast_before = w.x_broadcast
    w.replies_before = w.x_replies
    for c in range(1, CALLS + 1):
        w.open_before[c] = w.x_here[c] and w.x_call[c] is Call.OPEN


def weigh_calls(w: W) -> None:
    """How each call that was open is to end, now that all replies of the action are in."""
    if not w.weighed:
        w.weighed = True
        for c in range(1, CALLS + 1):
            if w.open_before[c]:
                if any(w.x_call_of[c * RANKS + q] is Reply.RAISED for q in range(RANKS)):
                    w.owes_raised[c] = True
                elif any(w.x_call_of[c * RANKS + q] is Reply.LOST for q in range(RANKS)):
                    w.owes_lost[c] = True
                elif all(w.x_call_of[c * RANKS + q] is Reply.RETURNED for q in range(RANKS)):
                    w.owes_result[c] = True


def judge_heard(w: W) -> None:
    """The action is over: whoever waited for what happened must have been told, as what it was."""
    if w.died and (
        (w.broadcast_before is not Gate.CLOSED and not w.said_seat_lost)
        or (w.replies_before is not Gate.CLOSED and not w.said_reader_lost)
    ):
        w.o_unheard = True
    if w.late and (
        (w.start_before is Start.STARTING and not w.late_start)
        or (w.broadcast_before is Gate.GATHERING and not w.late_broadcast)
        or (w.replies_before is Gate.GATHERING and not w.late_replies)
    ):
        w.o_unheard = True
    for c in range(1, CALLS + 1):
        if (
            (w.owes_raised[c] and not w.failed_raised[c])
            or (w.owes_lost[c] and not w.failed_lost[c])
            or (w.owes_result[c] and not w.resolved[c])
        ):
            w.o_unheard = True


# --- what a machine is told -------------------------------------------------------------------------------------------


def hear(w: W) -> None:
    """What the event says of another machine."""
    if w.machine is Machine.START:
        w.said_all_ready = w.said_all_ready or w.event is StartOn.ALL_READY
        w.said_rank_failed = w.said_rank_failed or w.event is StartOn.RANK_FAILED
        w.said_rank_died = w.said_rank_died or w.event is StartOn.RANK_DIED
        w.said_ending = w.said_ending or w.event is StartOn.CANCEL
    elif w.machine is Machine.START_OF:
        w.said_start_failed = w.said_start_failed or w.event is RankStartOn.CANCEL
    elif w.machine is Machine.LIFE:
        w.said_start_up = w.said_start_up or w.event is LifeOn.RANKS_READY
        w.said_queues_open = w.said_queues_open or w.event is LifeOn.QUEUES_OPEN
        w.said_stop_over = w.said_stop_over or w.event is LifeOn.END
    elif w.machine is Machine.STOP:
        w.said_ending = w.said_ending or w.event is StopOn.STOP
        w.said_all_gone = w.said_all_gone or w.event is StopOn.ALL_GONE
    elif w.machine is Machine.STOP_OF:
        w.said_stops = w.said_stops or w.event is RankStopOn.ASK
        w.said_terminating = w.said_terminating or w.event is RankStopOn.TERMINATE
        w.said_killing = w.said_killing or w.event is RankStopOn.KILL
        w.said_survivors = w.said_survivors or w.event is RankStopOn.GIVE_UP
    elif w.machine is Machine.LISTENER:
        w.said_failed = w.said_failed or w.event is ListenerOn.FAILURE
        w.said_stopped = w.said_stopped or w.event is ListenerOn.RELEASE
    elif w.machine is Machine.BROADCAST:
        w.said_seats_in = w.said_seats_in or w.event is GateOn.ALL_IN
        w.said_seat_lost = w.said_seat_lost or w.event is GateOn.LOST
        w.said_ending = w.said_ending or w.event is GateOn.CLOSE
    elif w.machine is Machine.REPLIES:
        w.said_readers_in = w.said_readers_in or w.event is GateOn.ALL_IN
        w.said_reader_lost = w.said_reader_lost or w.event is GateOn.LOST
        w.said_ending = w.said_ending or w.event is GateOn.CLOSE
    elif w.machine is Machine.BROADCAST_OF:
        w.said_broadcast_open = w.said_broadcast_open or w.event is SeatOn.OPEN
        w.said_broadcast_closed = w.said_broadcast_closed or w.event is SeatOn.CLOSE
    elif w.machine is Machine.REPLIES_OF:
        w.said_replies_closed = w.said_replies_closed or w.event is ReaderOn.CLOSE
    elif CALLS > 0 and w.machine is Machine.CALL:
        w.said_ending = w.said_ending or w.event is CallOn.CLOSE
        if w.event is CallOn.ALL_REPLIED and not all_replied(w):
            w.o_mistold = True
        if w.event is CallOn.RANK_RAISED and not any_reply(w, Reply.RAISED):
            w.o_mistold = True
        if w.event is CallOn.RANK_LOST and not any_reply(w, Reply.LOST):
            w.o_mistold = True


def all_replied(w: W) -> bool:
    """Every rank has returned to the call."""
    return all(w.x_call_of[w.number * RANKS + q] is Reply.RETURNED for q in range(RANKS))


def any_reply(w: W, reply: Reply) -> bool:
    """Some rank's reply to the call is so."""
    return any(w.x_call_of[w.number * RANKS + q] is reply for q in range(RANKS))


def all_reaped(w: W) -> bool:
    """No process is left."""
    return all(w.x_stop_of[q] in (RankStop.REAPED, RankStop.ABSENT) for q in range(RANKS))


def start_said_so(w: W) -> bool:
    """What was said of ranks on their way to READY is so."""
    return (
        (not w.said_all_ready or all(w.x_start_of[q] is RankStart.READY for q in range(RANKS)))
        and (not w.said_rank_failed or any(w.x_start_of[q] is RankStart.FAILED for q in range(RANKS)))
        and (not w.said_rank_died or any(w.x_start_of[q] is RankStart.DEAD for q in range(RANKS)))
        and (not w.said_start_failed or w.x_start is Start.FAILED)
        and (not w.said_start_up or w.x_start is Start.UP)
    )


def stop_said_so(w: W) -> bool:
    """What was said of the end is so."""
    return (
        (not w.said_ending or ending(w))
        and (not w.said_all_gone or all_reaped(w))
        and (not w.said_stop_over or w.x_stop in (Stop.DOWN, Stop.SURVIVORS))
        and (not w.said_stops or w.x_stop is not Stop.RUNNING)
        and (not w.said_terminating or w.x_stop is Stop.TERMINATING)
        and (not w.said_killing or w.x_stop is Stop.KILLING)
        and (not w.said_survivors or w.x_stop is Stop.SURVIVORS)
        and (not w.said_failed or w.x_life in (Life.FAILING, Life.FAILED))
        and (not w.said_stopped or w.x_life in (Life.STOPPING, Life.DOWN))
    )


def queues_said_so(w: W) -> bool:
    """What was said of queues is so."""
    return (
        (not w.said_queues_open or (w.x_broadcast is Gate.OPEN and w.x_replies is Gate.OPEN))
        and (
            not w.said_seats_in or all(w.x_broadcast_of[q] in (Seat.JOINED, Seat.OPEN) for q in range(RANKS))
        )
        and (not w.said_seat_lost or any(w.x_broadcast_of[q] is Seat.GONE for q in range(RANKS)))
        and (not w.said_readers_in or all(w.x_replies_of[q] is Reader.OPEN for q in range(RANKS)))
        and (not w.said_reader_lost or any(w.x_replies_of[q] is Reader.GONE for q in range(RANKS)))
        and (not w.said_broadcast_open or w.x_broadcast is Gate.OPEN)
        and (not w.said_broadcast_closed or w.x_broadcast is Gate.CLOSED)
        and (not w.said_replies_closed or w.x_replies is Gate.CLOSED)
    )


def judge_said(w: W) -> None:
    """The action is over: what was said must be so."""
    if not (start_said_so(w) and stop_said_so(w) and queues_said_so(w)):
        w.o_mistold = True
    if w.came_down and not all_reaped(w):
        w.o_skipped = True


# --- the stop ---------------------------------------------------------------------------------------------------------


def goes_forward(w: W) -> bool:
    """The step leads to the next stage by time, or begins the stop; whether nobody is left is asked at the end."""
    return (
        (w.source is Stop.RUNNING and w.dest is Stop.CLOSING)
        or (by_time(w) and w.source is Stop.CLOSING and w.dest is Stop.TERMINATING)
        or (by_time(w) and w.source is Stop.TERMINATING and w.dest is Stop.KILLING)
        or (by_time(w) and w.source is Stop.KILLING and w.dest is Stop.SURVIVORS)
        or w.dest is Stop.DOWN
    )
