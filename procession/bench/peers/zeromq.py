"""ZeroMQ as a peer: one PAIR socket a rank over ipc, payloads as frames of their own without a copy in Python.

ZeroMQ does not say when a process at the other end is gone: the call that waits for it ends with its timeout.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import shutil
import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import zmq

from ..peer import GaveUpError, Reply, Request
from .work import answer, begin, end, parent_pidfd


class ZeroMQ:
    """One PAIR socket a rank."""

    def __init__(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._folder: Path | None = None
        self._processes: list[Any] = []
        self._sockets: list[zmq.Socket[bytes]] = []
        self._sent: deque[str] = deque()

    @property
    def pids(self) -> list[int]:
        """Of every rank, in rank order."""
        return [each.pid for each in self._processes]

    def start(self, ranks: int) -> None:
        """Start them."""
        context = multiprocessing.get_context("forkserver")
        self._context = zmq.Context()
        self._folder = Path(tempfile.mkdtemp(prefix="procession-bench-"))
        for rank in range(ranks):
            address = f"ipc://{self._folder}/{rank}"
            sock = self._context.socket(zmq.PAIR)
            sock.setsockopt(zmq.LINGER, 0)
            sock.setsockopt(zmq.SNDTIMEO, 60_000)
            sock.bind(address)
            self._sockets.append(sock)
            each = context.Process(target=_serve, args=(rank, address), daemon=True)
            each.start()
            self._processes.append(each)

    def call(self, request: Request, timeout: float) -> list[Any]:
        """Send, and wait."""
        self.submit(request)
        return self.collect(timeout)

    def submit(self, request: Request) -> None:
        """Send to every rank."""
        frames = _frames(tuple(request))
        for sock in self._sockets:
            sock.send_multipart(frames, copy=False)
        self._sent.append(request.reply)

    def collect(self, timeout: float) -> list[Any]:
        """Read in rank order."""
        sockets = self._sockets[:1] if self._sent.popleft() == Reply.ONE else self._sockets
        return [_received(sock, int(timeout * 1000)) for sock in sockets]

    def stop(self) -> None:
        """Say it with an empty message, and wait."""
        for sock in self._sockets:
            with contextlib.suppress(zmq.Again):  # nobody is there to read it
                sock.send_multipart([b""], zmq.DONTWAIT)
        end(self._processes)
        for sock in self._sockets:
            sock.close()
        if self._context is not None:
            self._context.term()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _frames(value: object) -> list[Any]:
    buffers: list[pickle.PickleBuffer] = []
    return [pickle.dumps(value, 5, buffer_callback=buffers.append), *(buffer.raw() for buffer in buffers)]


def _received(sock: zmq.Socket[bytes], milliseconds: int) -> Any:
    if not sock.poll(milliseconds):
        raise GaveUpError(f"no answer within {milliseconds} ms")
    frames = sock.recv_multipart(copy=False)
    return pickle.loads(frames[0].buffer, buffers=[frame.buffer for frame in frames[1:]])


def _serve(rank: int, address: str) -> None:
    begin()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    sock = context.socket(zmq.PAIR)
    sock.setsockopt(zmq.LINGER, 0)
    sock.connect(address)
    poller = zmq.Poller()
    poller.register(sock, zmq.POLLIN)
    parent = parent_pidfd()
    poller.register(parent, zmq.POLLIN)
    while parent not in dict(poller.poll()):
        frames = sock.recv_multipart(copy=False)
        if not len(frames[0]):
            break
        request = Request(*pickle.loads(frames[0].buffer, buffers=[frame.buffer for frame in frames[1:]]))
        result = answer(rank, request)
        if request.reply != Reply.ONE or rank == 0:
            sock.send_multipart(_frames(result), copy=False)
        del request, result, frames
    sock.close()
    context.term()
