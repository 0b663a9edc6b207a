"""A queue from one writer to N readers, with the reference system's names.

Theory of operation:

1. The writer holds one channel a reader (see `channel`); the handle holds the other ends, and is passed to each
   process that is being started. When they have it the writer closes its own (`Handle.close`): the death of a reader
   is seen when nobody else holds its end.
2. Readiness is the queue protocol's: a reader says JOINED, and when all have, the writer says OPEN to each, on the
   very channels that carry the messages. The executor steps those tables itself, for all its queues at once;
   `wait_until_ready` steps them for a queue that is used on its own.
3. A full channel makes `enqueue` wait for room, or death, or cancel, or the deadline.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from ..protocol.core import Event, Identity
from ..protocol.core.cluster import AGGREGATE, Step
from ..protocol.queues import (
    INTAKE_CLUSTER,
    OUTLET_CLUSTER,
    Gate,
    GateOn,
    QueueDo,
    Reader,
    ReaderOn,
    Seat,
    SeatOn,
)
from .arena import Arena, Returns
from .channel import Message, Packet, Say, collect, end, give_back, pair, receive
from .codec import encode
from .errors import CallTimeoutError, ExecutorClosedError, QueueClosedError
from .wait import READ, WRITE, Flag, Waiter, deadline_in

_NOBODY = Identity(0)


class Handle:
    """The readers' ends of a queue, by reader. It is pickled only into a process that is being started."""

    def __init__(
        self, ends: tuple[socket.socket, ...], home: int, writers: tuple[socket.socket, ...] = ()
    ) -> None:
        self.ends = ends
        self._home = home  # the process of the writer
        self._writers = writers

    def __reduce__(self) -> tuple[type[Handle], tuple[tuple[socket.socket, ...], int]]:
        return Handle, (self.ends, self._home)

    def keep_only(self, rank: int) -> None:
        """In a reader's process: close what belongs to others, or the death of none of them would be seen."""
        if os.getpid() != self._home:
            for sock in (*self._writers, *self.ends[:rank], *self.ends[rank + 1 :]):
                sock.close()

    def close(self) -> None:
        """Close the ends: whoever was given one has a copy."""
        for sock in self.ends:
            sock.close()


class MessageQueue:
    """One writer, `n_reader` readers; all of them local, so far."""

    def __init__(self, n_reader: int, n_local_reader: int | None = None) -> None:
        if n_reader < 1:
            raise ValueError(f"a queue needs at least one reader, not {n_reader}")
        if n_local_reader not in (None, n_reader):
            raise NotImplementedError(
                "remote readers come with several nodes; n_local_reader must equal n_reader"
            )
        self.n_reader = n_reader
        pairs = [pair() for _ in range(n_reader)]
        self.sockets = [mine for mine, _ in pairs]
        self._handle = Handle(tuple(theirs for _, theirs in pairs), os.getpid(), tuple(self.sockets))
        self._writes = True
        self.arena = Arena(n_reader)
        self.returns = Returns()

    @classmethod
    def create_from_handle(cls, handle: Handle, rank: int) -> MessageQueue:
        """The queue as reader `rank` of the handle sees it. In a process of its own, one reader is all it makes."""
        handle.keep_only(rank)
        queue = cls.__new__(cls)
        queue.n_reader = len(handle.ends)
        queue.sockets = [handle.ends[rank]]
        queue._handle = handle
        queue._writes = False
        queue.arena = Arena(0)
        queue.returns = Returns()
        return queue

    def export_handle(self) -> Handle:
        """What readers are made from."""
        return self._handle

    def wait_until_ready(self, timeout: float | None = None, cancel: Flag | None = None) -> None:
        """Join, or gather and open. Raises when the other side is gone, on cancel, or after `timeout` seconds."""
        cluster = OUTLET_CLUSTER if self._writes else INTAKE_CLUSTER
        state = cluster.initial(len(self.sockets))
        deadline = deadline_in(timeout)
        done = Gate.OPEN if self._writes else Reader.OPEN

        def give(slot: int, event: Event) -> None:
            nonlocal state
            state, steps = cluster.apply(state, slot, event)
            self._perform(steps)

        if not self._writes:
            give(AGGREGATE, ReaderOn.HANDLE)
        while state[0] is not done:
            try:
                index, message = self._next(deadline, cancel)
            except QueueClosedError:
                give(0 if self._writes else AGGREGATE, SeatOn.DIED if self._writes else ReaderOn.DIED)
                raise
            except ExecutorClosedError:
                give(AGGREGATE, GateOn.CLOSE if self._writes else ReaderOn.CLOSE)
                raise
            except CallTimeoutError:
                late = tuple(slot for slot, seat in enumerate(state[1:]) if seat is Seat.EXPECTED)
                give(AGGREGATE, GateOn.DEADLINE if self._writes else ReaderOn.CLOSE)
                who = f"readers {late} have not joined" if self._writes else "the writer has not said OPEN"
                raise CallTimeoutError(
                    f"the queue is not ready after {timeout} s: {who}",
                    call=0,
                    method="wait_until_ready",
                    waiting_for=late,
                ) from None
            if self._writes and message.kind is Say.JOINED:
                give(index, SeatOn.JOINED)
            elif not self._writes and message.kind is Say.OPEN:
                give(AGGREGATE, ReaderOn.OPENED)
            else:
                raise QueueClosedError(f"the peer sent {message.kind.name} before the queue was open")

    def enqueue(self, obj: object, timeout: float | None = None, cancel: Flag | None = None) -> None:
        """Send `obj` to every reader, or to none: it waits until all have room. Nothing is sent if it raises."""
        self.collect()
        packet = Packet(Say.CALL, encode(obj, "the message"), arena=self.arena).address(_NOBODY)
        deadline = deadline_in(timeout)
        try:
            for rank, sock in enumerate(self.sockets):  # nobody else writes, so whoever has room keeps it
                if not _ready(sock, WRITE, deadline, cancel):
                    raise CallTimeoutError(
                        f"reader {rank} has left no room in the queue for {timeout} s; is it stuck?",
                        call=0,
                        method="enqueue",
                        waiting_for=(rank,),
                    )
        except BaseException:
            packet.close(sent=False)
            raise
        try:
            for rank, sock in enumerate(self.sockets):
                try:
                    sent = packet.send(sock)
                except QueueClosedError as error:
                    raise QueueClosedError(f"reader {rank} of the queue is gone") from error
                assert sent, "a channel that can be written to has room for any packet"
        finally:
            packet.close()

    def dequeue(self, timeout: float | None = None, cancel: Flag | None = None) -> Any:
        """The next object. A message that does not unpickle is consumed all the same: it holds no slot."""
        _, message = self._next(deadline_in(timeout), cancel)
        return message.value()

    def collect(self) -> None:
        """On the writer's side: hear which blocks the readers gave back."""
        for sock in self.sockets:
            collect(sock, self.arena)

    def close(self) -> None:
        """End and close this side's channels."""
        for sock in self.sockets:
            end(sock)
            sock.close()
        self.arena.close()

    def _perform(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            for effect in step.effects:
                said = Say.OPEN if effect is QueueDo.SEND_OPEN else Say.JOINED
                Packet(said).address(_NOBODY).send(self.sockets[max(step.slot, 0)])

    def _next(self, deadline: float | None, cancel: Flag | None) -> tuple[int, Message]:
        waiter = Waiter()
        if not self._writes:
            give_back(self.sockets[0], self.returns)
        if cancel is not None:
            waiter.watch(cancel.fd)
        for sock in self.sockets:
            waiter.watch(sock.fileno())
        while True:
            for index, sock in enumerate(self.sockets):
                message = receive(sock, self.returns)
                if message is not None:
                    return index, message
            ready = waiter.wait(deadline)
            if not ready:
                raise CallTimeoutError(
                    "no message came in time",
                    call=0,
                    method="dequeue",
                    waiting_for=tuple(range(len(self.sockets))),
                )
            if cancel is not None and cancel.fd in ready:
                raise ExecutorClosedError("the wait for the queue was cancelled")


def _ready(sock: socket.socket, events: int, deadline: float | None, cancel: Flag | None) -> bool:
    waiter = Waiter()
    waiter.watch(sock.fileno(), events)
    if cancel is not None:
        waiter.watch(cancel.fd, READ)
    ready = waiter.wait(deadline)
    if cancel is not None and cancel.fd in ready:
        raise ExecutorClosedError("the wait for room in the queue was cancelled")
    return bool(ready)
