"""What must hold of every model, as specs/properties/life.py has it; see holds.py for the names."""

from __future__ import annotations

from ....protocol.futures import Call
from ....protocol.life import Life
from ....protocol.queues import Gate, Reader, Seat
from ....protocol.ready import RankStart, Start
from ....protocol.shutdown import Listener, RankStop, Stop
from .ends import ending
from .executor import has_ended
from .words import (
    CALLS,
    LISTENERS,
    RANKS,
    WHOLE_CRASHES,
    WHOLE_FAULTS,
    WHOLE_RAISES,
    WHOLE_STALE,
    WHOLE_START_DEADLINES,
    WHOLE_STOPS,
    W,
)


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


def p_what_a_machine_is_told_is_so(w: W) -> bool:
    return w.o_mistold


def t_what_a_machine_is_told_is_so(w: W) -> bool:
    return t_no_illegal_event(w)


def p_what_is_said_is_said_once(w: W) -> bool:
    return w.o_again


def t_what_is_said_is_said_once(w: W) -> bool:
    return t_what_happened_is_announced(w)


def off_its_way(w: W, r: int) -> bool:
    return w.x_start_of[r] in (RankStart.READY, RankStart.FAILED, RankStart.DEAD, RankStart.CANCELLED)


def unseated(w: W, r: int) -> bool:
    return w.x_broadcast_of[r] in (Seat.CLOSED, Seat.GONE) and w.x_replies_of[r] in (
        Reader.CLOSED,
        Reader.GONE,
    )


def p_an_end_reaches_every_part(w: W) -> bool:
    return not ending(w) or (
        w.x_start in (Start.UP, Start.FAILED)
        and all(off_its_way(w, r) and unseated(w, r) for r in range(RANKS))
        and w.x_broadcast is Gate.CLOSED
        and w.x_replies is Gate.CLOSED
        and not any(w.x_here[c] and w.x_call[c] is Call.OPEN for c in range(1, CALLS + 1))
        and not any(i < w.x_listeners and w.x_listener[i] is Listener.LISTENING for i in range(LISTENERS))
        and w.x_stop is not Stop.RUNNING
    )


def t_an_end_reaches_every_part(w: W) -> bool:
    return ending(w)


def p_a_broken_part_breaks_the_whole(w: W) -> bool:
    return ending(w) or (
        w.x_start is not Start.FAILED and w.x_broadcast is not Gate.CLOSED and w.x_replies is not Gate.CLOSED
    )


def t_a_broken_part_breaks_the_whole(w: W) -> bool:
    return ending(w)


def reaped(w: W) -> bool:
    return any(w.x_stop_of[r] is RankStop.REAPED for r in range(RANKS))


def p_the_dead_are_dead_to_all(w: W) -> bool:
    return all(
        w.x_stop_of[r] is not RankStop.REAPED or (off_its_way(w, r) and unseated(w, r)) for r in range(RANKS)
    )


def t_the_dead_are_dead_to_all(w: W) -> bool:
    return reaped(w)


def p_who_is_taken_for_gone_was_reaped(w: W) -> bool:
    return all(
        w.x_stop_of[r] is RankStop.REAPED
        or (
            w.x_start_of[r] is not RankStart.DEAD
            and w.x_broadcast_of[r] is not Seat.GONE
            and w.x_replies_of[r] is not Reader.GONE
        )
        for r in range(RANKS)
    )


def t_who_is_taken_for_gone_was_reaped(w: W) -> bool:
    return reaped(w)


def p_a_stop_was_asked_for(w: W) -> bool:
    return w.b_stops == WHOLE_STOPS and not w.gone and w.x_life in (Life.STOPPING, Life.DOWN)


def t_a_stop_was_asked_for(w: W) -> bool:
    return w.x_life is Life.DOWN


def p_who_waits_is_told_what_happened(w: W) -> bool:
    return w.o_unheard


def t_who_waits_is_told_what_happened(w: W) -> bool:
    return t_no_illegal_event(w)


def p_who_asks_for_a_stop_gets_one(w: W) -> bool:
    return w.gone or w.b_stops == WHOLE_STOPS or ending(w)


def t_who_asks_for_a_stop_gets_one(w: W) -> bool:
    return w.x_life is Life.STOPPING
