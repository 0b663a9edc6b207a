"""Warm memory for large messages: blocks that are written again instead of being made anew.

Theory of operation:

1. Touching a page for the first time costs five times what copying into it costs, so a writer keeps its blocks. A
   block is an anonymous memory file, mapped by the writer for good; its descriptor travels with each message in it.
2. A reader maps the block privately and in place. What it writes is its own and disturbs nobody.
3. A block is written again only when every reader has said RELEASED, on the queue's own channel, backwards. A reader
   says so when the last object made from the message is gone: the mapping itself is what keeps it, so holding on to
   a tensor for ever costs memory and can never show it another message's bytes.
4. Nobody ever waits for a block. If none is free, another is made; beyond `limit` bytes, one that is used once.
5. A block costs either side a descriptor for as long as it is held, and a program has few. So a writer keeps at most
   `BLOCKS`, and a reader that holds on to more messages than that gets further ones as copies.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable

from .codec import Buffer
from .errors import RoomError
from .room import available_memory

ALIGN = 64
LIMIT = 512 << 20
BLOCKS = 64
_MIB = 1 << 20
_SMALLEST = 64 << 10


class Block:
    """One memory file and the writer's mapping of it."""

    __slots__ = ("fd", "number", "owed", "size", "taken", "view")

    def __init__(self, number: int, size: int) -> None:
        """Raises `RoomError`. Number 0 is used once."""
        _check_room(size)
        self.number = number
        self.size = size
        self.owed = 0  # RELEASED that have not come
        self.taken = True  # it is being written, or waits to be sent
        self.fd = os.memfd_create("procession-block", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(
                self.fd, 0, size
            )  # now, and with an error; not at the first touch, with a SIGBUS
            self.view = memoryview(mmap.mmap(self.fd, size))
        except OSError as error:
            os.close(self.fd)
            raise _no_room(size, error) from error

    def write(self, parts: Iterable[Buffer]) -> None:
        """Copy the parts in, each at a multiple of 64 bytes."""
        at = 0
        for part in parts:
            view = memoryview(part)
            size = view.nbytes
            if size:
                self.view[at : at + size] = view.cast("B")
            at += aligned(size)

    def close(self) -> None:
        """Unmap and close; readers that have it keep it."""
        if self.fd >= 0:
            backing = self.view.obj
            self.view.release()
            assert isinstance(backing, mmap.mmap)
            backing.close()
            os.close(self.fd)
            self.fd = -1


class Arena:
    """A writer's blocks. Safe to use from several threads."""

    def __init__(self, readers: int, limit: int = LIMIT) -> None:
        self._readers = readers
        self._limit = limit
        self._blocks: dict[int, Block] = {}
        self._lock = threading.Lock()
        self._closed = False

    def take(self, size: int) -> Block:
        """A block of at least `size` bytes that nobody reads. Raises `RoomError`."""
        with self._lock:
            fits = [block for block in self._blocks.values() if not block.owed and block.size >= size]
            if fits:
                block = min(fits, key=lambda found: found.size)
                block.owed, block.taken = self._readers, True
                return block
            rounded = max(_SMALLEST, 1 << (size - 1).bit_length())
            held = sum(block.size for block in self._blocks.values())
            if self._closed or held + rounded > self._limit or len(self._blocks) >= BLOCKS:
                return Block(0, size)
            block = Block(max(self._blocks, default=0) + 1, rounded)
            block.owed = self._readers
            self._blocks[block.number] = block
            return block

    def released(self, number: int) -> None:
        """A reader said RELEASED."""
        with self._lock:
            self._blocks[number].owed -= 1

    def done(self, block: Block, sent: bool) -> None:
        """Whoever took the block needs it no longer; `sent` is whether anybody got the message."""
        with self._lock:
            block.taken = False
            if not sent:
                block.owed = 0
            if self._closed or block.number == 0:
                block.close()

    def close(self) -> None:
        """Close every block; those that somebody is writing are closed when that is done."""
        with self._lock:
            self._closed = True
            for block in self._blocks.values():
                if not block.taken:
                    block.close()
            self._blocks.clear()


class Returns:
    """A reader's blocks: which may be written again. It never locks, for it runs in finalisers."""

    def __init__(self) -> None:
        self._free: deque[int] = deque()
        self._held: set[int] = set()  # the mappings that are in use

    def map(self, fd: int, number: int) -> memoryview:
        """Map a block privately; it comes back when the last view of it is gone."""
        mapping = mmap.mmap(
            fd, os.fstat(fd).st_size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
        )
        if len(self._held) >= BLOCKS:
            copy = bytearray(mapping)
            mapping.close()
            self._gone(number)
            return memoryview(copy)
        self._held.add(id(mapping))
        weakref.finalize(mapping, self._gone, number, id(mapping)).atexit = False
        return memoryview(mapping)

    def _gone(self, number: int, mapping: int = 0) -> None:
        self._held.discard(mapping)
        if number:
            self._free.append(number)

    def take(self) -> list[int]:
        """The blocks that have come back since the last time."""
        found = []
        while self._free:
            found.append(self._free.popleft())
        return found

    def any(self) -> bool:
        """Whether any has come back."""
        return bool(self._free)

    def put_back(self, number: int) -> None:
        """It could not be told yet."""
        self._free.append(number)


def aligned(size: int) -> int:
    """`size`, rounded up to where the next part begins."""
    return size + -size % ALIGN


def _check_room(size: int) -> None:
    """Refuse what cannot fit before it is taken: past this, the kernel kills somebody instead of saying no."""
    if size < 16 * _MIB:
        return
    room = available_memory()
    if size > room:
        raise RoomError(
            f"a message of {size / _MIB:.0f} MiB does not fit into the {room / _MIB:.0f} MiB of memory that are "
            "available; nothing was sent. Send less at a time, or free memory."
        )


def _no_room(size: int, error: OSError) -> RoomError:
    return RoomError(
        f"no room in shared memory for a message of {size / _MIB:.1f} MiB ({error.strerror}); "
        "nothing was sent. Send less at a time, or free memory."
    )
