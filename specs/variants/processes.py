"""Processes, signals and exit statuses as the kernel has them: small models of one table.

Theory of operation:

1. A process is UNREADY until its handlers stand, then READY, then GONE. A signal that finds no handler of its own is
   lost, unless it is held back until one stands.
2. The kernel gives an exit status to one caller. Who asks second is told that there is no such child.
3. A watch that is armed after the event sees nothing, so whoever arms looks once more.
4. A signal reaches a process, not its children; and a supervisor that is left alive makes new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on, stay
from ..explore import Label, Property, leads_to
from .small import Moves, NoEffect, Small, put
from .variant import Trial, Variant


class Process(State):
    """A process, from the kernel's side."""

    UNREADY = "The process runs, and has neither handlers nor watches of its own yet."
    READY = "The process's handlers stand, and its watches are armed."
    GONE = "The process has ended."


class ProcessOn(Event):
    """What can happen to a process."""

    READY = "ready", Kind.WORK, "Its handlers stand and its watches are armed."
    SIGNAL = "signal", Kind.MESSAGE, "A signal asks it to end."
    KILLED = "killed", Kind.DEATH, "SIGKILL, or the machine's memory, ends it."
    MADE = "made", Kind.WORK, "Its supervisor starts it again."


PROCESS = Table(
    name="process",
    purpose="A process with handlers and watches that stand only after a while.",
    states=Process,
    events=ProcessOn,
    effects=NoEffect,
    initial=Process.UNREADY,
    final=frozenset(),
    rows=(
        on(ProcessOn.READY, Process.UNREADY, Process.READY),
        on(
            ProcessOn.SIGNAL, Process.UNREADY, None
        ),  # taken by a handler that was inherited, and read by nobody
        on(ProcessOn.SIGNAL, Process.READY, Process.GONE),
        on(ProcessOn.KILLED, [Process.UNREADY, Process.READY], Process.GONE),
        on(ProcessOn.MADE, Process.GONE, Process.READY),
        *stay(Process.GONE, ProcessOn.SIGNAL, ProcessOn.KILLED),
    ),
)


class Family(NamedTuple):
    """A parent or supervisor, its worker, and the worker's helper; what was sent, and who knows what."""

    parent: State = Process.READY
    worker: State = Process.UNREADY
    helper: State = Process.GONE
    sent: bool = False
    pending: bool = False
    status: bool = True
    """The worker's exit status has not been collected."""
    waiters: tuple[bool, ...] = ()
    """Of each thread that waits for the worker's end, whether it knows of it."""


def _to(state: State, event: Event) -> State:
    return PROCESS.step(state, event).dest


@dataclass(frozen=True)
class Signalled:
    """A worker is signalled at any time; `held`: until its handlers stand, the signal is held back."""

    held: bool

    def moves(self, now: Family) -> Iterator[tuple[Label, Family]]:
        """What the worker does, and the signal."""
        if now.worker is Process.UNREADY:
            yield (
                Label("worker", "puts up its handlers"),
                now._replace(worker=_to(now.worker, ProcessOn.READY)),
            )
        if not now.sent:
            yield Label("parent", "sends SIGTERM", fair=False), now._replace(sent=True, pending=True)
        if now.pending and not (self.held and now.worker is Process.UNREADY):
            after = now._replace(worker=_to(now.worker, ProcessOn.SIGNAL), pending=False)
            yield Label("worker", "gets SIGTERM"), after


@dataclass(frozen=True)
class Watched:
    """A worker arms a watch of its parent; `looks`: after arming it compares its parent with the one it was told."""

    looks: bool

    def moves(self, now: Family) -> Iterator[tuple[Label, Family]]:
        """What parent and worker do."""
        if now.parent is Process.READY:
            rings = now.worker is Process.READY
            after = now._replace(parent=_to(now.parent, ProcessOn.KILLED), pending=rings)
            yield Label("parent", "is killed", fair=False), after
        if now.worker is Process.UNREADY:
            late = self.looks and now.parent is Process.GONE
            after = now._replace(worker=_to(now.worker, ProcessOn.READY), pending=now.pending or late)
            yield Label("worker", "arms its watch"), after
        if now.worker is Process.READY and now.pending:
            yield (
                Label("worker", "leaves"),
                now._replace(worker=_to(now.worker, ProcessOn.SIGNAL), pending=False),
            )


@dataclass(frozen=True)
class Waited:
    """Two threads wait for the worker's end; `one_reaper`: one of them asks the kernel, and tells the other."""

    one_reaper: bool

    def moves(self, now: Family) -> Iterator[tuple[Label, Family]]:
        """What the worker and the waiting threads do."""
        if now.worker is not Process.GONE:
            yield Label("worker", "ends"), now._replace(worker=_to(now.worker, ProcessOn.KILLED))
            return
        for number, knows in enumerate(now.waiters):
            if knows:
                continue
            if now.status and (number == 0 or not self.one_reaper):
                after = now._replace(status=False, waiters=put(now.waiters, number, True))
                yield Label(f"thread {number}", "collects the exit status"), after
            elif not now.status and self.one_reaper:
                yield (
                    Label(f"thread {number}", "is told"),
                    now._replace(waiters=put(now.waiters, number, True)),
                )


@dataclass(frozen=True)
class Ended:
    """The top ends a worker and its helper; `group`: one signal reaches both."""

    group: bool

    def moves(self, now: Family) -> Iterator[tuple[Label, Family]]:
        """What the top does."""
        if not now.sent:
            killed = _to(now.helper, ProcessOn.KILLED) if self.group else now.helper
            after = now._replace(sent=True, worker=_to(now.worker, ProcessOn.KILLED), helper=killed)
            yield Label("top", "sends SIGKILL", fair=False), after


@dataclass(frozen=True)
class Supervised:
    """The top ends a supervisor and its worker; `supervisor_first` says in which order."""

    supervisor_first: bool

    def moves(self, now: Family) -> Iterator[tuple[Label, Family]]:
        """What the top and the supervisor do."""
        if now.parent is Process.READY and now.worker is Process.GONE:
            after = now._replace(worker=_to(now.worker, ProcessOn.MADE))
            yield Label("supervisor", "starts the worker again"), after
        below = self.supervisor_first == now.pending
        if not now.sent:
            # The first of the two signals is any time's; the second follows.
            label = Label("top", "ends the worker" if below else "ends the supervisor", fair=now.pending)
            who = "worker" if below else "parent"
            killed = {who: _to(getattr(now, who), ProcessOn.KILLED)}
            yield label, now._replace(**killed, pending=True, sent=now.pending)  # type: ignore[arg-type]


def _trial(
    name: str,
    sentence: str,
    moves: Callable[[Family], Moves[Family]],
    premise: Callable[[Family], bool],
    goal: Callable[[Family], bool],
    start: Family,
) -> Trial:
    asked: Property[Family] = leads_to(name, sentence, premise, goal)
    return Trial(Small("processes", start, moves), [asked])


def _signalled(held: bool) -> Trial:
    return _trial(
        "a signal ends the worker",
        "A worker that was sent SIGTERM ends, whenever it was sent.",
        Signalled(held).moves,
        lambda now: now.sent,
        lambda now: now.worker is Process.GONE,
        Family(),
    )


def _watched(looks: bool) -> Trial:
    return _trial(
        "the parent's death ends the worker",
        "A worker whose parent is gone leaves, whenever the parent went.",
        Watched(looks).moves,
        lambda now: now.parent is Process.GONE,
        lambda now: now.worker is Process.GONE,
        Family(),
    )


def _waited(one_reaper: bool) -> Trial:
    return _trial(
        "each waiter learns of the end",
        "Every thread that waits for a process learns that it has ended.",
        Waited(one_reaper).moves,
        lambda now: now.worker is Process.GONE,
        lambda now: all(now.waiters),
        Family(worker=Process.READY, waiters=(False, False)),
    )


def _ended(group: bool) -> Trial:
    return _trial(
        "an end reaches the helpers",
        "When a worker is ended, so is every process that it started.",
        Ended(group).moves,
        lambda now: now.sent,
        lambda now: Process.READY not in (now.worker, now.helper),
        Family(worker=Process.READY, helper=Process.READY),
    )


def _supervised(supervisor_first: bool) -> Trial:
    return _trial(
        "what is ended stays ended",
        "When supervisor and worker have been ended, neither runs.",
        Supervised(supervisor_first).moves,
        lambda now: now.sent,
        lambda now: now.sent and Process.READY not in (now.parent, now.worker),
        Family(worker=Process.READY),
    )


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "handler-after-signal",
            "A signal comes between the fork and the child's own handlers: an inherited one takes it and does nothing.",
            ("benoitc/gunicorn#1910",),
            "processes",
            "a signal ends the worker",
            3,
            bad=lambda: _signalled(False),
            right=lambda: _signalled(True),
        ),
        Variant(
            "arm-without-looking",
            "The parent dies before the child has armed its watch, which then never fires.",
            ("sgl-project/sglang-omni#1075", "pytorch/pytorch#14394"),
            "processes",
            "the parent's death ends the worker",
            2,
            bad=lambda: _watched(False),
            right=lambda: _watched(True),
        ),
        Variant(
            "second-waiter",
            "Two threads wait for one child; the kernel tells one of them, and to the other it is alive for ever.",
            ("python/cpython#130895",),
            "processes",
            "each waiter learns of the end",
            2,
            bad=lambda: _waited(False),
            right=lambda: _waited(True),
        ),
        Variant(
            "signal-reaches-one",
            "The worker is killed and what it had started runs on.",
            ("pytorch/pytorch#113231", "vllm-project/vllm-ascend#6998"),
            "processes",
            "an end reaches the helpers",
            1,
            bad=lambda: _ended(False),
            right=lambda: _ended(True),
        ),
        Variant(
            "worker-before-supervisor",
            "The workers are killed first, and their supervisor starts new ones before its own turn comes.",
            ("clemsgrs/slide2vec#131",),
            "processes",
            "what is ended stays ended",
            3,
            bad=lambda: _supervised(False),
            right=lambda: _supervised(True),
        ),
    ]
