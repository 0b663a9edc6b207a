"""What must hold of a stop, as specs/properties/stop.py has it; see holds.py for the names."""

from __future__ import annotations

from ....protocol.life import Life
from ....protocol.queues import Reader, Seat
from ....protocol.shutdown import Leave, Listener, RankStop, Stop
from ...world import Line, Status
from .channels import alive
from .ends import nobody_is_left
from .executor import has_ended
from .judge import all_reaped
from .words import (
    LISTENERS,
    RANKS,
    Alarm,
    Sent,
    W,
    Work,
)
from .written import at_rest


def q_a_stop_ends(w: W) -> bool:
    return not w.gone and w.x_life in (Life.STOPPING, Life.FAILING)


def p_a_stop_ends(w: W) -> bool:
    return w.gone or has_ended(w)


def p_the_end_leaves_nobody(w: W) -> bool:
    return not has_ended(w) or nobody_is_left(w)


def t_the_end_leaves_nobody(w: W) -> bool:
    return has_ended(w)


def p_the_dead_are_left_alone(w: W) -> bool:
    return any(w.wronged[r] for r in range(RANKS))


def t_the_dead_are_left_alone(w: W) -> bool:
    return any(w.status[r] is Status.REAPED for r in range(RANKS))


def p_a_worker_that_left_is_gone(w: W) -> bool:
    return any(alive(w, r) and w.w_leave[r] is Leave.GONE for r in range(RANKS))


def t_a_worker_that_left_is_gone(w: W) -> bool:
    return w.x_stop is Stop.CLOSING


def p_the_blocked_are_woken(w: W) -> bool:
    return w.gone or w.x_stop is Stop.RUNNING or w.m_woken


def t_the_blocked_are_woken(w: W) -> bool:
    return w.x_stop is not Stop.RUNNING


def p_who_is_asked_can_know(w: W) -> bool:
    return w.gone or all(
        w.x_stop_of[r] not in (RankStop.ASKED, RankStop.TERMINATED, RankStop.KILLED)
        or not alive(w, r)
        or w.line[r] is not Line.OPEN
        for r in range(RANKS)
    )


def t_who_is_asked_can_know(w: W) -> bool:
    return any(w.x_stop_of[r] is RankStop.ASKED for r in range(RANKS))


def p_signals_come_in_their_stage(w: W) -> bool:
    return w.gone or (
        (w.x_stop is not Stop.CLOSING or (not p_sigterm_is_sent(w) and not p_sigkill_is_sent(w)))
        and (w.x_stop is not Stop.TERMINATING or not p_sigkill_is_sent(w))
    )


def t_signals_come_in_their_stage(w: W) -> bool:
    return p_sigkill_is_sent(w)


def p_who_is_reaped_is_collected(w: W) -> bool:
    return w.gone or all(
        (w.x_stop_of[r] is not RankStop.REAPED or w.status[r] is Status.REAPED)
        and (w.x_stop_of[r] is not RankStop.ABSENT or w.status[r] is Status.ABSENT)
        for r in range(RANKS)
    )


def t_who_is_reaped_is_collected(w: W) -> bool:
    return any(w.x_stop_of[r] is RankStop.REAPED for r in range(RANKS))


def p_sigterm_is_sent(w: W) -> bool:
    return any(w.signal[r] is Sent.TERM for r in range(RANKS))


def p_sigkill_is_sent(w: W) -> bool:
    return any(w.signal[r] is Sent.KILL for r in range(RANKS))


def p_a_survivor_had_its_sigkill(w: W) -> bool:
    return w.gone or all(
        w.x_stop_of[r] is not RankStop.SURVIVOR
        or not alive(w, r)
        or w.signal[r] is Sent.KILL
        or w.status[r] is Status.WEDGED
        for r in range(RANKS)
    )


def t_a_survivor_had_its_sigkill(w: W) -> bool:
    return any(w.x_stop_of[r] is RankStop.SURVIVOR for r in range(RANKS))


def p_survivors_are_reported(w: W) -> bool:
    return all(w.x_stop_of[r] is not RankStop.SURVIVOR or w.survivors[r] for r in range(RANKS))


def t_survivors_are_reported(w: W) -> bool:
    return any(w.x_stop_of[r] is RankStop.SURVIVOR for r in range(RANKS))


def p_stages_come_in_order_by_time(w: W) -> bool:
    return w.o_skipped


def t_stages_come_in_order_by_time(w: W) -> bool:
    return w.x_stop is Stop.KILLING


def p_each_stage_has_its_time(w: W) -> bool:
    return w.gone or (
        (w.alarm is Alarm.ARM_GRACE) == (w.x_stop is Stop.CLOSING)
        and (w.alarm is Alarm.ARM_TERM) == (w.x_stop is Stop.TERMINATING)
        and (w.alarm is Alarm.ARM_KILL) == (w.x_stop is Stop.KILLING)
    )


def t_each_stage_has_its_time(w: W) -> bool:
    return w.x_stop is Stop.KILLING


def p_a_worker_is_asked_as_a_whole(w: W) -> bool:
    return all(
        not alive(w, r) or w.w_leave[r] is Leave.STAYING or (at_rest(w, r) and w.work[r] is Work.RUN_SHUTDOWN)
        for r in range(RANKS)
    )


def t_a_worker_is_asked_as_a_whole(w: W) -> bool:
    return any(alive(w, r) and w.w_leave[r] is Leave.LEAVING for r in range(RANKS))


def p_nobody_left_is_the_end(w: W) -> bool:
    return w.x_stop in (Stop.RUNNING, Stop.DOWN) or not all_reaped(w)


def t_nobody_left_is_the_end(w: W) -> bool:
    return w.x_stop is Stop.DOWN


def p_a_worker_buries_nobody_alive(w: W) -> bool:
    return all(
        not alive(w, r)
        or w.line[r] is Line.GONE
        or (w.w_intake[r] is not Reader.GONE and w.w_outlet_of[r] is not Seat.GONE)
        for r in range(RANKS)
    )


def t_a_worker_buries_nobody_alive(w: W) -> bool:
    return w.x_stop is Stop.CLOSING


def p_a_worker_ends_at_rest(w: W) -> bool:
    return w.o_unfinished


def t_a_worker_ends_at_rest(w: W) -> bool:
    return any(w.x_stop_of[r] is RankStop.REAPED for r in range(RANKS))


def p_who_counts_as_told_was_called(w: W) -> bool:
    return all(
        i >= w.x_listeners or (w.x_listener[i] is Listener.TOLD) == w.told[i] for i in range(LISTENERS)
    )


def t_who_counts_as_told_was_called(w: W) -> bool:
    return t_a_listener_is_told_once(w)


def p_a_listener_is_told_once(w: W) -> bool:
    return w.o_told_twice


def t_a_listener_is_told_once(w: W) -> bool:
    return any(i < w.x_listeners and w.x_listener[i] is Listener.TOLD for i in range(LISTENERS))


def p_a_failure_is_told(w: W) -> bool:
    return w.x_life not in (Life.FAILING, Life.FAILED) or all(
        w.told[i] == (i < w.x_listeners) for i in range(LISTENERS)
    )


def t_a_failure_is_told(w: W) -> bool:
    return t_a_listener_is_told_once(w)


def p_a_stop_is_no_failure(w: W) -> bool:
    return w.x_life in (Life.STOPPING, Life.DOWN) and any(w.told[i] for i in range(LISTENERS))


def t_a_stop_is_no_failure(w: W) -> bool:
    return w.x_life is Life.DOWN and w.x_listeners > 0


def q_no_orphan(w: W) -> bool:
    return w.gone


def p_no_orphan(w: W) -> bool:
    return w.gone and not any(alive(w, r) for r in range(RANKS))
