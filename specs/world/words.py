"""The words of the composed model: messages on channels, faults with budgets, and what must never be seen.

Theory of operation:

1. A **message** is the event that it will be for the machine that reads it, and the identity that its sender gave.
2. A **budget** counts a fault or an optional event that the environment may still bring about. Budgets bound the
   search; a fault that has none left cannot happen.
3. An **offence** is a thing that was *done*, not a state that was reached: a reply taken by a call that it was not for
   leaves no trace in any machine. The world notes it as a bit, which stays. In a protocol without faults no bit is
   ever set, so offences cost no states.
4. A **mark** notes that an effect was performed (the failure was announced, the end was announced). In a protocol
   without faults a mark is a function of the machines' states, so marks cost no states either.
"""

from __future__ import annotations

from enum import Enum, IntFlag, auto
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from ...protocol.core import Event, Identity, State, Step
from ..explore import Label

EPOCH = 1
"""The epoch of the group that the world is about; messages of epoch 0 come from an earlier one."""

EXECUTOR = "executor"

T = TypeVar("T")


def rank_name(rank: int) -> str:
    """The name of a worker's process, in labels and in traces."""
    return f"rank {rank}"


class Message(NamedTuple):
    """What lies in a channel: the event it is for its reader, and the identity that its sender gave."""

    word: Event
    identity: Identity

    def __str__(self) -> str:
        call = f" {self.identity.call}" if self.identity.call else ""
        return f"{self.word.value.upper()}{call}"


class Did(Label):
    """A label that also carries the table steps that the action took, each with its call, and their process."""

    process: str
    steps: tuple[tuple[int, Step], ...]


def did(
    process: str,
    action: str,
    steps: tuple[tuple[int, Step], ...] = (),
    sends: tuple[tuple[str, str, str], ...] = (),
    *,
    actor: str | None = None,
    fair: bool = True,
) -> Did:
    """Make a label; its note says where the action brought each machine."""
    moved = [_moved(step.machine, step.slot, step.dest) for _, step in steps if step.dest is not step.source]
    label = Did(process if actor is None else actor, action, sends, ", ".join(moved), fair)
    label.process = process
    label.steps = steps
    return label


@cache  # few are distinct, and this is said of every action
def _moved(machine: str, slot: int, dest: State) -> str:
    return f"{machine}{'' if slot < 0 else f'[{slot}]'} {dest}"


class Node(Generic[T]):
    """A part of the state, stored once: equal parts are one object, so that a state hashes by a few addresses.

    `memo` remembers what was computed from the part, under whatever key the computation chose.
    """

    __slots__ = ("memo", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.memo: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"Node({self.value!r})"


class Status(Enum):
    """A worker's process, as the kernel has it."""

    ABSENT = "not made"
    ALIVE = "alive"
    FROZEN = "stopped by SIGSTOP"
    WEDGED = "beyond SIGKILL"
    DEAD = "dead"
    REAPED = "reaped"


class Line(Enum):
    """The worker's view of the control channel's other end."""

    OPEN = "open"
    CLOSED = "closed"
    GONE = "gone with the executor"


class Signal(Enum):
    """A signal on its way to a worker."""

    TERM = "SIGTERM"
    KILL = "SIGKILL"


class Budgets(NamedTuple):
    """How often each fault or optional event may still happen."""

    crashes: int = 0
    raises: int = 0
    stale: int = 0
    stubborn: int = 0
    wedged: int = 0
    freezes: int = 0
    start_deadlines: int = 0
    call_deadlines: int = 0
    cancels: int = 0
    give_ups: int = 0
    stops: int = 0
    faults: int = 0
    parents: int = 0
    listeners: int = 0


class Offence(IntFlag):
    """Things that must never be done."""

    ILLEGAL = auto()
    """A machine met an event that it has no row for."""
    STALE_TAKEN = auto()
    """A message of another epoch or rank moved a rank's start."""
    STALE_HARM = auto()
    """A message of another epoch or rank changed something, or was illegal."""
    MIXED = auto()
    """A call took a reply that was not for it."""
    TWICE = auto()
    """A call was handed its outcome twice."""
    OUT_OF_ORDER = auto()
    """A call was resolved before an earlier one."""
    UNEARNED = auto()
    """A call was resolved although a rank had not returned."""
    TOLD_TWICE = auto()
    """A listener was called twice."""
    NOT_REAPED = auto()
    """A rank was taken for reaped and its exit status was not collected."""
    MISSAID = auto()
    """A worker answered something else than what its method did."""
    MISTOLD = auto()
    """A machine was told something that is not so."""
    SKIPPED = auto()
    """A stage of the stop was skipped, entered twice, or entered before its time."""
    AGAIN = auto()
    """Something that is announced once was announced twice, or a machine was moved twice by one and the same event."""
    LATE_WORD = auto()
    """A worker said what it was about to do after it had begun."""
    UNFINISHED = auto()
    """A worker that was asked, or orphaned, ended with a machine that had not come to rest."""
    LEFT = auto()
    """A waiting thread came back without its call's outcome and without giving up, or gave up and stayed."""
    UNSAID = auto()
    """A rank counts as READY that did not say so, or a worker counts something as said that it did not say."""
    UNHEARD = auto()
    """Somebody who waits for it did not learn of a death, a failure, an answer or a deadline as what it was."""


class Mark(IntFlag):
    """Effects of the whole executor that were performed."""

    UP = auto()
    FAILURE = auto()
    END = auto()
    WOKEN = auto()
