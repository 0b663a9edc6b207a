"""The state of the whole world: four parts, each stored once.

Theory of operation. There are few distinct parts (some hundred executors, some hundred ranks) and many combinations of
them. So each part is a `Node`, compared by address, and what follows from a part alone is computed once. Properties
read a part's `value`; the short names below are what they mostly ask for.
"""

from __future__ import annotations

from typing import NamedTuple

from ...protocol.core import State
from ...protocol.executor import ExecutorState
from .callers import Threads
from .ghost import Ghost
from .rank import Rank
from .words import Node


class Now(NamedTuple):
    """One state of the world."""

    executor: Node[ExecutorState]
    threads: Node[Threads]
    ghost: Node[Ghost]
    ranks: tuple[Node[Rank], ...]

    @property
    def life(self) -> State:
        """The executor's life."""
        return self.executor.value.life[0]

    @property
    def gone(self) -> bool:
        """Whether the executor's process was killed."""
        return self.ghost.value.gone


def in_words(now: Now) -> str:
    """The state for a reader: the executor's machines, callers, and each rank with what lies in its channels."""
    ghost, executor = now.ghost.value, now.executor.value
    if ghost.gone:
        parts = ["executor killed"]
    else:
        names = ("life", "start", "broadcast", "replies", "stop")
        clusters = ((name, getattr(executor, name)) for name in names)
        parts = [
            f"{name} {state[0]}" + (f"[{' '.join(map(str, state[1:]))}]" if len(state) > 1 else "")
            for name, state in clusters
        ]
        parts += [
            f"call {identity.call} {call[0]}[{' '.join(map(str, call[1:]))}]"
            for identity, call in executor.calls
        ]
        parts += [f"listener {number} {state}" for number, state in enumerate(executor.listeners)]
        for number, thread in enumerate(now.threads.value.threads):
            if thread.out:
                waits = "busy" if thread.caller is None else str(thread.caller)
                parts.append(f"caller {number} {waits} for {thread.out[0]}")
    if ghost.alarm is not None:
        parts.append(f"alarm {ghost.alarm.value}")
    return ", ".join(parts) + "".join("; " + _rank_in_words(node.value) for node in now.ranks)


def _rank_in_words(rank: Rank) -> str:
    words = [f"rank {rank.number} {rank.status.value}"]
    if rank.worker is not None:
        names = ("boot", "intake", "outlet", "serve", "leave")
        words.append(" ".join(f"{name} {getattr(rank.worker, name)[0]}" for name in names))
    for name in ("control", "calls", "joins", "replies", "joined"):
        channel = getattr(rank, name)
        if channel:
            words.append(f"{name}: {' '.join(map(str, channel))}")
    return ", ".join(words)
