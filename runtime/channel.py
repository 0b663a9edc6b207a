"""Messages between two processes: one SEQPACKET socket pair, where the kernel keeps bounds, order and the end.

Theory of operation:

1. A message is one packet: a header (kind, epoch, call) and a payload. There is no slot, no flag and no separate
   notification that could be lost, and a reader that dies gives its memory back by dying.
2. A payload above `IN_BAND` bytes is copied once into a block of memory without a name (see `arena`), whose
   descriptor travels with the packet to every reader. Nothing can be left behind, not even by SIGKILL.
3. The end of a channel is made with `shutdown`, which reaches the peer even while a forked sibling still holds a copy
   of the descriptor; closing would not (vllm#28053).
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
from enum import IntEnum
from typing import Any, NamedTuple

from ..protocol.core import Identity
from .arena import Arena, Block, Returns, aligned
from .codec import Buffer, Encoded, decode
from .errors import QueueClosedError

IN_BAND = 32 * 1024
_HEADER = struct.Struct(
    "<BBHIqqII"
)  # kind, flags, block, epoch, call, rank, pickle length, number of buffers
_LENGTH = struct.Struct("<Q")
_ATTACHED = 1
_MAX_PACKET = 64 * 1024
_MAX_DESCRIPTORS = 8
_ANCILLARY = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)
# As plain numbers: combining the enum's members costs a microsecond each time.
_SEND = int(socket.MSG_DONTWAIT) | int(socket.MSG_NOSIGNAL)
_RECEIVE = int(socket.MSG_DONTWAIT) | int(socket.MSG_CMSG_CLOEXEC)


class Say(IntEnum):
    """The kinds of message."""

    JOINED = 1
    OPEN = 2
    CALL = 3
    RETURNED = 4
    RAISED = 5
    START = 6
    RELEASED = 7


_SAID = {int(word): word for word in Say}


_ONCE = Arena(0, limit=0)  # for messages that come one at a time: each block is used once


class Packet:
    """A message for any number of readers: made, addressed, sent to each, and closed after the last."""

    __slots__ = ("_arena", "_block", "_content", "_descriptors", "_lengths", "data", "kind")

    def __init__(
        self, kind: Say, body: Encoded | None = None, fds: tuple[int, ...] = (), arena: Arena | None = None
    ) -> None:
        """A large body is copied into a block of `arena`. Raises `RoomError` if there is no room for it."""
        self.kind = kind
        self.data = b""
        self._arena = _ONCE if arena is None else arena
        self._block: Block | None = None
        self._descriptors = fds
        self._content: list[Buffer] = []
        self._lengths = (0, 0)
        if body is None:
            return
        self._lengths = (len(body.pickled), len(body.buffers))
        lengths = b"".join([_LENGTH.pack(buffer.nbytes) for buffer in body.buffers])
        parts: list[Buffer] = [lengths, body.pickled, *body.buffers]
        if body.size + len(lengths) <= IN_BAND:
            self._content = parts
            return
        size = sum(aligned(len(part)) for part in parts)
        block = self._arena.take(size)
        self._block = block
        try:
            block.write(parts)
        except BaseException:
            self.close(sent=False)
            raise
        self._descriptors = (block.fd, *fds)

    def address(self, identity: Identity) -> Packet:
        """Say which epoch, rank and call it belongs to; it can be sent then."""
        epoch, rank, call = identity
        flags, number = (0, 0) if self._block is None else (_ATTACHED, self._block.number)
        head = _HEADER.pack(self.kind, flags, number, epoch, call, rank, *self._lengths)
        self.data = b"".join((head, *self._content))
        return self

    def send(self, sock: socket.socket) -> bool:
        """Send without waiting. False: the channel is full. Raises `QueueClosedError`: the reader is gone."""
        try:
            if self._descriptors:
                rights = array.array("i", self._descriptors)
                sock.sendmsg(
                    [self.data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], socket.MSG_DONTWAIT
                )
            else:
                sock.send(self.data, _SEND)
        except BlockingIOError:
            return False
        except (BrokenPipeError, ConnectionError) as error:
            raise QueueClosedError("the reader of the channel is gone") from error
        return True

    def close(self, sent: bool = True) -> None:
        """Give up the block; `sent` is whether anybody got the message."""
        block, self._block = self._block, None
        if block is not None:
            self._arena.done(block, sent)


class Message(NamedTuple):
    """A message as it came; nothing is unpickled yet."""

    kind: Say
    identity: Identity
    pickled: Buffer
    buffers: tuple[Buffer, ...]
    fds: tuple[int, ...]

    def value(self) -> Any:
        """Unpickle the payload."""
        return decode(self.pickled, self.buffers)


def receive(sock: socket.socket, returns: Returns | None = None) -> Message | None:
    """The next message, without waiting; None if there is none. Raises `QueueClosedError` at the channel's end.

    `returns` collects the blocks that the writer may write again.
    """
    try:
        data, ancillary, _, _ = sock.recvmsg(_MAX_PACKET, _ANCILLARY, _RECEIVE)
    except BlockingIOError:
        return None
    except ConnectionError as error:
        raise QueueClosedError("the writer of the channel is gone") from error
    if not data:
        raise QueueClosedError("the writer of the channel closed it")
    fds: tuple[int, ...] = ()
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += tuple(array.array("i", raw[: len(raw) - len(raw) % 4]))
    kind, flags, number, epoch, call, rank, length, count = _HEADER.unpack_from(data)
    identity = Identity(epoch, rank, call)
    if flags & _ATTACHED:
        try:
            pickled, buffers = _parts(
                (Returns() if returns is None else returns).map(fds[0], number), length, count
            )
        finally:
            os.close(fds[0])
        return Message(_SAID[kind], identity, pickled, buffers, fds[1:])
    start = _HEADER.size
    if not count:
        return Message(_SAID[kind], identity, data[start:], (), fds)
    at = start + count * _LENGTH.size
    view = memoryview(bytearray(data))
    pickled, at = view[at : at + length], at + length
    parts: list[Buffer] = []
    for index in range(count):
        (size,) = _LENGTH.unpack_from(data, start + index * _LENGTH.size)
        parts.append(view[at : at + size])
        at += size
    return Message(_SAID[kind], identity, pickled, tuple(parts), fds)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a fresh channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def end(sock: socket.socket) -> None:
    """End this side's speech: the peer reads what was sent, and then the end."""
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:  # the peer is gone: that end is as good
        return


def give_back(sock: socket.socket, returns: Returns) -> None:
    """Tell the writer which blocks it may write again. Costs nothing when there are none."""
    for number in returns.take():
        with contextlib.suppress(QueueClosedError):
            if not Packet(Say.RELEASED).address(Identity(0, -1, number)).send(sock):
                returns.put_back(number)
                return


def collect(sock: socket.socket, arena: Arena) -> None:
    """On the writer's side: hear which blocks one reader gave back."""
    with contextlib.suppress(QueueClosedError):
        while (message := receive(sock)) is not None:
            if message.kind is Say.RELEASED:
                arena.released(message.identity.call)


def _parts(view: memoryview, length: int, count: int) -> tuple[Buffer, tuple[Buffer, ...]]:
    sizes = [_LENGTH.unpack_from(view, index * _LENGTH.size)[0] for index in range(count)]
    at = aligned(count * _LENGTH.size)
    pickled = bytes(view[at : at + length])
    at += aligned(length)
    parts: list[Buffer] = []
    for part in sizes:
        parts.append(view[at : at + part])
        at += aligned(part)
    return pickled, tuple(parts)
