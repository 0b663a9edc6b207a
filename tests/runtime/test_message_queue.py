"""A queue on its own, between processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import pytest

from procession.runtime import MessageQueue, PayloadError, QueueClosedError, RoomError
from procession.runtime.errors import CallTimeoutError, ExecutorClosedError
from procession.runtime.wait import Flag
from tests.runtime.queue_ends import read, write_and_die
from tests.runtime.support import METHODS, Method, eventually, within
from tests.runtime.workers import Poison


class Readers:
    """Processes that read a queue, and what they report."""

    def __init__(self, queue: MessageQueue, method: Method = "fork", count: int = 3) -> None:
        context: Any = multiprocessing.get_context(method)
        self.pipes = []
        self.processes = []
        for rank in range(queue.n_reader):
            mine, theirs = context.Pipe()
            process = context.Process(target=read, args=(queue.export_handle(), rank, count, theirs))
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)
        queue.export_handle().close()

    def reports(self) -> list[Any]:
        found = []
        for pipe in self.pipes:
            assert pipe.poll(20)
            found.append(pipe.recv())
        return found

    def close(self) -> None:
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if process.is_alive():
                pipe.send("leave")
            process.join(10)
            pipe.close()
            if process.exitcode is None:
                process.kill()
                process.join()
            process.close()


@pytest.fixture
def readers() -> Iterator[Any]:
    made: list[tuple[MessageQueue, Readers]] = []

    def make(number: int, method: Method = "fork", count: int = 3) -> tuple[MessageQueue, Readers]:
        queue = MessageQueue(number)
        made.append((queue, Readers(queue, method, count)))
        return made[-1]

    yield make
    for queue, group in made:
        queue.close()
        group.close()


def fill(queue: MessageQueue, cancel: Flag | None = None) -> NoReturn:
    """Write until it raises."""
    while True:
        queue.enqueue(b"x" * 30_000, 10, cancel)


@pytest.fixture
def local() -> Iterator[tuple[MessageQueue, MessageQueue]]:
    """Writer and reader in this process, open."""
    writer = MessageQueue(1)
    reader = MessageQueue.create_from_handle(writer.export_handle(), 0)
    joining = threading.Thread(target=reader.wait_until_ready, args=(5,))
    joining.start()
    writer.wait_until_ready(5)
    joining.join()
    yield writer, reader
    writer.close()
    reader.close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", [1, 3])
def test_every_reader_gets_everything_in_order(readers: Any, number: int, method: Method) -> None:
    queue, group = readers(number, method, 100)
    queue.wait_until_ready(20)
    assert group.reports() == ["ready"] * number
    for n in range(100):
        queue.enqueue((n, "x" * (n * 50)), 10)
    assert group.reports() == [[(n, "x" * (n * 50)) for n in range(100)]] * number


def test_a_late_joiner_loses_nothing(readers: Any) -> None:
    """The writer is ready before any reader exists, and the last reader comes after the first has joined."""
    writer = MessageQueue(2)
    ends = [MessageQueue.create_from_handle(writer.export_handle(), rank) for rank in range(2)]
    opened = threading.Event()

    def write() -> None:
        writer.wait_until_ready(5)
        opened.set()
        writer.enqueue("first", 5)

    thread = threading.Thread(target=write)
    thread.start()
    joined = [threading.Thread(target=end.wait_until_ready, args=(5,)) for end in ends]
    joined[0].start()
    assert not opened.wait(0.1)  # one has joined, and nothing is written
    joined[1].start()
    thread.join(5)
    for late in joined:
        late.join(5)
    assert [end.dequeue(5) for end in ends] == ["first", "first"]
    for queue in (writer, *ends):
        queue.close()


def test_a_writer_that_nobody_joins_says_who_is_missing() -> None:
    queue = MessageQueue(2)
    first = MessageQueue.create_from_handle(queue.export_handle(), 0)
    with pytest.raises(CallTimeoutError, match="the writer has not said OPEN"):
        first.wait_until_ready(0.05)
    with pytest.raises(CallTimeoutError, match=r"readers \(1,\) have not joined") as caught:
        queue.wait_until_ready(0.1)
    assert caught.value.waiting_for == (1,)
    queue.close()
    queue.export_handle().close()


@pytest.mark.parametrize("timeout", [0, 0.05, -1])
def test_nothing_comes(local: tuple[MessageQueue, MessageQueue], timeout: float) -> None:
    with within(1), pytest.raises(CallTimeoutError):
        local[1].dequeue(timeout)
    local[0].enqueue(1)
    assert local[1].dequeue(1) == 1


def test_a_cancel_ends_every_wait(local: tuple[MessageQueue, MessageQueue]) -> None:
    writer, reader = local
    cancel = Flag()
    threading.Timer(0.05, cancel.set).start()
    with within(2), pytest.raises(ExecutorClosedError, match="cancelled"):
        reader.dequeue(10, cancel)
    with within(2), pytest.raises(ExecutorClosedError, match="cancelled"):
        MessageQueue.wait_until_ready(reader, 10, cancel)
    with within(5), pytest.raises(ExecutorClosedError, match="cancelled"):
        fill(writer, cancel)
    cancel.close()


def test_a_full_queue_names_the_reader_and_keeps_the_others_in_step() -> None:
    """A message goes to all or to none: a reader that has room does not get what another did not."""
    writer = MessageQueue(2)
    ends = [MessageQueue.create_from_handle(writer.export_handle(), rank) for rank in range(2)]
    taken: list[int] = []

    def fill_and_read_one() -> NoReturn:
        while True:
            writer.enqueue((len(taken), b"x" * 20_000), 0.05)
            taken.append(ends[0].dequeue(5)[0])

    with pytest.raises(CallTimeoutError, match="reader 1 has left no room") as caught:
        fill_and_read_one()
    sent = len(taken)
    assert taken == list(range(sent))
    assert caught.value.waiting_for == (1,)
    assert sent > 0
    with pytest.raises(CallTimeoutError):
        ends[0].dequeue(0.05)
    assert [ends[1].dequeue(5)[0] for _ in range(sent)] == list(range(sent))
    writer.enqueue("after", 5)
    assert [end.dequeue(5) for end in ends] == ["after", "after"]
    for queue in (writer, *ends):
        queue.close()


@pytest.mark.parametrize("method", METHODS)
def test_a_reader_that_is_killed(readers: Any, method: Method) -> None:
    queue, group = readers(2, method, 10_000)
    queue.wait_until_ready(20)
    assert group.reports() == ["ready"] * 2
    os.kill(group.processes[1].pid, signal.SIGKILL)
    group.processes[1].join()
    with within(5), pytest.raises(QueueClosedError, match="reader 1 of the queue is gone"):
        queue.enqueue("to nobody", 10)
    assert group.processes[0].exitcode is None


def test_a_reader_that_is_killed_while_the_queue_is_full(readers: Any) -> None:
    queue, group = readers(2, "fork", 10_000)
    queue.wait_until_ready(20)
    assert group.reports() == ["ready"] * 2
    pid = group.processes[1].pid
    os.kill(pid, signal.SIGSTOP)
    killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with within(5), pytest.raises(QueueClosedError, match="reader 1"):
        fill(queue)
    killer.join()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_writer_that_dies(moment: str) -> None:
    context: Any = multiprocessing.get_context("fork")
    queue = MessageQueue(1)
    writer = context.Process(
        target=write_and_die if moment == "after" else os._exit, args=(queue,) if moment == "after" else (9,)
    )
    writer.start()
    reader = MessageQueue.create_from_handle(queue.export_handle(), 0)
    for sock in queue.sockets:
        sock.close()  # the writer's process has them; this one is the reader's
    with within(5):
        if moment == "after":
            reader.wait_until_ready(10)
            assert reader.dequeue(10) == "last words"
            with pytest.raises(QueueClosedError):
                reader.dequeue(10)
        else:
            with pytest.raises(QueueClosedError):
                reader.wait_until_ready(10)
    writer.join()
    writer.close()
    reader.close()
    queue.arena.close()


def test_a_forked_reader_sees_the_writer_die() -> None:
    """It inherited the writer's own end, and a sibling's: with those open it would wait for ever."""
    context: Any = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    host = os.fork()
    if host == 0:
        queue = MessageQueue(2)
        for rank in range(2):
            context.Process(target=read, args=(queue.export_handle(), rank, 1, theirs)).start()
        queue.wait_until_ready(10)
        signal.pause()
    for _ in range(2):
        assert mine.recv() == "ready"
    os.kill(host, signal.SIGKILL)
    os.waitpid(host, 0)
    with within(3):
        for _ in range(2):
            assert mine.recv() == [("QueueClosedError", "the writer of the channel closed it")]
    for _ in range(2):
        mine.send("leave")
    theirs.close()
    mine.close()


def test_a_message_that_does_not_unpickle_is_consumed(local: tuple[MessageQueue, MessageQueue]) -> None:
    writer, reader = local
    for _ in range(3):
        writer.enqueue(Poison())
        writer.enqueue("next")
        with pytest.raises(ValueError, match="cannot be read"):
            reader.dequeue(1)
        assert reader.dequeue(1) == "next"


def test_an_object_that_cannot_be_pickled(local: tuple[MessageQueue, MessageQueue]) -> None:
    with pytest.raises(PayloadError, match="the message cannot be pickled"):
        local[0].enqueue(threading.Lock())
    local[0].enqueue("next")
    assert local[1].dequeue(1) == "next"


@pytest.mark.parametrize("method", METHODS)
def test_a_large_array_for_each_reader_alone(readers: Any, method: Method) -> None:
    """Every reader writes into what it got, and sees its own writing alone."""
    queue, group = readers(2, method, 3)
    queue.wait_until_ready(20)
    assert group.reports() == ["ready"] * 2
    for n in range(3):
        queue.enqueue(np.full(64 << 20, n, dtype=np.uint8), 20)
    assert group.reports() == [[(64 << 20, n + rank, n + rank) for n in range(3)] for rank in range(2)]


def test_what_was_received_is_never_written_again(local: tuple[MessageQueue, MessageQueue]) -> None:
    """Blocks are used again, and a reader that keeps an old array keeps what was in it."""
    writer, reader = local
    kept = []
    for n in range(12):
        writer.enqueue(np.full(1 << 20, n, dtype=np.uint8), 5)
        got = reader.dequeue(5)
        if n % 3 == 0:
            kept.append((n, got))
        assert (got == n).all()
        del got
    for n, array in kept:
        assert (array == n).all()


def test_no_room(local: tuple[MessageQueue, MessageQueue], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("procession.runtime.arena.available_memory", lambda: 100 << 20)
    with pytest.raises(RoomError, match="does not fit into the 100 MiB"):
        local[0].enqueue(np.zeros(200 << 20, dtype=np.uint8))
    local[0].enqueue("next")
    assert local[1].dequeue(1) == "next"


def test_a_queue_needs_a_reader() -> None:
    with pytest.raises(ValueError, match="at least one reader"):
        MessageQueue(0)
    with pytest.raises(NotImplementedError):
        MessageQueue(2, 1)


def test_the_end_wakes_a_reader(local: tuple[MessageQueue, MessageQueue]) -> None:
    writer, reader = local
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            reader.dequeue()
        except QueueClosedError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    writer.close()
    thread.join(5)
    assert eventually(lambda: caught)
