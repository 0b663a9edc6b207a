"""The floor: what the transport costs that our executor uses, with nothing on top of it.

Theory of operation. One SEQPACKET socket pair a rank, the pickled message in the packet, a poll over sockets and pidfds
on either side, and the same yielding spin. No calls' numbers, no order, no lock, no futures, no failures, no tables, no
large messages: what ours costs beyond this is what those cost.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import select
import socket
import time
from collections import deque
from typing import Any

from ..peer import GaveUpError, Reply, Request
from .work import answer, begin, end, parent_pidfd

LARGEST = 32 * 1024  # bytes that surely fit a packet
_PACKET = 64 * 1024


class Bare:
    """SEQPACKET socket pairs; `spin` in seconds."""

    def __init__(self, spin: float = 0.0) -> None:
        self._spin = spin
        self._processes: list[Any] = []
        self._sockets: list[socket.socket] = []
        self._pidfds: list[int] = []
        self._rank_of: dict[int, int] = {}
        self._kept: list[deque[Any]] = []
        self._sent: deque[str] = deque()
        self._poll = select.poll()

    @property
    def pids(self) -> list[int]:
        """Of every rank, in rank order."""
        return [each.pid for each in self._processes]

    def start(self, ranks: int) -> None:
        """Start them."""
        context = multiprocessing.get_context("forkserver")
        self._kept = [deque() for _ in range(ranks)]
        for rank in range(ranks):
            mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            each = context.Process(target=_serve, args=(rank, theirs, self._spin), daemon=True)
            self._sockets.append(mine)
            each.start()
            theirs.close()
            self._processes.append(each)
            self._pidfds.append(os.pidfd_open(each.pid or 0))
            self._rank_of[mine.fileno()] = rank
            for fd in (mine.fileno(), self._pidfds[-1]):
                self._poll.register(fd, select.POLLIN)

    def call(self, request: Request, timeout: float) -> list[Any]:
        """Send, and wait."""
        self.submit(request)
        return self.collect(timeout)

    def submit(self, request: Request) -> None:
        """Send to every rank."""
        data = pickle.dumps(tuple(request), 5)
        for sock in self._sockets:
            sock.send(data)
        self._sent.append(request.reply)

    def collect(self, timeout: float) -> list[Any]:
        """Read until each rank that owes an answer has given one."""
        kept = self._kept[:1] if self._sent.popleft() == Reply.ONE else self._kept
        milliseconds = int(timeout * 1000)
        while not all(kept):
            for fd, _ in _ready(self._poll, self._spin, milliseconds):
                if fd not in self._rank_of:
                    raise ConnectionError(f"rank {self._pidfds.index(fd)} is gone")
                rank = self._rank_of[fd]
                data = self._sockets[rank].recv(_PACKET)
                if not data:
                    raise ConnectionError(f"rank {rank} is gone")
                self._kept[rank].append(pickle.loads(data))
        return [answers.popleft() for answers in kept]

    def stop(self) -> None:
        """Close the sockets, and wait."""
        for sock in self._sockets:
            sock.close()
        end(self._processes)
        for fd in self._pidfds:
            os.close(fd)


def _ready(poll: select.poll, spin: float, milliseconds: int | None) -> list[tuple[int, int]]:
    if spin > 0.0:
        until = time.perf_counter() + spin
        while not (found := poll.poll(0)) and time.perf_counter() < until:
            os.sched_yield()
        if found:
            return found
    found = poll.poll(milliseconds)
    if not found:
        raise GaveUpError(f"no answer within {milliseconds} ms")
    return found


def _serve(rank: int, sock: socket.socket, spin: float) -> None:
    begin()
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    poll.register(parent_pidfd(), select.POLLIN)
    with contextlib.suppress(OSError):  # the caller is gone while it is answered
        while True:
            _ready(poll, spin, None)
            data = sock.recv(_PACKET, socket.MSG_DONTWAIT)
            if not data:
                return
            request = Request(*pickle.loads(data))
            result = answer(rank, request)
            if request.reply != Reply.ONE or rank == 0:
                sock.send(pickle.dumps(result, 5))
