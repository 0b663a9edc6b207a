"""The threads that make calls and wait for them.

Theory of operation. As specs/world/threads.py and callers.py have it.
"""

from __future__ import annotations

from ....protocol.futures import Call, Caller, CallerOn
from ....protocol.life import Life, LifeOn
from .channels import send
from .words import AHEAD, RANKS, THREADS, Fact, Machine, W
from .written import caller_is_over, load, look, perform, store


def parked(w: W, t: int) -> bool:
    """Thread `t` is parked."""
    return w.t_waits[t] and w.t_caller[t] is Caller.PARKED


def marked(w: W, t: int) -> bool:
    """Thread `t` is draining."""
    return w.t_waits[t] and w.t_caller[t] is Caller.DRAINING


def drains(w: W, t: int) -> bool:
    """Thread `t` is the first that drains."""
    return marked(w, t) and all(t <= s or not marked(w, s) for s in range(THREADS))


def drained(w: W, t: int) -> bool:
    """The first thread that drains is another one."""
    return any(s != t and drains(w, s) for s in range(THREADS))


def looks(w: W, t: int) -> bool:
    """Thread `t` has looked at nothing yet."""
    return not w.t_waits[t] or w.t_caller[t] is Caller.LOOKING


def is_open(w: W, c: int) -> bool:
    """Call `c` has no outcome yet."""
    return w.x_here[c] and w.x_call[c] is Call.OPEN


def waits_for(w: W, t: int, c: int) -> bool:
    """Call `c` is the one that thread `t` has to come back from."""
    return not w.gone and w.t_out[t * AHEAD] == c


def can_submit(w: W, t: int) -> bool:
    """The thread may make its next call."""
    return (
        not w.gone
        and not w.t_waits[t]
        and w.t_left[t] > 0
        and w.t_out[t * AHEAD + AHEAD - 1] == 0
        and w.x_life is Life.SERVING
        and w.m_up
    )


def do_submit(w: W, t: int) -> None:
    """The call goes to every rank."""
    for q in range(RANKS):
        send(w, q, w.t_next)
    w.acts = True
    w.fact = Fact.ONE
    w.f_machine = Machine.LIFE
    w.f_event = LifeOn.SUBMIT
    w.submits = True
    w.f_slot = t


def submitted(w: W, t: int) -> None:
    """The books have it, and the thread."""
    for k in range(AHEAD):
        if w.submits and w.t_out[t * AHEAD + k] == 0:
            w.t_out[t * AHEAD + k] = w.t_next
            w.submits = False
    if not w.illegal:
        w.x_here[w.t_next] = True
    w.t_left[t] -= 1
    w.t_next += 1


def can_drain(w: W, t: int, c: int) -> bool:
    """The call is open and nobody drains."""
    return waits_for(w, t, c) and is_open(w, c) and looks(w, t) and not drained(w, t)


def can_park(w: W, t: int, c: int) -> bool:
    """The call is open and somebody drains."""
    return waits_for(w, t, c) and is_open(w, c) and looks(w, t) and drained(w, t)


def can_look(w: W, t: int, c: int) -> bool:
    """The thread was woken."""
    return waits_for(w, t, c) and parked(w, t) and w.t_woken[t]


def can_settle(w: W, t: int, c: int) -> bool:
    """The call has its outcome."""
    return waits_for(w, t, c) and not is_open(w, c)


def can_give_up(w: W, t: int, c: int) -> bool:
    """The thread may be interrupted or run out of time, also when it does not know yet that its call is settled."""
    return waits_for(w, t, c)


def wait(w: W, t: int, event: CallerOn) -> None:
    """The thread's wait gets an event."""
    w.waits = True
    w.f_slot = t
    w.machine = Machine.CALLER
    w.slot = t
    w.event = event


def do_drain(w: W, t: int) -> None:
    """It drains."""
    wait(w, t, CallerOn.DRAIN)


def do_park(w: W, t: int) -> None:
    """It sleeps."""
    wait(w, t, CallerOn.PARK)


def do_look(w: W, t: int) -> None:
    """It looks again."""
    wait(w, t, CallerOn.LOOK)


def do_settle(w: W, t: int) -> None:
    """It comes back."""
    wait(w, t, CallerOn.SETTLED)


def do_give_up(w: W, t: int) -> None:
    """It was interrupted."""
    wait(w, t, CallerOn.GIVE_UP)


def do_run_out(w: W, t: int) -> None:
    """Its time is over."""
    wait(w, t, CallerOn.DEADLINE)


def judge_wait(w: W, opened: bool) -> None:
    """A thread comes back with its call's outcome, or because it gave up, and then at once."""
    if w.event is CallerOn.SETTLED:
        if w.dest is not Caller.ANSWERED:
            w.o_left = True
    else:
        if w.dest is Caller.ANSWERED and opened:
            w.o_left = True
        if (w.event in (CallerOn.GIVE_UP, CallerOn.DEADLINE)) != (w.dest is Caller.GAVE_UP):
            w.o_left = True


def go_on(w: W, t: int) -> None:
    """Step the wait."""
    load(w)
    look(w)
    if not w.legal:
        w.o_illegal = True
    else:
        judge_wait(w, is_open(w, w.t_out[t * AHEAD]))
        w.t_waits[t] = True
        store(w)
        w.t_woken[t] = False
        if caller_is_over(w):
            w.t_waits[t] = False
            w.t_caller[t] = Caller.LOOKING
            for k in range(AHEAD - 1):
                w.t_out[t * AHEAD + k] = w.t_out[t * AHEAD + k + 1]
            w.t_out[t * AHEAD + AHEAD - 1] = 0
        perform(w)
