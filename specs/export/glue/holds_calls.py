"""What must hold of calls, as specs/properties/calls.py has it; see holds.py for the names."""

from __future__ import annotations

from ....protocol.futures import Call, Reply
from ....protocol.life import Life
from ....protocol.shutdown import RankStop
from .ends import ending
from .threads import marked, parked
from .words import (
    AHEAD,
    CALLS,
    PLACES,
    RANKS,
    THREADS,
    WHOLE_CALL_DEADLINES,
    WHOLE_CANCELS,
    W,
)


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


def p_an_outcome_is_handed_over(w: W) -> bool:
    return w.gone or all(
        c >= w.t_next or w.settled[c] or (w.x_here[c] and w.x_call[c] is Call.OPEN)
        for c in range(1, CALLS + 1)
    )


def t_an_outcome_is_handed_over(w: W) -> bool:
    return any_settled(w)


def p_who_waits_comes_back_for_a_reason(w: W) -> bool:
    return w.o_left


def t_who_waits_comes_back_for_a_reason(w: W) -> bool:
    return any_settled(w)


def p_a_call_ends_by_its_name(w: W) -> bool:
    return (w.b_call_deadlines < WHOLE_CALL_DEADLINES or not any_call_is(w, Call.EXPIRED)) and (
        w.b_cancels < WHOLE_CANCELS or not any_call_is(w, Call.CANCELLED)
    )


def any_call_is(w: W, state: Call) -> bool:
    return any(w.x_here[c] and w.x_call[c] is state for c in range(1, CALLS + 1))


def t_a_call_ends_by_its_name(w: W) -> bool:
    return outstanding(w)


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
