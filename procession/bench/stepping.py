"""What stepping the tables costs in one empty call, by itself: no process, no message, no lock.

Theory of operation. The very facts of an empty call are given to the very protocols that the runtime steps: one submit,
one caller that drains and is settled, one answer a rank; on a worker one call, one return, one send. Time is that of
this thread alone, so that a busy machine costs what it takes from the caches and not the turns that it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ..protocol.core import Identity
from ..protocol.core.cluster import AGGREGATE
from ..protocol.executor import ExecutorProtocol, ExecutorState
from ..protocol.futures import CallerOn, ReplyOn, ServeOn
from ..protocol.life import Life
from ..protocol.queues import ReaderOn, SeatOn
from ..protocol.ready import BootOn, RankStartOn
from ..protocol.worker import WorkerProtocol, WorkerState

_EPOCH = 1
_CALLS = 500
_REPEATS = 9


class Stepping(NamedTuple):
    """Seconds a call, on each side."""

    executor: float
    worker: float


def stepping(ranks: int) -> Stepping:
    """Measure it: the best of several repeats, after the tables have been stepped once."""
    return Stepping(_best(_executor_call(ranks)), _best(_worker_call()))


def _best(call: Callable[[], None]) -> float:
    found = []
    for _ in range(_REPEATS):
        began = time.thread_time()
        for _ in range(_CALLS):
            call()
        found.append((time.thread_time() - began) / _CALLS)
    return min(found)


def _executor_call(ranks: int) -> Callable[[], None]:
    protocol = ExecutorProtocol()
    state = _serving_executor(protocol, ranks)
    number = 0

    def call() -> None:
        nonlocal state, number
        number += 1
        caller = protocol.caller.initial()
        state, _ = protocol.submit(state, Identity(_EPOCH, -1, number))
        caller, _ = protocol.caller.apply(caller, AGGREGATE, CallerOn.DRAIN)
        for rank in range(ranks):
            state, _ = protocol.reply(state, rank, ReplyOn.RETURNED, Identity(_EPOCH, rank, number))
        protocol.caller.apply(caller, AGGREGATE, CallerOn.SETTLED)

    return call


def _worker_call() -> Callable[[], None]:
    protocol = WorkerProtocol()
    state = _serving_worker(protocol)

    def call() -> None:
        nonlocal state
        for event in (ServeOn.CALL, ServeOn.RETURNED, ServeOn.SENT):
            state, _ = protocol.give(state, "serve", event)
        protocol.due(state)

    return call


def _serving_executor(protocol: ExecutorProtocol, ranks: int) -> ExecutorState:
    state = protocol.initial(ranks)
    words = (RankStartOn.HELLO, RankStartOn.WEIGHTS, RankStartOn.QUEUES)
    for rank in range(ranks):
        own = Identity(_EPOCH, rank)
        state, _ = protocol.made(state, rank)
        for word in (*words, RankStartOn.READY):
            state, _ = protocol.give(state, "start", rank, word, own, own)
        state, _ = protocol.give(state, "replies", rank, ReaderOn.HANDLE)
        state, _ = protocol.give(state, "broadcast", rank, SeatOn.JOINED)
    for rank in range(ranks):
        state, _ = protocol.give(state, "replies", rank, ReaderOn.OPENED)
    assert state.life == (Life.SERVING,)
    return state


def _serving_worker(protocol: WorkerProtocol) -> WorkerState:
    state = protocol.initial()
    phases = (BootOn.BORN, BootOn.DEVICE_UP, BootOn.WEIGHTS_UP, BootOn.QUEUES_UP)
    for event in phases:
        state, _ = protocol.give(state, "boot", event)
    state, _ = protocol.give(state, "intake", ReaderOn.HANDLE)
    state, _ = protocol.give(state, "intake", ReaderOn.OPENED)
    state, _ = protocol.give(state, "outlet", SeatOn.JOINED, 0)
    state, _ = protocol.give(state, "serve", ServeOn.BEGIN)
    return state
