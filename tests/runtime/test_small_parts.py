"""Waiting, flags, the shared lock, the recorder, pause points and what is left behind, each on its own."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from procession.protocol.core.cluster import Step
from procession.protocol.futures import Serve, ServeOn
from procession.runtime import Recorder, SignalAt
from procession.runtime.errors import CallTimeoutError, WorkerDiedError, how_it_ended
from procession.runtime.leftovers import descendants, left_behind, snapshot
from procession.runtime.record import hook
from procession.runtime.room import available_memory
from procession.runtime.shared_lock import SharedLock
from procession.runtime.wait import WRITE, Flag, Waiter, deadline_in, left
from tests.runtime.support import eventually, gone, within

STEP = Step("serve", "serve", -1, ServeOn.CALL, Serve.IDLE, Serve.RUNNING, ())

# --- waiting --------------------------------------------------------------------------------------------------------


def test_none_zero_and_expired_are_three_values() -> None:
    assert deadline_in(None) is None
    assert left(None) is None
    assert left(deadline_in(0)) == 0.0
    assert left(time.monotonic() - 100) == 0.0
    assert 0.9 < (left(deadline_in(1)) or 0) <= 1
    assert (left(float("inf")) or 0) < 1e6  # poll counts milliseconds in an int


@pytest.mark.parametrize("deadline", [0.0, -5.0])
def test_an_expired_deadline_looks_once(deadline: float) -> None:
    flag, waiter = Flag(), Waiter()
    waiter.watch(flag.fd)
    with within(0.5):
        assert waiter.wait(deadline) == []
        flag.set()
        assert waiter.wait(deadline) == [flag.fd]
    flag.close()


def test_a_deadline_is_not_early() -> None:
    waiter = Waiter()
    for seconds in (0.0004, 0.003, 0.05):
        began = time.monotonic()
        assert waiter.wait(began + seconds) == []
        assert time.monotonic() - began >= seconds


@pytest.mark.parametrize("spin", [0.0, 0.01])
def test_any_of_what_is_watched_ends_a_wait(spin: float) -> None:
    one, two = socket.socketpair()
    flag, waiter = Flag(), Waiter()
    waiter.watch(one.fileno())
    waiter.watch(flag.fd)
    threading.Timer(0.05, flag.set).start()
    assert waiter.wait(deadline_in(5), spin) == [flag.fd]
    flag.clear()
    two.send(b"x")
    assert waiter.wait(deadline_in(5), spin) == [one.fileno()]
    one.recv(1)
    two.close()  # an end is ready, too
    assert waiter.wait(deadline_in(5), spin) == [one.fileno()]
    waiter.forget(one.fileno())
    waiter.forget(one.fileno())
    assert waiter.wait(deadline_in(0.01), spin) == []
    one.close()
    flag.close()


def test_watch_again_replaces() -> None:
    one, two = socket.socketpair()
    waiter = Waiter()
    waiter.watch(one.fileno())
    assert waiter.wait(0.0) == []
    waiter.watch(one.fileno(), WRITE)
    assert waiter.wait(0.0) == [one.fileno()]
    one.close()
    two.close()


def test_a_flag_stays_set_until_it_is_cleared() -> None:
    flag, waiter = Flag(), Waiter()
    waiter.watch(flag.fd)
    for _ in range(3):
        flag.set()
    assert waiter.wait(0.0) == waiter.wait(0.0) == [flag.fd]
    flag.clear()
    flag.clear()
    assert waiter.wait(0.0) == []
    flag.close()
    flag.close()
    flag.set()  # nothing happens


def test_a_death_ends_a_wait() -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    pidfd = os.pidfd_open(pid)
    waiter = Waiter()
    waiter.watch(pidfd)
    assert waiter.wait(0.0) == []
    os.kill(pid, signal.SIGKILL)
    with within(1):
        assert waiter.wait(deadline_in(5)) == [pidfd]
    os.close(pidfd)
    os.waitpid(pid, 0)


# --- the shared lock ------------------------------------------------------------------------------------------------


@pytest.fixture
def lock_file() -> int:
    fd = os.memfd_create("lock")
    lock_files.append(fd)
    return fd


lock_files: list[int] = []


@pytest.fixture(autouse=True)
def _close_lock_files():  # type: ignore[no-untyped-def]  # a generator fixture of one line
    yield
    while lock_files:
        os.close(lock_files.pop())


def test_the_lock_excludes_threads_and_processes(lock_file: int) -> None:
    lock = SharedLock(lock_file)
    inside, went_wrong = [0], []

    def work() -> None:
        for _ in range(200):
            with lock:
                inside[0] += 1
                if inside[0] != 1:
                    went_wrong.append(1)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert went_wrong == []
    assert lock.acquire(blocking=False)
    assert not lock.acquire(blocking=False)
    pid = os.fork()
    if pid == 0:
        os._exit(SharedLock(lock_file).acquire(blocking=False))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    lock.release()
    os.close(lock._fd)


def test_the_lock_of_a_dead_holder_is_free(lock_file: int) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        lock = SharedLock(lock_file)
        lock.acquire()
        os.write(writing, b"x")
        signal.pause()
    os.read(reading, 1)
    lock = SharedLock(lock_file)
    assert not lock.acquire(blocking=False)
    os.kill(pid, signal.SIGKILL)
    with within(1):
        assert lock.acquire()
    lock.release()
    os.waitpid(pid, 0)
    for fd in (reading, writing, lock._fd):
        os.close(fd)


# --- recording ------------------------------------------------------------------------------------------------------


def test_nothing_is_hooked_by_default() -> None:
    assert hook("executor", None, None) is None


def test_lines_of_all_processes_in_order_of_time(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.begin(2, 7)
    hooks = [hook(p, recorder.fd(p), None) for p in ("executor", "rank 0", "rank 1")]
    for n in range(30):
        found = hooks[n % 3]
        assert found is not None
        found(n, STEP)
    lines = [json.loads(line) for line in recorder.lines()]
    assert lines[0] == {"trace": 1, "ranks": 2, "epoch": 7}
    assert [line["c"] for line in lines[1:]] == list(range(30))
    assert [line["n"] for line in lines[1:] if line["p"] == "rank 1"] == list(range(10))
    recorder.finish()
    recorder.finish()
    assert recorder.save(tmp_path / "t").read_text().splitlines() == recorder.lines()
    with pytest.raises(ValueError, match="make one for each"):
        recorder.begin(1, 1)


def test_a_killed_process_loses_no_line() -> None:
    recorder = Recorder()
    recorder.begin(1, 1)
    pid = os.fork()
    if pid == 0:
        found = hook("rank 0", recorder.fd("rank 0"), SignalAt("rank 0", "serve.serve", "call"))
        assert found is not None
        found(1, STEP)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert json.loads(recorder.lines()[1])["e"] == "call"
    recorder.finish()


def test_a_pause_acts_at_its_step_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
    try:
        for pause in (
            SignalAt("rank 1", "serve.serve", "call", signal.SIGUSR2),
            SignalAt("rank 0", "serve.other", "call", signal.SIGUSR2),
            SignalAt("rank 0", "serve.serve", "sent", signal.SIGUSR2),
        ):
            pause("rank 0", 1, STEP)
        assert heard == []
        same = pickle.loads(pickle.dumps(SignalAt("rank 0", "serve.serve", "call", signal.SIGUSR2)))
        same("rank 0", 1, STEP)
        assert heard == [1]
    finally:
        signal.signal(signal.SIGUSR2, before)


# --- errors and room ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-9, "signal 9 (SIGKILL)"),
        (-63, "signal 63 (unnamed)"),
        (None, "an exit status that could not be read"),
    ],
)
def test_how_a_process_ended(status: int | None, text: str) -> None:
    assert how_it_ended(status) == text


def test_a_fresh_error_is_another_object_with_everything() -> None:
    first = WorkerDiedError("gone", rank=3, phase="idle", exit_status=-9)
    first.__cause__ = ValueError("why")
    second = first.fresh()
    assert second is not first
    assert isinstance(second, WorkerDiedError)
    assert (str(second), second.rank, second.phase, second.exit_status) == ("gone", 3, "idle", -9)
    assert second.__cause__ is first.__cause__
    late = CallTimeoutError("late", call=1, method="m", waiting_for=(1,)).fresh()
    assert isinstance(late, TimeoutError)


def test_there_is_room() -> None:
    assert 1 << 20 < available_memory() < 1 << 50


# --- what is left behind, found each time ---------------------------------------------------------------------------


def test_a_process_is_found() -> None:
    before = snapshot()
    pid = os.fork()
    if pid == 0:
        signal.pause()
    assert any(f"process {pid}" in line for line in left_behind(before))
    assert pid in descendants(os.getpid())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert left_behind(before) == []
    assert gone(pid)


def test_a_thread_a_descriptor_and_files_are_found() -> None:
    before = snapshot()
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="forgotten")
    thread.start()
    fd = os.memfd_create("forgotten")
    memory = Path(f"/dev/shm/psm_{os.getpid()}")
    memory.write_text("")
    folder = Path(os.environ["TMPDIR"]) / "pymp-forgotten"
    folder.mkdir()
    found = "\n".join(left_behind(before))
    over.set()
    thread.join()
    os.close(fd)
    memory.unlink()
    folder.rmdir()
    for word in ("thread forgotten", "descriptor", memory.name, "pymp-forgotten"):
        assert word in found
    assert eventually(lambda: left_behind(before) == [])
