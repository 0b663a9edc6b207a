"""Where a run may end, and what must hold: the properties of specs/properties, said again over flat variables.

Theory of operation. A property is found by its name: "start decides" is `p_start_decides`, its premise (of a leads-to)
`q_start_decides`, its twin `t_start_decides`; a number in a name is an argument, and `n` in the function's. A property
that has no function here is *not established* by the other engines, and said to be. A test holds each predicate equal
to the one it restates, on every state of every model.
"""

from __future__ import annotations

from ....protocol.futures import Call, Reply, Serve
from ....protocol.life import Life
from ....protocol.queues import Gate, Reader, Seat
from ....protocol.ready import Boot, RankStart, Start
from ....protocol.shutdown import Leave, Listener, RankStop, Stop
from .executor import has_ended
from .rank import alive
from .threads import marked, parked
from .words import (
    AHEAD,
    CALLS,
    LISTENERS,
    PLACES,
    RANKS,
    THREADS,
    WHOLE_CRASHES,
    WHOLE_FAULTS,
    WHOLE_RAISES,
    WHOLE_STALE,
    WHOLE_START_DEADLINES,
    WHOLE_STOPS,
    Line,
    Sent,
    Status,
    W,
)

# --- where the model ends ---------------------------------------------------------------------------------------------


def is_up(w: W) -> bool:
    """Every rank is READY."""
    return w.x_start is Start.UP


def is_over(w: W) -> bool:
    """The executor serves no more and every caller has come back."""
    return w.x_life is not Life.SERVING and not anybody_waits(w)


def anybody_waits(w: W) -> bool:
    """Some thread has a call out."""
    return any(w.t_out[t * AHEAD] > 0 for t in range(THREADS))


def may_end(w: W) -> bool:
    """A run may end here."""
    return (w.gone and not any(alive(w, r) for r in range(RANKS))) or (
        not w.gone
        and not anybody_waits(w)
        and (w.x_life is Life.SERVING or (has_ended(w) and nobody_is_left(w)))
    )


def nobody_is_left(w: W) -> bool:
    """Every process is gone or reported."""
    return all(not alive(w, r) or w.x_stop_of[r] is RankStop.SURVIVOR for r in range(RANKS))


# --- every model ------------------------------------------------------------------------------------------------------


def p_no_illegal_event(w: W) -> bool:
    return w.o_illegal


def t_no_illegal_event(w: W) -> bool:
    return w.x_life in (Life.DOWN, Life.FAILED, Life.SERVING)


def p_what_happened_is_announced(w: W) -> bool:
    return w.gone or (
        (w.x_life is not Life.SERVING or w.m_up)
        and (not has_ended(w) or w.m_end)
        and (w.m_failure == (w.x_life in (Life.FAILING, Life.FAILED)))
    )


def t_what_happened_is_announced(w: W) -> bool:
    return w.m_up or w.m_failure or w.m_end or w.m_woken


def p_a_failure_has_a_cause(w: W) -> bool:
    return (
        not w.gone
        and w.x_life in (Life.FAILING, Life.FAILED)
        and w.b_crashes == WHOLE_CRASHES
        and w.b_raises == WHOLE_RAISES
        and w.b_start_deadlines == WHOLE_START_DEADLINES
        and w.b_faults == WHOLE_FAULTS
        and w.b_stale == WHOLE_STALE
    )


def t_a_failure_has_a_cause(w: W) -> bool:
    return w.x_life in (Life.FAILING, Life.FAILED)


# --- start ------------------------------------------------------------------------------------------------------------


def p_start_decides(w: W) -> bool:
    return w.gone or w.x_start in (Start.UP, Start.FAILED)


def t_start_decides(w: W) -> bool:
    return is_up(w)


def p_up_means_every_rank_is_ready(w: W) -> bool:
    return not is_up(w) or all(w.x_start_of[r] is RankStart.READY for r in range(RANKS))


def t_up_means_every_rank_is_ready(w: W) -> bool:
    return is_up(w)


def p_ready_is_the_rank_s_own_word(w: W) -> bool:
    return all(
        w.x_start_of[r] is not RankStart.READY or not alive(w, r) or w.w_boot[r] is Boot.READY
        for r in range(RANKS)
    )


def t_ready_is_the_rank_s_own_word(w: W) -> bool:
    return any(w.x_start_of[r] is RankStart.READY for r in range(RANKS))


def q_a_failed_start_leaves_no_worker(w: W) -> bool:
    return not w.gone and w.x_start is Start.FAILED


def p_a_failed_start_leaves_no_worker(w: W) -> bool:
    return w.gone or all(w.x_stop_of[r] in (RankStop.REAPED, RankStop.ABSENT) for r in range(RANKS))


def p_a_stale_message_is_never_taken(w: W) -> bool:
    return w.o_stale_taken


def t_a_stale_message_is_never_taken(w: W) -> bool:
    return t_ready_is_the_rank_s_own_word(w)


def p_a_stale_message_changes_nothing(w: W) -> bool:
    return w.o_stale_harm


def t_a_stale_message_changes_nothing(w: W) -> bool:
    return w.b_stale == 0


def p_a_failed_start_names_its_cause(w: W) -> bool:
    return (
        w.x_start is Start.FAILED
        and not any(is_cause(w, r) for r in range(RANKS))
        and w.b_stops == WHOLE_STOPS
        and w.b_start_deadlines == WHOLE_START_DEADLINES
        and w.b_faults == WHOLE_FAULTS
        and w.b_stale == WHOLE_STALE
    )


def is_cause(w: W, r: int) -> bool:
    return w.x_start_of[r] in (RankStart.FAILED, RankStart.DEAD) or (
        w.x_start_of[r] is RankStart.READY and w.x_stop_of[r] is RankStop.REAPED
    )


def t_a_failed_start_names_its_cause(w: W) -> bool:
    return any(w.x_start_of[r] is RankStart.DEAD for r in range(RANKS))


def q_a_death_ends_the_start(w: W) -> bool:
    return (
        not w.gone and w.x_start is Start.STARTING and any(w.status[r] is Status.DEAD for r in range(RANKS))
    )


def p_a_death_ends_the_start(w: W) -> bool:
    return not q_a_death_ends_the_start(w)


def p_who_raises_says_so(w: W) -> bool:
    return w.b_crashes == WHOLE_CRASHES and any(w.x_start_of[r] is RankStart.DEAD for r in range(RANKS))


def t_who_raises_says_so(w: W) -> bool:
    return any(w.x_start_of[r] is RankStart.FAILED for r in range(RANKS))


# --- queues -----------------------------------------------------------------------------------------------------------


def p_the_queues_open_or_the_start_ends(w: W) -> bool:
    return w.gone or w.x_life not in (Life.STARTING, Life.JOINING)


def t_the_queues_open_or_the_start_ends(w: W) -> bool:
    return w.x_life is Life.SERVING


def p_serving_means_every_queue_is_open(w: W) -> bool:
    return w.x_life is not Life.SERVING or (
        w.x_broadcast is Gate.OPEN
        and w.x_replies is Gate.OPEN
        and all(w.x_broadcast_of[r] is Seat.OPEN and w.x_replies_of[r] is Reader.OPEN for r in range(RANKS))
    )


def t_serving_means_every_queue_is_open(w: W) -> bool:
    return w.x_life is Life.SERVING


def p_a_worker_serves_on_open_queues(w: W) -> bool:
    return all(
        not alive(w, r)
        or w.w_serve[r] in (Serve.CLOSED, Serve.STOPPED)
        or (w.w_intake[r] is Reader.OPEN and w.w_outlet[r] is Gate.OPEN)
        for r in range(RANKS)
    )


def t_a_worker_serves_on_open_queues(w: W) -> bool:
    return any(alive(w, r) and w.w_serve[r] is Serve.IDLE for r in range(RANKS))


def p_the_end_ends_every_wait(w: W) -> bool:
    return not has_ended(w) or (w.x_broadcast is not Gate.GATHERING and w.x_replies is not Gate.GATHERING)


def t_the_end_ends_every_wait(w: W) -> bool:
    return has_ended(w)


def q_rank_n_comes_to_serve(w: W, n: int) -> bool:
    return w.x_life is Life.SERVING and alive(w, n) and w.w_serve[n] is Serve.CLOSED


def p_rank_n_comes_to_serve(w: W, n: int) -> bool:
    return not q_rank_n_comes_to_serve(w, n)


# --- calls ------------------------------------------------------------------------------------------------------------


def ending(w: W) -> bool:
    return w.x_life in (Life.STOPPING, Life.FAILING, Life.DOWN, Life.FAILED)


def any_call(w: W) -> bool:
    return any(w.x_here[c] for c in range(1, CALLS + 1))


def outstanding(w: W) -> bool:
    return (CALLS <= 1 and any_call(w)) or any(
        any(c < d and w.x_here[c] and w.x_here[d] for d in range(1, CALLS + 1)) for c in range(1, CALLS + 1)
    )


def any_settled(w: W) -> bool:
    return any(w.settled[c] for c in range(CALLS + RANKS))


def broken(w: W, c: int) -> bool:
    return any(w.x_call_of[c * RANKS + r] in (Reply.RAISED, Reply.LOST) for r in range(RANKS))


def draining(w: W, t: int) -> bool:
    return marked(w, t)


def somebody_drains(w: W) -> bool:
    return any(marked(w, t) for t in range(THREADS))


def somebody_is_parked(w: W) -> bool:
    return any(parked(w, t) for t in range(THREADS))


def p_a_call_takes_only_its_own_replies(w: W) -> bool:
    return w.o_mixed


def t_a_call_takes_only_its_own_replies(w: W) -> bool:
    return outstanding(w)


def p_a_call_has_one_outcome(w: W) -> bool:
    return w.o_twice


def t_a_call_has_one_outcome(w: W) -> bool:
    return any_settled(w)


def p_calls_resolve_in_order(w: W) -> bool:
    return w.o_out_of_order


def t_calls_resolve_in_order(w: W) -> bool:
    return outstanding(w)


def p_a_result_is_every_rank_s(w: W) -> bool:
    return w.o_unearned


def t_a_result_is_every_rank_s(w: W) -> bool:
    return any_settled(w)


def p_a_rank_s_failure_fails_its_call(w: W) -> bool:
    return all(
        not w.x_here[c] or w.x_call[c] not in (Call.OPEN, Call.RESOLVED) or not broken(w, c)
        for c in range(1, CALLS + 1)
    )


def t_a_rank_s_failure_fails_its_call(w: W) -> bool:
    return any(w.x_here[c] and (RANKS == 1 or broken(w, c)) for c in range(1, CALLS + 1))


def p_a_call_fails_for_its_own_reasons(w: W) -> bool:
    return ending(w) or all(
        not w.x_here[c] or w.x_call[c] is not Call.FAILED or broken(w, c) for c in range(1, CALLS + 1)
    )


def t_a_call_fails_for_its_own_reasons(w: W) -> bool:
    return w.x_life is Life.SERVING and any_call(w)


def p_the_end_fails_every_open_call(w: W) -> bool:
    return not ending(w) or not t_the_end_fails_every_open_call(w)


def t_the_end_fails_every_open_call(w: W) -> bool:
    return any(w.x_here[c] and w.x_call[c] is Call.OPEN for c in range(1, CALLS + 1))


def p_one_drains(w: W) -> bool:
    return all(
        all(t >= s or not (marked(w, t) and marked(w, s)) for s in range(THREADS)) for t in range(THREADS)
    )


def t_one_drains(w: W) -> bool:
    return somebody_drains(w) and (THREADS <= 1 or somebody_is_parked(w))


def q_caller_n_comes_back(w: W, n: int) -> bool:
    return not w.gone and w.t_out[n * AHEAD] > 0


def p_caller_n_comes_back(w: W, n: int) -> bool:
    return not q_caller_n_comes_back(w, n)


def q_nobody_is_left_parked(w: W) -> bool:
    return somebody_is_parked(w) and not somebody_drains(w)


def p_nobody_is_left_parked(w: W) -> bool:
    return not q_nobody_is_left_parked(w)


def p_the_dead_owe_nothing(w: W) -> bool:
    return all(
        all(
            not w.x_here[c]
            or w.x_stop_of[r] is not RankStop.REAPED
            or w.x_call_of[c * RANKS + r] is not Reply.OWED
            for r in range(RANKS)
        )
        for c in range(1, CALLS + 1)
    )


def t_the_dead_owe_nothing(w: W) -> bool:
    return RANKS == 1 or any(
        any(w.x_here[c] and w.x_call_of[c * RANKS + r] is Reply.LOST for r in range(RANKS))
        for c in range(1, CALLS + 1)
    )


def p_an_answer_says_what_happened(w: W) -> bool:
    return w.o_missaid


def t_an_answer_says_what_happened(w: W) -> bool:
    return any_settled(w)


def q_a_failure_reaches_its_call(w: W) -> bool:
    return not w.gone and any(
        w.x_here[c]
        and w.x_call[c] is Call.OPEN
        and any(w.reply[place] == 2 * c for place in range(RANKS * PLACES))
        for c in range(1, CALLS + 1)
    )


def p_a_failure_reaches_its_call(w: W) -> bool:
    return not q_a_failure_reaches_its_call(w)


def p_an_abandoned_call_is_outlived(w: W) -> bool:
    return any(
        w.x_here[c]
        and w.x_call[c] in (Call.EXPIRED, Call.CANCELLED)
        and any(c < d and w.x_here[d] for d in range(1, CALLS + 1))
        for c in range(1, CALLS + 1)
    )


def p_a_stale_reply_changes_nothing(w: W) -> bool:
    return w.o_stale_harm


def t_a_stale_reply_changes_nothing(w: W) -> bool:
    return w.b_stale == 0


# --- stop -------------------------------------------------------------------------------------------------------------


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
        w.x_stop_of[r] is not RankStop.REAPED or w.status[r] is Status.REAPED for r in range(RANKS)
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
