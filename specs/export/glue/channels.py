"""The channels of a rank, its process, and what the executor's effects do to both.

Theory of operation. As specs/world/channel.py and rank.py have it. A channel is an array and a length; what lies behind
the length is zero, so that equal channels are equal arrays. A channel that would need more places says so in
`overflow`, and nothing that was found then counts.
"""

from __future__ import annotations

from ....protocol.futures import ServeOn
from ....protocol.ready import RankStartOn
from ...world import Line, Status
from .words import LATE, PLACES, WORDS, Sent, W, Work
from .written import reset_worker


def alive(w: W, r: int) -> bool:
    """A process exists that could run."""
    return w.status[r] in (Status.ALIVE, Status.FROZEN, Status.WEDGED)


def say(w: W, r: int, word: RankStartOn) -> None:
    """The worker writes to the control channel, before it begins what it says."""
    if w.work[r] is not Work.NOTHING:
        w.o_late_word = True
    if w.controls[r] < WORDS:
        w.control[r * WORDS + w.controls[r]] = word
        w.controls[r] += 1
    else:
        w.overflow = True


def heard(w: W, r: int) -> None:
    """The first word of the control channel is taken."""
    for k in range(WORDS - 1):
        w.control[r * WORDS + k] = w.control[r * WORDS + k + 1]
    w.control[r * WORDS + WORDS - 1] = RankStartOn.SPAWNED
    w.controls[r] -= 1


def answer(w: W, r: int, code: int) -> None:
    """The worker writes to its reply queue."""
    if w.replies[r] < PLACES:
        w.reply[r * PLACES + w.replies[r]] = code
        w.replies[r] += 1
    else:
        w.overflow = True


def answer_returned(w: W, r: int) -> None:
    """The worker answers its call with a result."""
    answer(w, r, 2 * w.running[r] - 1)
    if w.event is not ServeOn.RETURNED:
        w.o_missaid = True


def answer_raised(w: W, r: int) -> None:
    """The worker answers its call with a failure."""
    answer(w, r, 2 * w.running[r])
    if w.event is not ServeOn.RAISED:
        w.o_missaid = True


def taken(w: W, r: int) -> None:
    """The first word of the reply queue is taken."""
    for k in range(PLACES - 1):
        w.reply[r * PLACES + k] = w.reply[r * PLACES + k + 1]
    w.reply[r * PLACES + PLACES - 1] = 0
    w.replies[r] -= 1


def send(w: W, r: int, code: int) -> None:
    """The executor writes to the broadcast queue; what is sent to a process that is gone is lost."""
    if alive(w, r):
        if w.calls[r] < PLACES:
            w.call[r * PLACES + w.calls[r]] = code
            w.calls[r] += 1
        else:
            w.overflow = True


def received(w: W, r: int) -> None:
    """The first word of the broadcast queue is taken."""
    for k in range(PLACES - 1):
        w.call[r * PLACES + k] = w.call[r * PLACES + k + 1]
    w.call[r * PLACES + PLACES - 1] = 0
    w.calls[r] -= 1


def join(w: W, r: int) -> None:
    """The executor says, as a reader, that it listens."""
    if alive(w, r):
        if w.joined[r] < PLACES:
            w.joined[r] += 1
        else:
            w.overflow = True


def joins_in(w: W, r: int) -> None:
    """The worker says, as a reader, that it listens."""
    if w.joins[r] < PLACES:
        w.joins[r] += 1
    else:
        w.overflow = True


def empty_up(w: W, r: int) -> None:
    """Nobody reads what the worker said."""
    for k in range(WORDS):
        w.control[r * WORDS + k] = RankStartOn.SPAWNED
    for k in range(PLACES):
        w.reply[r * PLACES + k] = 0
    w.controls[r] = 0
    w.replies[r] = 0
    w.joins[r] = 0


def dies(w: W, r: int) -> None:
    """The process ends; what it wrote stays in the channels."""
    if w.line[r] is Line.GONE:
        empty_up(w, r)
    w.status[r] = Status.DEAD
    w.work[r] = Work.NOTHING
    w.running[r] = 0
    w.line[r] = Line.OPEN
    w.signal[r] = Sent.NONE
    for k in range(PLACES):
        w.call[r * PLACES + k] = 0
    w.calls[r] = 0
    w.joined[r] = 0
    reset_worker(w, r)


def is_made(w: W, r: int) -> None:
    """The process is made."""
    w.status[r] = Status.ALIVE
    reset_worker(w, r)


def close_control(w: W, r: int) -> None:
    """The executor ends the control channel."""
    if alive(w, r):
        w.line[r] = Line.CLOSED


def kill(w: W, r: int, signal: Sent) -> None:
    """The executor sends a signal."""
    if alive(w, r):
        w.signal[r] = signal
    elif w.status[r] is not Status.DEAD:
        w.wronged[r] = True


def reap(w: W, r: int) -> None:
    """The executor collects the exit status."""
    if w.status[r] is Status.DEAD:
        w.status[r] = Status.REAPED
        w.work[r] = Work.NOTHING
        w.running[r] = 0
        if not LATE:
            for k in range(WORDS):
                w.control[r * WORDS + k] = RankStartOn.SPAWNED
            w.controls[r] = 0
    else:
        w.wronged[r] = True


def orphan(w: W, r: int) -> None:
    """The executor's process is gone."""
    if alive(w, r):
        w.line[r] = Line.GONE
    empty_up(w, r)
