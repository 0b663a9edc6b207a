"""`multiprocessing.Pipe` as a peer: one duplex pipe a rank, as its documentation shows it.

The answers are read in rank order, as the plain loop does; so the death of the last rank is seen when the ranks before
it have answered. A hang is ended by the guard of the burst, which kills the processes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections import deque
from multiprocessing.connection import Connection
from typing import Any

from ..peer import Reply, Request
from .work import answer, begin, end


class Pipes:
    """One pipe a rank."""

    def __init__(self) -> None:
        self._processes: list[Any] = []
        self._pipes: list[Connection[Any, Any]] = []
        self._sent: deque[str] = deque()

    @property
    def pids(self) -> list[int]:
        """Of every rank, in rank order."""
        return [each.pid for each in self._processes]

    def start(self, ranks: int) -> None:
        """Start them."""
        context = multiprocessing.get_context("forkserver")
        for rank in range(ranks):
            mine, theirs = context.Pipe()
            each = context.Process(target=_serve, args=(rank, theirs), daemon=True)
            each.start()
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(each)

    def call(self, request: Request, timeout: float) -> list[Any]:
        """Send, and wait."""
        self.submit(request)
        return self.collect(timeout)

    def submit(self, request: Request) -> None:
        """Send to every rank."""
        message = tuple(request)
        for pipe in self._pipes:
            pipe.send(message)
        self._sent.append(request.reply)

    def collect(self, timeout: float) -> list[Any]:  # noqa: ARG002 - to look before reading would make it slower
        """Read in rank order."""
        pipes = self._pipes[:1] if self._sent.popleft() == Reply.ONE else self._pipes
        return [pipe.recv() for pipe in pipes]

    def stop(self) -> None:
        """Close the pipes, and wait."""
        for pipe in self._pipes:
            pipe.close()
        end(self._processes)


def _serve(rank: int, pipe: Connection[Any, Any]) -> None:
    begin()
    with contextlib.suppress(EOFError, OSError):  # the caller closed it, or is gone
        while True:
            request = Request(*pipe.recv())
            result = answer(rank, request)
            if request.reply != Reply.ONE or rank == 0:
                pipe.send(result)
            del request, result
