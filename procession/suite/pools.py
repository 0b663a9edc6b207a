"""The adapter of the standard library's `ProcessPoolExecutor`: a rank is a pool of one process.

Theory of operation. A call is submitted to every pool, and is one future that fails with the first rank that fails and
has a value when every rank has answered. What such an executor is not made for it lacks, and is not asked for.
"""

from __future__ import annotations

import concurrent.futures
import gc
import multiprocessing
import threading
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from typing import Any

from ..runtime.leftovers import left_behind, snapshot
from ..specs.stateful.adapter import Ask, Can, Kind, Lacking, Outcome, Plan
from ..specs.stateful.work import merge, payload, perform

Future = concurrent.futures.Future


class Pools(Lacking):
    """Pools of one process, driven."""

    name = "process-pool"
    lacks = frozenset(Can) - {Can.MERGE}

    def __init__(self) -> None:
        gc.collect()  # what an earlier program left to the collector is not this one's
        self._before = snapshot()
        self._pools: list[ProcessPoolExecutor] = []
        self._order = threading.Lock()  # every rank gets the calls in the same order
        self._stopping = threading.Lock()
        self._sent = 0

    def start(self, plan: Plan) -> None:
        """Make the pools, and a process in each."""
        context = multiprocessing.get_context(plan.method)
        self._pools = [ProcessPoolExecutor(1, context) for _ in range(plan.ranks)]
        for future in [pool.submit(int) for pool in self._pools]:
            future.result()

    def call(self, ask: Ask) -> Any:
        """Submit it, and wait."""
        return self.future(ask).result()

    def future(self, ask: Ask) -> Future[Any]:
        """Submit it."""
        data = payload(ask)
        with self._order:
            parts = [pool.submit(perform, rank, ask, data) for rank, pool in enumerate(self._pools)]
            self._sent += 1
        return _Whole(ask, parts)

    def sent(self) -> int:
        """Calls that were submitted to every pool."""
        return self._sent

    def stop(self) -> None:
        """Shut every pool down. Its process leaves when it has answered what it was asked.

        One thread at a time: of two that shut one pool down, the slower may wake a pipe that the faster has closed.
        """
        with self._stopping:
            for pool in self._pools:
                pool.shutdown()

    def outcome(self, error: BaseException) -> Outcome:
        """The library's errors in the suite's words; whatever else a call raises was raised by a rank."""
        if isinstance(error, BrokenProcessPool):
            return Outcome(Kind.DIED)
        if isinstance(error, TimeoutError):
            return Outcome(Kind.TIMED_OUT)
        if isinstance(error, RuntimeError) and "after shutdown" in str(error):
            return Outcome(Kind.CLOSED)
        return Outcome(Kind.RAISED)

    def leftovers(self) -> list[str]:
        """What there is and was not at first."""
        self._pools = []
        gc.collect()
        return left_behind(self._before)

    def clear(self) -> None:
        """End every process by force."""
        for pool in self._pools:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)


class _Whole(Future[Any]):
    """One future of all ranks' answers."""

    def __init__(self, ask: Ask, parts: Sequence[Future[Any]]) -> None:
        super().__init__()
        self._ask = ask
        self._parts = parts
        self._left = len(parts)
        self._mine = threading.Lock()
        for part in parts:
            part.add_done_callback(self._came)

    def _came(self, part: Future[Any]) -> None:
        error = part.exception()
        with self._mine:
            self._left -= 1
            if self.done():
                return
            if error is not None:
                self.set_exception(error)
            elif not self._left:
                self.set_result(self._value())

    def _value(self) -> Any:
        values = [part.result() for part in self._parts]
        if self._ask.merged:
            return merge(values)
        return values if self._ask.reply is None else values[self._ask.reply]
