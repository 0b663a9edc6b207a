"""What the world knows beside its processes: budgets, the stop's alarm, and the record of what was done.

Theory of operation. The record (outcomes handed over, listeners called, marks, offences) is never read by a process;
properties read it. Each piece is a bit set, and in a protocol without faults each is a function of the rest of the
state, so that watching costs no states.
"""

from __future__ import annotations

from typing import NamedTuple

from ...protocol.core import Effect
from ...protocol.futures import FuturesDo
from ...protocol.life import LifeDo
from ...protocol.shutdown import StopDo
from .words import Budgets, Mark, Offence


class Ghost(NamedTuple):
    """Budgets, alarm and record."""

    budgets: Budgets
    gone: bool = False
    """The executor's process was killed."""
    alarm: Effect | None = None
    """The effect that armed the stop's alarm, until it is put off or armed anew: a time that is over stays over."""
    marks: int = 0
    settled: int = 0
    """Calls (as bits) whose outcome was handed over."""
    told: int = 0
    """Listeners (as bits) that were called."""
    survivors: int = 0
    """Ranks (as bits) that were reported as survivors."""
    offences: int = 0


class Done(NamedTuple):
    """Something for the record: an effect and which call, listener or rank it was about."""

    effect: Effect
    about: int = 0


class Spend(NamedTuple):
    """One from a budget, by its position in `Budgets`."""

    budget: int


KILLED = "killed"  # the executor's process was killed
Op = Done | Spend | int | str
"""A change of the record; a bare int is offences."""

_ARMS = (StopDo.ARM_GRACE, StopDo.ARM_TERM, StopDo.ARM_KILL)
_MARKS: dict[Effect, Mark] = {
    LifeDo.ANNOUNCE_UP: Mark.UP,
    LifeDo.ANNOUNCE_FAILURE: Mark.FAILURE,
    LifeDo.ANNOUNCE_END: Mark.END,
    StopDo.WAKE_BLOCKED: Mark.WOKEN,
}
RECORDED: frozenset[Effect] = frozenset(
    {
        *_ARMS,
        *_MARKS,
        StopDo.DISARM,
        StopDo.CALL_BACK,
        StopDo.REPORT_SURVIVOR,
        FuturesDo.RESOLVE,
        FuturesDo.FAIL,
    }
)
"""The effects that leave something in the record."""


def noted(ghost: Ghost, op: Op) -> Ghost:
    """The record after `op`."""
    if isinstance(op, Spend):
        left = list(ghost.budgets)
        left[op.budget] -= 1
        return ghost._replace(budgets=Budgets(*left))
    if isinstance(op, Done):
        return _performed(ghost, op.effect, 1 << op.about)
    if op is KILLED:
        # Nothing of the executor is left to be known; what was done before was judged before.
        return Ghost(ghost.budgets, gone=True, offences=ghost.offences)
    assert isinstance(op, int)
    return ghost._replace(offences=ghost.offences | op)


def _performed(ghost: Ghost, effect: Effect, bit: int) -> Ghost:
    if effect in _ARMS:
        return ghost._replace(alarm=effect)
    if effect is StopDo.DISARM:
        return ghost._replace(alarm=None)
    if effect is StopDo.REPORT_SURVIVOR:
        wrong = Offence.AGAIN if ghost.survivors & bit else 0
        return ghost._replace(survivors=ghost.survivors | bit, offences=ghost.offences | wrong)
    if effect is StopDo.CALL_BACK:
        wrong = Offence.TOLD_TWICE if ghost.told & bit else 0
        return ghost._replace(told=ghost.told | bit, offences=ghost.offences | wrong)
    if effect in (FuturesDo.RESOLVE, FuturesDo.FAIL):
        wrong = Offence.TWICE if ghost.settled & bit else 0
        return ghost._replace(settled=ghost.settled | bit, offences=ghost.offences | wrong)
    mark = _MARKS[effect]
    wrong = Offence.AGAIN if ghost.marks & mark else 0
    return ghost._replace(marks=ghost.marks | mark, offences=ghost.offences | wrong)
