"""Messages between two processes: one SEQPACKET socket pair, where the kernel keeps bounds, order and the end.

Theory of operation:

1. A message is one packet: a header (kind, epoch, call) and a payload. There is no slot, no flag and no separate
   notification that could be lost, and a reader that dies gives its memory back by dying.
2. A payload above `IN_BAND` bytes is written once into an anonymous memory file (memfd), whose descriptor travels
   with the packet to every reader. It has no name, so nothing can be left behind, not even by SIGKILL; the memory goes
   with its last user. Readers map it privately: they may write to what they got and disturb nobody.
3. The end of a channel is made with `shutdown`, which reaches the peer even while a forked sibling still holds a copy
   of the descriptor; closing would not (vllm#28053).
"""

from __future__ import annotations

import array
import mmap
import os
import socket
import struct
from enum import IntEnum
from typing import Any, NamedTuple

from ..protocol.core import Identity
from .codec import Buffer, Encoded, decode
from .errors import QueueClosedError, RoomError

IN_BAND = 32 * 1024
_HEADER = struct.Struct("<BBHIqqII")  # kind, flags, -, epoch, call, rank, pickle length, number of buffers
_LENGTH = struct.Struct("<Q")
_ATTACHED = 1
_MAX_PACKET = 64 * 1024
_MAX_DESCRIPTORS = 8
_ANCILLARY = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)
_ALIGN = 64
# As plain numbers: combining the enum's members costs a microsecond each time.
_SEND = int(socket.MSG_DONTWAIT) | int(socket.MSG_NOSIGNAL)
_RECEIVE = int(socket.MSG_DONTWAIT) | int(socket.MSG_CMSG_CLOEXEC)
_MIB = 1 << 20


class Say(IntEnum):
    """The kinds of message."""

    JOINED = 1
    OPEN = 2
    CALL = 3
    RETURNED = 4
    RAISED = 5
    START = 6


_SAID = {int(word): word for word in Say}


class Packet:
    """A message for any number of readers: made, addressed, sent to each, and closed after the last."""

    __slots__ = ("_content", "_descriptors", "_flags", "_lengths", "_owned", "data", "kind")

    def __init__(self, kind: Say, body: Encoded | None = None, fds: tuple[int, ...] = ()) -> None:
        """Raises `RoomError` if there is no room for a large body."""
        self.kind = kind
        self.data = b""
        self._descriptors = fds
        self._owned = -1
        self._flags = 0
        self._content: list[Buffer] = []
        self._lengths = (0, 0)
        if body is None:
            return
        self._lengths = (len(body.pickled), len(body.buffers))
        lengths = b"".join([_LENGTH.pack(buffer.nbytes) for buffer in body.buffers])
        if body.size + len(lengths) > IN_BAND:
            self._flags = _ATTACHED
            self._owned = _memory_file(body, lengths)
            self._descriptors = (self._owned, *fds)
        else:
            self._content = [lengths, body.pickled, *body.buffers]

    def address(self, identity: Identity) -> Packet:
        """Say which epoch, rank and call it belongs to; it can be sent then."""
        epoch, rank, call = identity
        head = _HEADER.pack(self.kind, self._flags, 0, epoch, call, rank, *self._lengths)
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

    def close(self) -> None:
        """Give the memory file back; readers that have it keep it."""
        if self._owned >= 0:
            os.close(self._owned)
            self._owned = -1


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


def receive(sock: socket.socket) -> Message | None:
    """The next message, without waiting; None if there is none. Raises `QueueClosedError` at the channel's end."""
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
    kind, flags, _, epoch, call, rank, length, count = _HEADER.unpack_from(data)
    identity = Identity(epoch, rank, call)
    if flags & _ATTACHED:
        try:
            pickled, buffers = _map(fds[0], length, count)
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


def _memory_file(body: Encoded, lengths: bytes) -> int:
    """A memfd that holds lengths, pickle and buffers, each at a multiple of 64 bytes."""
    _check_room(body.size)
    fd = os.memfd_create("procession-message", os.MFD_CLOEXEC)
    try:
        parts: list[Buffer] = [lengths, body.pickled, *body.buffers]
        for part in parts:
            view = memoryview(part).cast("B") if len(part) else memoryview(b"")
            size = view.nbytes
            while view.nbytes:
                view = view[os.write(fd, view) :]
            os.lseek(fd, -size % _ALIGN, os.SEEK_CUR)
        os.ftruncate(fd, max(1, os.lseek(fd, 0, os.SEEK_CUR)))
    except OSError as error:
        os.close(fd)
        raise RoomError(
            f"no room in shared memory for a message of {body.size / _MIB:.1f} MiB ({error.strerror}); "
            "nothing was sent. Send less at a time, or free memory."
        ) from error
    return fd


def _map(fd: int, length: int, count: int) -> tuple[Buffer, tuple[Buffer, ...]]:
    size = os.fstat(fd).st_size
    view = memoryview(mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE))
    sizes = [_LENGTH.unpack_from(view, index * _LENGTH.size)[0] for index in range(count)]
    at = _aligned(count * _LENGTH.size)
    pickled = view[at : at + length]
    at += _aligned(length)
    parts: list[Buffer] = []
    for part in sizes:
        parts.append(view[at : at + part])
        at += _aligned(part)
    return pickled, tuple(parts)


def _aligned(size: int) -> int:
    return size + -size % _ALIGN


def _check_room(size: int) -> None:
    """Refuse what cannot fit before it is taken: past this, the kernel kills somebody instead of saying no."""
    if size < 64 * _MIB:
        return
    from .room import available_memory

    room = available_memory()
    if size > room:
        raise RoomError(
            f"a message of {size / _MIB:.0f} MiB does not fit into the {room / _MIB:.0f} MiB of memory that are "
            "available; nothing was sent. Send less at a time, or free memory."
        )
