"""The executor: what it does by itself, learns from a rank, or is asked to do.

Theory of operation. As specs/world/executor.py, parts.py and world.py have it. `can_` functions say when an action may
happen, `do_` procedures which fact it is; `run` (see `step`) then steps the machines.
"""

from __future__ import annotations

from ....protocol.core import Event
from ....protocol.futures import Call, Caller, CallOn, ReplyOn
from ....protocol.life import Life, LifeOn
from ....protocol.queues import Gate, Reader, ReaderOn, SeatOn
from ....protocol.ready import RankStart, RankStartOn, Start
from ....protocol.shutdown import RankStop, Stop, StopOn
from ...world import Status
from .channels import heard, is_made, orphan, taken
from .threads import drains
from .words import AHEAD, CALLS, LATE, LISTENERS, PLACES, RANKS, THREADS, WORDS, Alarm, Fact, Machine, W
from .written import reset_executor, reset_reply


def has_ended(w: W) -> bool:
    """The executor came to its end."""
    return w.x_life in (Life.DOWN, Life.FAILED)


def give(w: W, machine: Machine, slot: int, event: Event) -> None:
    """One event for one machine, then the coupling."""
    w.acts = True
    w.fact = Fact.ONE
    w.f_machine = machine
    w.f_slot = slot
    w.f_event = event
    w.settles = True


def of_this_origin(w: W) -> None:
    """The message is of this epoch, rank and call."""
    w.same_epoch = True
    w.same_rank = True
    w.same_call = True


# --- by itself --------------------------------------------------------------------------------------------------------


def can_make(w: W, r: int) -> bool:
    """Rank `r` is the next to be made."""
    return (
        not w.gone
        and w.x_life is Life.STARTING
        and w.x_stop_of[r] is RankStop.ABSENT
        and all(r <= q or w.x_stop_of[q] is not RankStop.ABSENT for q in range(RANKS))
    )


def do_make(w: W, r: int) -> None:
    """The process is made."""
    is_made(w, r)
    w.acts = True
    w.fact = Fact.RANK_MADE
    w.f_slot = r
    w.settles = True


def can_join(w: W, r: int) -> bool:
    """The handle of the rank's reply queue is known and the queue is still to be joined."""
    return (
        not w.gone
        and not has_ended(w)
        and w.x_start_of[r] is RankStart.READY
        and w.x_replies_of[r] is Reader.UNKNOWN
    )


def do_join(w: W, r: int) -> None:
    """The executor joins it."""
    give(w, Machine.REPLIES_OF, r, ReaderOn.HANDLE)


def can_go_on(w: W) -> bool:
    """The executor has not come to its end."""
    return not w.gone and not has_ended(w)


def can_start_deadline(w: W) -> bool:
    """The time for the whole start runs: a rank is not READY, or a queue is not open."""
    return can_go_on(w) and (
        w.x_start is Start.STARTING or w.x_broadcast is Gate.GATHERING or w.x_replies is Gate.GATHERING
    )


def do_start_deadline(w: W) -> None:
    """The time for the whole start is over."""
    w.timed = True
    w.acts = True
    w.fact = Fact.START_DEADLINE
    w.settles = True


def can_ask_stop(w: W) -> bool:
    """Somebody may ask for a stop."""
    return not w.gone and (LATE or not has_ended(w))


def do_ask_stop(w: W) -> None:
    """Somebody asks for a stop."""
    give(w, Machine.LIFE, 0, LifeOn.STOP)


def can_fault(w: W) -> bool:
    """Something may be broken beyond one call."""
    return not w.gone and (LATE or w.x_life in (Life.STARTING, Life.JOINING, Life.SERVING))


def do_fault(w: W) -> None:
    """It is."""
    give(w, Machine.LIFE, 0, LifeOn.FAULT)


def can_give_up_call(w: W, c: int) -> bool:
    """Call `c` is open; or, where things come late, settled and not yet out of the books."""
    return (can_go_on(w) and w.x_here[c] and w.x_call[c] is Call.OPEN) or (
        LATE and not w.gone and w.x_here[c] and w.x_call[c] in (Call.FAILED, Call.EXPIRED, Call.CANCELLED)
    )


def do_expire(w: W, c: int) -> None:
    """Its deadline passes."""
    w.timed = True
    give(w, Machine.CALL, 0, CallOn.DEADLINE)
    w.f_number = c
    w.settles = False


def do_cancel(w: W, c: int) -> None:
    """Its caller gives it up."""
    give(w, Machine.CALL, 0, CallOn.CANCEL)
    w.f_number = c
    w.settles = False


def can_listen(w: W) -> bool:
    """A failure callback may be registered."""
    return not w.gone


def do_listen(w: W) -> None:
    """It is, and told at once if there is something to tell."""
    w.acts = True
    w.x_listeners += 1
    w.fact = Fact.NOTHING
    w.settles = True


def can_ring(w: W, stage: Stop) -> bool:
    """The alarm is armed."""
    return not w.gone and w.alarm is not Alarm.OFF and w.x_stop is stage


def do_ring(w: W) -> None:
    """The time of the stage is over."""
    w.timed = True
    give(w, Machine.STOP, 0, StopOn.ALARM)


def can_be_killed(w: W) -> bool:
    """The executor's process may be killed."""
    return not w.gone and not has_ended(w)


def do_be_killed(w: W) -> None:
    """Nothing is left of it but its workers."""
    reset_executor(w)
    w.x_listeners = 0
    for c in range(1, CALLS + 1):
        w.x_here[c] = False
        for q in range(RANKS):
            reset_reply(w, c, q)
    forget_threads(w)
    forget_record(w)
    w.gone = True
    for q in range(RANKS):
        orphan(w, q)


def forget_threads(w: W) -> None:
    """There are no threads any more."""
    for t in range(THREADS):
        w.t_waits[t] = False
        w.t_woken[t] = False
        w.t_left[t] = 0
        w.t_caller[t] = Caller.LOOKING
        for k in range(AHEAD):
            w.t_out[t * AHEAD + k] = 0
    w.t_next = 1


def forget_record(w: W) -> None:
    """What was done before was judged before."""
    w.alarm = Alarm.OFF
    w.m_up = False
    w.m_failure = False
    w.m_end = False
    w.m_woken = False
    for c in range(CALLS + RANKS):
        w.settled[c] = False
    for k in range(LISTENERS):
        w.told[k] = False
    for q in range(RANKS):
        w.survivors[q] = False


# --- from a rank ------------------------------------------------------------------------------------------------------


def hears(w: W) -> bool:
    """The supervisor is in its loop."""
    return not w.gone and w.x_stop is not Stop.DOWN


def can_read(w: W, r: int, word: RankStartOn) -> bool:
    """`word` is first in the rank's control channel."""
    return hears(w) and w.controls[r] > 0 and w.control[r * WORDS] is word


def do_read(w: W, r: int, word: RankStartOn) -> None:
    """It is read."""
    heard(w, r)
    of_this_origin(w)
    w.message = True
    give(w, Machine.START_OF, r, word)


def can_reap(w: W, r: int) -> bool:
    """The rank's process is gone, and everything that it said of its start has been read."""
    return (
        hears(w)
        and w.controls[r] == 0
        and w.status[r] is Status.DEAD
        and w.x_stop_of[r] is not RankStop.REAPED
    )


def do_reap(w: W, r: int) -> None:
    """Every protocol and every call learns it."""
    w.acts = True
    w.fact = Fact.RANK_DIED
    w.f_slot = r
    w.settles = True


def can_reap_early(w: W, r: int) -> bool:
    """The news of a death overtakes what the dead rank had said."""
    return (
        hears(w)
        and w.controls[r] > 0
        and w.status[r] is Status.DEAD
        and w.x_stop_of[r] is not RankStop.REAPED
    )


def do_reap_early(w: W, r: int) -> None:
    """Every protocol and every call learns it."""
    do_reap(w, r)


def can_read_joined(w: W, r: int) -> bool:
    """The rank said, on the broadcast queue's channel, that it listens."""
    return hears(w) and w.joins[r] > 0


def do_read_joined(w: W, r: int) -> None:
    """It is read."""
    w.joins[r] -= 1
    give(w, Machine.BROADCAST_OF, r, SeatOn.JOINED)


def can_read_opened(w: W, r: int) -> bool:
    """OPEN is first in the rank's reply queue."""
    return hears(w) and w.replies[r] > 0 and w.reply[r * PLACES] == 0


def do_read_opened(w: W, r: int) -> None:
    """It is read."""
    taken(w, r)
    give(w, Machine.REPLIES_OF, r, ReaderOn.OPENED)


def can_be_stale(w: W, r: int) -> bool:
    """A word of an earlier epoch (`epoch` 1) or of another rank (0) may come on the rank's channel."""
    return hears(w) and w.x_stop_of[r] not in (RankStop.ABSENT, RankStop.REAPED)


def do_be_stale(w: W, r: int, word: RankStartOn, epoch: int) -> None:
    """It is read."""
    of_this_origin(w)
    if epoch == 1:
        w.same_epoch = False
    else:
        w.same_rank = False
    w.message = True
    w.stray = True
    give(w, Machine.START_OF, r, word)


# --- answers ----------------------------------------------------------------------------------------------------------


def offer(w: W, r: int, event: ReplyOn, number: int, epoch: bool) -> None:
    """An answer to call `number` is read: `take_offer` (see `step`) finds the call that takes it."""
    w.acts = True
    w.offered = True
    w.f_slot = r
    w.f_event = event
    w.of_call = number
    w.same_epoch = epoch
    w.same_rank = True


def can_take(w: W, r: int, k: int, t: int) -> bool:
    """Thread `t` drains, and the answer `k` is first in the rank's reply queue."""
    return not w.gone and drains(w, t) and w.replies[r] > 0 and w.reply[r * PLACES] == k


def can_take_returned(w: W, r: int, n: int, t: int) -> bool:
    """RETURNED `n` is first."""
    return can_take(w, r, 2 * n - 1, t)


def do_take_returned(w: W, r: int, n: int) -> None:
    """It is taken."""
    taken(w, r)
    offer(w, r, ReplyOn.RETURNED, n, True)


def can_take_raised(w: W, r: int, n: int, t: int) -> bool:
    """RAISED `n` is first."""
    return can_take(w, r, 2 * n, t)


def do_take_raised(w: W, r: int, n: int) -> None:
    """It is taken."""
    taken(w, r)
    offer(w, r, ReplyOn.RAISED, n, True)


def can_garble(w: W, r: int, n: int, t: int) -> bool:
    """The result that is first may not decode."""
    return can_take(w, r, 2 * n - 1, t)


def do_garble(w: W, r: int, n: int) -> None:
    """It counts as a failure."""
    taken(w, r)
    offer(w, r, ReplyOn.RAISED, n, True)


def first_call(w: W, c: int) -> bool:
    """Call `c` is the oldest in the books."""
    return w.x_here[c] and all(c <= d or not w.x_here[d] for d in range(1, CALLS + 1))


def can_stray(w: W, c: int, t: int) -> bool:
    """What is no answer to any call may be read as one, if a call `c` is in the books."""
    return not w.gone and drains(w, t) and first_call(w, c)


def do_stray(w: W, r: int, word: ReplyOn, kind: int, c: int) -> None:
    """It is read: of an earlier epoch (`kind` 0), of another rank (1), or to a call that nobody made (2)."""
    w.stray = True
    if kind == 0:
        offer(w, r, word, c, False)
    elif kind == 1:
        offer(w, r, word, c, True)
        w.same_rank = False
    else:
        offer(w, r, word, 0, True)
