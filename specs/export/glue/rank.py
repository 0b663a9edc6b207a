"""A rank: what its worker does by itself, and what its surroundings do to it.

Theory of operation. As specs/world/rank.py has it. `can_` functions say when an action may
happen, `do_` procedures what it does.
"""

from __future__ import annotations

from ....protocol.core import Event
from ....protocol.futures import Serve, ServeOn
from ....protocol.queues import Reader, ReaderOn, SeatOn
from ....protocol.ready import Boot, BootOn
from ....protocol.shutdown import Leave, LeaveOn
from ...world import Line, Status
from .channels import dies, received
from .words import BOUNDED, PLACES, Fact, Machine, Sent, W, Work
from .written import due, is_due

# --- the surroundings -------------------------------------------------------------------------------------------------


def can_die_of_kill(w: W, r: int) -> bool:
    """SIGKILL arrives."""
    return w.status[r] in (Status.ALIVE, Status.FROZEN) and w.signal[r] is Sent.KILL


def do_die_of_kill(w: W, r: int) -> None:
    """SIGKILL ends the process."""
    dies(w, r)


def can_wedge(w: W, r: int) -> bool:
    """SIGKILL has no effect for the time being."""
    return can_die_of_kill(w, r)


def do_wedge(w: W, r: int) -> None:
    """The process is beyond SIGKILL."""
    w.status[r] = Status.WEDGED


def can_die_of_term(w: W, r: int) -> bool:
    """SIGTERM arrives."""
    return w.status[r] is Status.ALIVE and w.signal[r] is Sent.TERM


def do_die_of_term(w: W, r: int) -> None:
    """SIGTERM ends the process."""
    dies(w, r)


def can_ignore_term(w: W, r: int) -> bool:
    """SIGTERM is ignored."""
    return can_die_of_term(w, r)


def do_ignore_term(w: W, r: int) -> None:
    """The signal is gone and has done nothing."""
    w.signal[r] = Sent.NONE


def can_crash(w: W, r: int) -> bool:
    """A process may crash at any time."""
    return w.status[r] in (Status.ALIVE, Status.FROZEN) and w.signal[r] is Sent.NONE


def do_crash(w: W, r: int) -> None:
    """It crashes."""
    dies(w, r)


def can_freeze(w: W, r: int) -> bool:
    """SIGSTOP from outside."""
    return w.status[r] is Status.ALIVE


def do_freeze(w: W, r: int) -> None:
    """The process stands still."""
    w.status[r] = Status.FROZEN


def can_thaw(w: W, r: int) -> bool:
    """SIGCONT from outside."""
    return w.status[r] is Status.FROZEN


def do_thaw(w: W, r: int) -> None:
    """The process goes on."""
    w.status[r] = Status.ALIVE


def can_die_late(w: W, r: int) -> bool:
    """SIGKILL has its effect after all."""
    return w.status[r] is Status.WEDGED


def do_die_late(w: W, r: int) -> None:
    """It ends the process."""
    dies(w, r)


# --- the worker -------------------------------------------------------------------------------------------------------


def give_worker(w: W, r: int, machine: Machine, event: Event) -> None:
    """One event for one machine of worker `r`."""
    w.works = True
    w.rank = r
    w.fact = Fact.ONE
    w.f_machine = machine
    w.f_event = event


def runs_method(w: W, r: int) -> bool:
    """A method runs: the worker looks at nothing else."""
    return w.work[r] is Work.RUN_METHOD


def is_free(w: W, r: int) -> bool:
    """The worker does nothing and was not asked to leave."""
    return w.status[r] is Status.ALIVE and w.work[r] is Work.NOTHING and w.w_leave[r] is Leave.STAYING


def can_end_with_executor(w: W, r: int) -> bool:
    """The watch sees the executor's end while a method runs."""
    return w.status[r] is Status.ALIVE and w.line[r] is Line.GONE and runs_method(w, r)


def do_end_with_executor(w: W, r: int) -> None:
    """The process ends at once."""
    dies(w, r)


def can_be_orphaned(w: W, r: int) -> bool:
    """The worker looks up and the executor is gone."""
    return w.status[r] is Status.ALIVE and w.line[r] is Line.GONE and w.w_leave[r] is not Leave.GONE


def do_be_orphaned(w: W, r: int) -> None:
    """Every machine learns it."""
    w.works = True
    w.rank = r
    w.work[r] = Work.NOTHING
    w.fact = Fact.ORPHANED


def can_stop(w: W, r: int) -> bool:
    """The worker looks up and its control channel is closed."""
    return (
        w.status[r] is Status.ALIVE
        and w.line[r] is not Line.OPEN
        and not runs_method(w, r)
        and w.w_leave[r] is Leave.STAYING
    )


def do_stop(w: W, r: int) -> None:
    """Every machine learns it."""
    w.works = True
    w.rank = r
    w.work[r] = Work.NOTHING
    w.fact = Fact.STOP


def can_stop_again(w: W, r: int) -> bool:
    """A worker that takes its leave sees the end of its control channel again."""
    return w.status[r] is Status.ALIVE and w.line[r] is Line.CLOSED and w.w_leave[r] is Leave.LEAVING


def do_stop_again(w: W, r: int) -> None:
    """Every machine learns it, and the worker goes on with what it was doing."""
    w.again = True
    w.work_before = w.work[r]
    do_stop(w, r)


def can_end_phase(w: W, r: int, phase: Work) -> bool:
    """A phase of the start comes to its end."""
    return w.status[r] is Status.ALIVE and w.work[r] is phase


def do_end_phase(w: W, r: int, phase: Work) -> None:
    """The worker's start learns it."""
    if phase is Work.INIT_DEVICE:
        give_worker(w, r, Machine.BOOT, BootOn.DEVICE_UP)
    elif phase is Work.LOAD_MODEL:
        give_worker(w, r, Machine.BOOT, BootOn.WEIGHTS_UP)
    else:
        give_worker(w, r, Machine.BOOT, BootOn.QUEUES_UP)
    w.work[r] = Work.NOTHING


def can_return(w: W, r: int, n: int) -> bool:
    """The method of call `n` returns."""
    return w.status[r] is Status.ALIVE and runs_method(w, r) and w.running[r] == n


def do_return(w: W, r: int) -> None:
    """The worker's serving learns it."""
    give_worker(w, r, Machine.SERVE, ServeOn.RETURNED)
    w.work[r] = Work.NOTHING


def can_be_sent(w: W, r: int, n: int) -> bool:
    """The answer to call `n` is written."""
    return (
        w.status[r] is Status.ALIVE
        and w.work[r] in (Work.SEND_REPLY, Work.SEND_FAILURE)
        and w.running[r] == n
        and (not BOUNDED or w.replies[r] == 0)
    )


def do_be_sent(w: W, r: int) -> None:
    """The worker's serving learns it."""
    give_worker(w, r, Machine.SERVE, ServeOn.SENT)
    w.work[r] = Work.NOTHING


def can_be_clean(w: W, r: int) -> bool:
    """The worker's own shutdown comes to its end."""
    return w.status[r] is Status.ALIVE and w.work[r] is Work.RUN_SHUTDOWN


def do_be_clean(w: W, r: int) -> None:
    """The worker's end learns it."""
    give_worker(w, r, Machine.LEAVE, LeaveOn.CLEAN)
    w.work[r] = Work.NOTHING


def can_raise(w: W, r: int) -> bool:
    """A phase of the start, or a method, raises."""
    return w.status[r] is Status.ALIVE and (
        w.work[r] in (Work.INIT_DEVICE, Work.LOAD_MODEL, Work.MAKE_QUEUES, Work.RUN_METHOD)
        or can_be_born(w, r)
    )


def do_raise(w: W, r: int) -> None:
    """The machine that began it learns it."""
    if runs_method(w, r):
        give_worker(w, r, Machine.SERVE, ServeOn.RAISED)
    else:
        give_worker(w, r, Machine.BOOT, BootOn.RAISED)
    w.work[r] = Work.NOTHING


def can_be_born(w: W, r: int) -> bool:
    """The process has its arguments."""
    return is_free(w, r) and w.w_boot[r] is Boot.BORN


def do_be_born(w: W, r: int) -> None:
    """Its way to READY begins."""
    give_worker(w, r, Machine.BOOT, BootOn.BORN)


def can_do_due(w: W, r: int, k: int) -> bool:
    """Row `k` of the agenda is the first that acts."""
    return is_free(w, r) and is_due(w, r, k)


def do_do_due(w: W, r: int, k: int) -> None:
    """The worker does what is due."""
    w.works = True
    w.rank = r
    w.fact = Fact.ONE
    due(w, k)


def can_hear_joined(w: W, r: int) -> bool:
    """JOINED of the executor lies in the reply queue's channel."""
    return is_free(w, r) and w.joined[r] > 0


def do_hear_joined(w: W, r: int) -> None:
    """The reply queue's writer learns it."""
    w.joined[r] -= 1
    give_worker(w, r, Machine.OUTLET_OF, SeatOn.JOINED)


def can_hear_opened(w: W, r: int) -> bool:
    """OPEN is first in the broadcast queue."""
    return (
        is_free(w, r) and w.calls[r] > 0 and w.w_intake[r] is not Reader.UNKNOWN and w.call[r * PLACES] == 0
    )


def do_hear_opened(w: W, r: int) -> None:
    """The broadcast queue's reader learns it."""
    received(w, r)
    give_worker(w, r, Machine.INTAKE, ReaderOn.OPENED)


def can_take_call(w: W, r: int, n: int) -> bool:
    """CALL `n` is first in the broadcast queue, and the worker is idle."""
    return (
        is_free(w, r)
        and w.calls[r] > 0
        and w.w_intake[r] is not Reader.UNKNOWN
        and w.call[r * PLACES] == n
        and w.w_serve[r] is Serve.IDLE
    )


def do_take_call(w: W, r: int, n: int) -> None:
    """The worker takes it."""
    received(w, r)
    w.running[r] = n
    give_worker(w, r, Machine.SERVE, ServeOn.CALL)
