"""Process pools as peers: a call is one task a rank.

A pool knows no ranks: two tasks of one call may run on the same process. That makes it faster than a call to every rank
could be, never slower, and is what there is. Every task is waited for, whoever returns the payload.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..peer import Reply, Request
from .work import answer, begin

_Futures = list["concurrent.futures.Future[Any]"]


class Pool:
    """Any `concurrent.futures` executor. `kill`: kill_workers of loky, or None."""

    def __init__(self, make: Callable[[int], concurrent.futures.Executor], forceful: bool) -> None:
        self._make = make
        self._forceful = forceful
        self._pool: concurrent.futures.Executor | None = None
        self._ranks = 0
        self._pids: list[int] = []
        self._sent: deque[tuple[str, _Futures]] = deque()
        self._broken = False

    @property
    def pids(self) -> list[int]:
        """Of every worker, in no particular order."""
        return self._pids

    def start(self, ranks: int) -> None:
        """Make the pool, and give each process something to do, or it would not be started."""
        before = {each.pid for each in multiprocessing.active_children()}
        self._ranks = ranks
        self._pool = self._make(ranks)
        self.call(Request(Reply.ALL), 60.0)
        new = (each.pid for each in multiprocessing.active_children() if each.pid not in before)
        self._pids = sorted(pid for pid in new if pid is not None)

    def call(self, request: Request, timeout: float) -> list[Any]:
        """Submit, and wait for every task."""
        self.submit(request)
        return self.collect(timeout)

    def submit(self, request: Request) -> None:
        """One task a rank."""
        assert self._pool is not None
        futures = [self._pool.submit(_task, rank, tuple(request)) for rank in range(self._ranks)]
        self._sent.append((request.reply, futures))

    def collect(self, timeout: float) -> list[Any]:
        """The results of the oldest tasks."""
        reply, futures = self._sent.popleft()
        until = time.monotonic() + timeout
        try:
            found = [future.result(max(0.0, until - time.monotonic())) for future in futures]
        except BaseException:
            self._broken = True
            raise
        return found[:1] if reply == Reply.ONE else found

    def stop(self) -> None:
        """Wait for every process."""
        pool, self._pool = self._pool, None
        self._sent.clear()
        if pool is None:
            return
        if self._forceful:
            pool.shutdown(wait=True, kill_workers=self._broken)  # type: ignore[call-arg]  # loky's own option
        else:
            pool.shutdown(wait=True, cancel_futures=True)


def _task(rank: int, request: tuple[Any, ...]) -> Any:
    return answer(rank, Request(*request))


def process_pool() -> Pool:
    """The standard library's."""

    def make(ranks: int) -> concurrent.futures.Executor:
        context = multiprocessing.get_context("forkserver")
        return concurrent.futures.ProcessPoolExecutor(ranks, mp_context=context, initializer=begin)

    return Pool(make, forceful=False)


def loky() -> Pool:
    """loky's, with its own way to start processes."""

    def make(ranks: int) -> concurrent.futures.Executor:
        from loky import ProcessPoolExecutor

        pool: concurrent.futures.Executor = ProcessPoolExecutor(ranks, initializer=begin)
        return pool

    return Pool(make, forceful=True)
