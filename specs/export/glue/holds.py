"""Where a run may end, and what must hold: the properties of specs/properties, said again over flat variables.

Theory of operation. A property is found by its name: "start decides" is `p_start_decides`, its premise (of a leads-to)
`q_start_decides`, its twin `t_start_decides`; a number in a name is an argument, and `n` in the function's. A property
that has no function here is *not established* by the other engines, and said to be. A test holds each predicate equal
to the one it restates, on every state of every model.
"""

from __future__ import annotations

from ....protocol.futures import Serve
from ....protocol.life import Life
from ....protocol.queues import Gate, Reader, Seat
from ....protocol.ready import Boot, RankStart, Start
from ....protocol.shutdown import RankStop
from ...world import Status
from .channels import alive
from .ends import anybody_waits, is_up
from .executor import has_ended
from .words import (
    RANKS,
    WHOLE_CRASHES,
    WHOLE_FAULTS,
    WHOLE_RAISES,
    WHOLE_STALE,
    WHOLE_START_DEADLINES,
    WHOLE_STOPS,
    W,
)

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


def p_the_first_failure_decides(w: W) -> bool:
    return w.x_start in (Start.UP, Start.FAILED) or not any(
        w.x_start_of[r] in (RankStart.FAILED, RankStart.DEAD) for r in range(RANKS)
    )


def t_the_first_failure_decides(w: W) -> bool:
    return is_up(w)


def p_ready_is_said(w: W) -> bool:
    return w.o_unsaid


def t_ready_is_said(w: W) -> bool:
    return t_ready_is_the_rank_s_own_word(w)


def p_a_phase_is_said_before_it_begins(w: W) -> bool:
    return w.o_late_word


def t_a_phase_is_said_before_it_begins(w: W) -> bool:
    return t_ready_is_the_rank_s_own_word(w)


def p_who_counts_as_failed_said_so(w: W) -> bool:
    return w.b_raises == WHOLE_RAISES and t_who_counts_as_failed_said_so(w)


def t_who_counts_as_failed_said_so(w: W) -> bool:
    return any(w.x_start_of[r] is RankStart.FAILED for r in range(RANKS))


def p_who_failed_leaves(w: W) -> bool:
    return all(w.x_start_of[r] is not RankStart.FAILED or not alive(w, r) for r in range(RANKS))


def t_who_failed_leaves(w: W) -> bool:
    return t_who_counts_as_failed_said_so(w)


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


def p_a_worker_opens_once(w: W) -> bool:
    return any(w.running[r] > 0 and alive(w, r) and w.w_serve[r] is Serve.CLOSED for r in range(RANKS))


def t_a_worker_opens_once(w: W) -> bool:
    return w.x_life is Life.SERVING


def p_the_end_ends_every_wait(w: W) -> bool:
    return not has_ended(w) or (w.x_broadcast is not Gate.GATHERING and w.x_replies is not Gate.GATHERING)


def t_the_end_ends_every_wait(w: W) -> bool:
    return has_ended(w)


def q_rank_n_comes_to_serve(w: W, n: int) -> bool:
    return w.x_life is Life.SERVING and alive(w, n) and w.w_serve[n] is Serve.CLOSED


def p_rank_n_comes_to_serve(w: W, n: int) -> bool:
    return not q_rank_n_comes_to_serve(w, n)


def writes(w: W) -> bool:
    return any(alive(w, r) and w.w_serve[r] is Serve.REPLYING for r in range(RANKS))


def q_no_reader_holds_a_writer_for_ever(w: W) -> bool:
    return writes(w) and (w.gone or w.x_life is not Life.SERVING)


def p_no_reader_holds_a_writer_for_ever(w: W) -> bool:
    return not q_no_reader_holds_a_writer_for_ever(w)


def p_a_writer_waits_for_room(w: W) -> bool:
    return writes(w) and not anybody_waits(w)


def q_room_is_made(w: W) -> bool:
    return writes(w) and anybody_waits(w)


def p_room_is_made(w: W) -> bool:
    return not q_room_is_made(w)
