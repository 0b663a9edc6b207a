"""Calls on real processes: what is asked for comes back to who asked, or a timely and true failure does."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import os
import pickle
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from procession.runtime import (
    CallTimeoutError,
    ConfigError,
    ExecutorClosedError,
    ExecutorError,
    MultiprocExecutor,
    PayloadError,
    SignalAt,
    WorkerDiedError,
    WorkerError,
)
from procession.runtime.futures import CallFuture
from tests.runtime.support import METHODS, SHORT, Method, eventually, executor, within
from tests.runtime.workers import Echo, Poison


@pytest.fixture(params=["fork"])
def pair(request: pytest.FixtureRequest) -> Iterator[MultiprocExecutor]:
    """Two ranks, ready; both are well again when the test is over."""
    with executor(start_method=request.param, shutdown=SHORT) as ready:
        yield ready
        if ready.pids and not ready.is_failed:
            assert ready.collective_rpc("echo", args=("end",), timeout=10) == [(0, "end"), (1, "end")]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A named pipe at which `wait_for_pipe` holds a worker until `release`."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    yield path
    release(path)


def release(path: Path) -> bool:
    """Let through whoever waits at the pipe, if anybody does; False, so that a condition can begin with it."""
    with contextlib.suppress(OSError):  # nobody waits
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    return False


def works(ready: MultiprocExecutor, mark: object = "next") -> None:
    """The next call gets its own answers."""
    assert ready.collective_rpc("echo", args=(mark,), timeout=10) == [(0, mark), (1, mark)]


# --- what can be asked for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", METHODS, indirect=True)
def test_by_name_by_lambda_and_by_closure(pair: MultiprocExecutor) -> None:
    secret = 41

    def closure(worker: Echo, more: int, *, twice: bool) -> tuple[int, int]:
        return worker.rank, (secret + more) * (2 if twice else 1)

    assert pair.collective_rpc("echo", args=(1,), kwargs={"b": 2, "a": 1}) == [
        (0, 1, ("a", 1), ("b", 2)),
        (1, 1, ("a", 1), ("b", 2)),
    ]
    assert pair.collective_rpc(lambda worker, x: (worker.rank, x), args=(5,)) == [(0, 5), (1, 5)]
    assert pair.collective_rpc(closure, args=(1,), kwargs={"twice": True}) == [(0, 84), (1, 84)]
    assert pair.collective_rpc(Echo.echo, args=(3,)) == [(0, 3), (1, 3)]


def test_one_reply_rank(pair: MultiprocExecutor) -> None:
    for rank in (0, 1):
        assert pair.collective_rpc("echo", args=("x",), unique_reply_rank=rank) == (rank, "x")


@pytest.mark.parametrize("rank", [-1, 2, 10**6])
def test_a_reply_rank_that_does_not_exist(pair: MultiprocExecutor, rank: int) -> None:
    with pytest.raises(ConfigError, match=f"from 0 to 1, not {rank}"):
        pair.collective_rpc("echo", unique_reply_rank=rank)


def test_the_reference_systems_methods() -> None:
    class Model(Echo):
        def execute_model(self, step: int) -> tuple[int, int]:
            return self.rank, step

        def sample_tokens(self, grammar: str) -> tuple[int, str]:
            return self.rank, grammar

        def execute_dummy_batch(self) -> None:
            self.note("dummy")

        def take_draft_token_ids(self) -> list[int]:
            return [self.rank]

    with executor(Model, 2, pipeline_parallel_size=2) as ready:
        assert (ready.output_rank, ready.max_concurrent_batches) == (2, 2)
        assert ready.execute_model(7) == (2, 7)
        assert ready.sample_tokens("g") == (2, "g")
        first, second = ready.execute_model(1, non_block=True), ready.execute_model(2, non_block=True)
        assert (second.result(), first.result()) == ((2, 2), (2, 1))
        ready.execute_dummy_batch()
        assert ready.collective_rpc("noted") == [["dummy"]] * 4
        assert ready.take_draft_token_ids() == [2]
        ready.check_health()


class Sum:
    """Adds every rank's output, and notes what it was given."""

    def __init__(self, fails: BaseException | None = None) -> None:
        self.fails = fails
        self.given: list[tuple[list[Any], int]] = []

    def aggregate(self, outputs: list[Any], output_rank: int = 0) -> Any:
        self.given.append((outputs, output_rank))
        if self.fails is not None:
            raise self.fails
        return sum(outputs)


def test_an_aggregator_gets_every_ranks_output(pair: MultiprocExecutor) -> None:
    add = Sum()
    assert pair.collective_rpc(lambda worker: worker.rank + 10, kv_output_aggregator=add) == 21
    assert pair.collective_rpc(lambda worker: 1, unique_reply_rank=1, kv_output_aggregator=add) == 2
    assert add.given == [([10, 11], 0), ([1, 1], 1)]


@pytest.mark.parametrize("error", [ValueError("no sum"), SystemExit("no sum")])
def test_an_aggregator_that_raises_fails_its_own_call(pair: MultiprocExecutor, error: BaseException) -> None:
    with pytest.raises(type(error), match="no sum"):
        pair.collective_rpc(lambda worker: worker.rank, kv_output_aggregator=Sum(error))
    future = pair.collective_rpc(lambda worker: worker.rank, non_block=True, kv_output_aggregator=Sum(error))
    works(pair)  # this call takes the other one's replies, too
    with pytest.raises(type(error), match="no sum"):
        future.result(5)


# --- failures of a method -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", METHODS, indirect=True)
def test_a_rank_raises_and_the_failing_call_alone_fails(pair: MultiprocExecutor) -> None:
    for turn, (rank, reply_rank) in enumerate(itertools.product((0, 1), (None, 0, 1))):
        with pytest.raises(
            WorkerError, match=rf"rank {rank} failed in call \d+ \('raises'\): ValueError: b"
        ) as e:
            pair.collective_rpc("raises", args=(rank, f"b{turn}"), unique_reply_rank=reply_rank)
        assert (e.value.rank, e.value.method, e.value.exit_status) == (rank, "raises", None)
        assert f"ValueError: b{turn}" in str(e.value.__cause__)
        assert "in raises" in str(e.value.__cause__)
        works(pair, turn)
    assert not pair.is_failed


def test_a_failure_does_not_wait_for_the_other_ranks(pair: MultiprocExecutor, gate: Path) -> None:
    def first_waits(worker: Echo, path: str) -> int:
        return worker.wait_for_pipe(path) if worker.rank == 0 else worker.raises(1)

    with within(2), pytest.raises(WorkerError, match="rank 1 failed"):
        pair.collective_rpc(first_waits, args=(str(gate),))
    assert eventually(lambda: _waits_at(gate))
    release(gate)
    works(pair)


def test_a_missing_method(pair: MultiprocExecutor) -> None:
    with pytest.raises(WorkerError, match=r"rank \d failed .* has no method 'nothing'"):
        pair.collective_rpc("nothing")
    with pytest.raises(WorkerError, match="has no method 'rank'"):  # it has it, and it cannot be called
        pair.collective_rpc("rank")
    works(pair)


@pytest.mark.parametrize(
    ("method", "args", "text"),
    [
        ("raises_half_picklable", (), "TwoArgumentsError: one"),
        ("raises_dumb", (), "its text cannot be had"),
        ("raises_at_length", (10,), "ValueError: €€€€€€€€€€"),
        ("raises_at_length", (5_000_000,), "ValueError: €€€"),
        ("recurse", (), "RecursionError"),
        ("only", (1, "recurse"), "RecursionError"),
        ("nested", (100_000,), "nested too deeply"),
        ("unpicklable", (), "what 'unpicklable' returned on rank . cannot be pickled"),
        ("half_picklable", (), "cannot be unpickled .ValueError: cannot be read"),
        ("only", (1, "unpicklable"), "on rank 1 cannot be pickled"),
        ("only", (1, "half_picklable"), "the answer of rank 1 to call"),
    ],
)
def test_what_is_hard_to_report_is_reported(
    pair: MultiprocExecutor, method: str, args: tuple[Any, ...], text: str
) -> None:
    for reply_rank in (None, 1):
        with within(5), pytest.raises((WorkerError, PayloadError), match=text) as e:
            pair.collective_rpc(method, args=args, unique_reply_rank=reply_rank)
        assert len(str(e.value)) < 40_000
        works(pair)


def test_a_reply_whose_unpickling_wants_to_exit_fails_its_own_call(pair: MultiprocExecutor) -> None:
    with pytest.raises(PayloadError, match="SystemExit"):
        pair.collective_rpc(lambda worker: Poison(SystemExit))
    works(pair)


def test_a_reply_that_nobody_asked_for_is_not_pickled(pair: MultiprocExecutor) -> None:
    assert pair.collective_rpc("only", args=(1, "unpicklable"), unique_reply_rank=0) == 0


@pytest.mark.parametrize("argument", [threading.Lock(), (i for i in range(3)), lambda: 1])
def test_an_argument_that_cannot_be_pickled_is_the_callers_error(
    pair: MultiprocExecutor, argument: Any
) -> None:
    with pytest.raises(PayloadError, match="the arguments of 'echo' cannot be pickled"):
        pair.collective_rpc("echo", args=(argument,))
    works(pair)


def test_a_callable_that_cannot_be_pickled_is_the_callers_error(pair: MultiprocExecutor) -> None:
    lock = threading.Lock()
    with pytest.raises(PayloadError, match="nothing was sent"):
        pair.collective_rpc(lambda worker: lock)
    works(pair)


def test_an_argument_that_does_not_unpickle_is_a_failure_of_the_ranks(pair: MultiprocExecutor) -> None:
    with pytest.raises(WorkerError, match="ValueError: cannot be read"):
        pair.collective_rpc("echo", args=(Poison(),))
    works(pair)


# --- time -----------------------------------------------------------------------------------------------------------


def _waits_at(path: Path) -> bool:
    """Whether somebody has the pipe open for reading; who waits there is let through by the look."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("reply_rank", [None, 0, 1])
def test_a_timeout_then_the_next_calls_are_right(
    pair: MultiprocExecutor, gate: Path, reply_rank: int | None
) -> None:
    for turn in range(3):
        with (
            within(5),
            pytest.raises(CallTimeoutError, match=r"waiting for rank 0, 1, answered by rank \(none\)"),
        ):
            pair.collective_rpc("wait_for_pipe", 0.1, (str(gate),), unique_reply_rank=reply_rank)
        futures = [pair.collective_rpc("echo", args=((turn, n),), non_block=True) for n in range(3)]
        _release_both(pair, gate)
        assert [f.result(10) for f in futures] == [[(0, (turn, n)), (1, (turn, n))] for n in range(3)]


def _release_both(pair: MultiprocExecutor, gate: Path) -> None:
    """Open the gate until a call that came after it is answered."""
    after = pair.collective_rpc("pid", non_block=True)

    def through() -> bool:
        release(gate)
        return bool(after.done())

    assert eventually(through)


def test_a_timeout_names_who_answered_and_who_did_not(pair: MultiprocExecutor, gate: Path) -> None:
    with pytest.raises(CallTimeoutError, match="waiting for rank 1, answered by rank 0") as e:
        pair.collective_rpc("only", 0.3, (1, "wait_for_pipe", str(gate)))
    assert (e.value.waiting_for, e.value.method) == ((1,), "only")
    assert isinstance(e.value, TimeoutError)
    _release_both(pair, gate)


def test_a_large_reply_after_a_timeout(pair: MultiprocExecutor, gate: Path) -> None:
    def large(worker: Echo, path: str, fill: int) -> Any:
        worker.wait_for_pipe(path)
        return np.full(1 << 20, fill, dtype=np.uint8)

    with pytest.raises(CallTimeoutError):
        pair.collective_rpc(large, 0.1, (str(gate), 1))
    _release_both(pair, gate)
    late = pair.collective_rpc(large, None, (str(gate), 2), non_block=True)
    _release_both(pair, gate)
    for array in late.result(10):
        assert array.shape == (1 << 20,)
        assert (array == 2).all()


def test_timeout_zero(pair: MultiprocExecutor, gate: Path) -> None:
    for _ in range(3):
        with within(2), pytest.raises(CallTimeoutError):
            pair.collective_rpc("wait_for_pipe", timeout=0, args=(str(gate),))
        _release_both(pair, gate)
        works(pair)


@pytest.mark.parametrize("timeout", [-1, -0.001, float("-inf")])
def test_a_negative_timeout_is_refused(pair: MultiprocExecutor, timeout: float) -> None:
    with pytest.raises(ConfigError, match="timeout must be 0 or more"):
        pair.collective_rpc("echo", timeout=timeout)


@pytest.mark.parametrize("timeout", [1e6, 1e7, 1e12, float("inf")])
def test_a_timeout_beyond_what_the_kernel_can_count(pair: MultiprocExecutor, timeout: float) -> None:
    assert pair.collective_rpc("echo", timeout) == [(0,), (1,)]
    assert pair.collective_rpc("echo", non_block=True).result(timeout) == [(0,), (1,)]


def test_a_negative_wait_for_a_result_looks_once(pair: MultiprocExecutor, gate: Path) -> None:
    future = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
    for wait in (-1.0, 0.0):
        with within(2), pytest.raises(TimeoutError):
            future.result(wait)
    _release_both(pair, gate)
    assert future.result(0.0) == [0, 1]


def test_a_deadline_passes_even_if_nobody_but_done_looks(pair: MultiprocExecutor, gate: Path) -> None:
    future = pair.collective_rpc("wait_for_pipe", 0.1, (str(gate),), non_block=True)
    assert eventually(future.done)
    with pytest.raises(CallTimeoutError):
        future.result()
    _release_both(pair, gate)


def test_one_deadline_for_the_call_and_the_drain_of_older_ones(pair: MultiprocExecutor, gate: Path) -> None:
    older = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
    with within(1.5), pytest.raises(CallTimeoutError):
        pair.collective_rpc("echo", timeout=0.3)
    _release_both(pair, gate)
    assert older.result(5) == [0, 1]


def test_a_wait_that_is_too_short_leaves_the_call_alone(pair: MultiprocExecutor, gate: Path) -> None:
    future = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            future.result(0.02)
        with pytest.raises(TimeoutError):
            future.exception(0.02)
    assert not future.done()
    _release_both(pair, gate)
    assert future.result() == [0, 1]
    assert future.exception() is None


# --- futures --------------------------------------------------------------------------------------------------------


def test_results_in_any_order(pair: MultiprocExecutor) -> None:
    order = np.random.default_rng(3).permutation(50)
    futures = [pair.collective_rpc("echo", args=(n,), non_block=True) for n in range(50)]
    for n in order:
        assert futures[n].result() == [(0, n), (1, n)]


def test_the_same_result_many_times(pair: MultiprocExecutor) -> None:
    future = pair.collective_rpc("echo", args=(1,), non_block=True)
    assert future.result() is future.result()
    bad = pair.collective_rpc("raises", args=(0,), non_block=True)
    with pytest.raises(WorkerError) as first:
        bad.result()
    with pytest.raises(WorkerError) as second:
        bad.result()
    assert first.value is not second.value
    assert str(first.value) == str(second.value)
    assert isinstance(bad.exception(), WorkerError)


def test_a_future_that_is_dropped_takes_nobody_elses_reply(pair: MultiprocExecutor) -> None:
    kept = pair.collective_rpc("echo", args=("kept",), non_block=True)
    for n in range(10):
        pair.collective_rpc("echo", args=(n,), non_block=True)
    assert kept.result() == [(0, "kept"), (1, "kept")]


def test_cancel_then_the_next_call(pair: MultiprocExecutor, gate: Path) -> None:
    future = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
    assert future.cancel()
    assert future.cancelled()
    assert future.done()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    assert future.cancel()  # as in the standard library: it is cancelled, is it not
    after = pair.collective_rpc("echo", args=("after",), non_block=True)
    _release_both(pair, gate)
    assert after.result(5) == [(0, "after"), (1, "after")]
    assert not after.cancel()
    assert not after.cancelled()


def test_a_cancel_wakes_a_waiter_in_another_thread(pair: MultiprocExecutor, gate: Path) -> None:
    future = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            future.result()
        except BaseException as error:  # noqa: BLE001 - whatever comes is what the test looks at
            caught.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert eventually(lambda: _draining(pair))
    assert future.cancel()
    waiter.join(5)
    assert not waiter.is_alive()
    assert isinstance(caught[0], concurrent.futures.CancelledError)
    _release_both(pair, gate)


def _draining(ready: MultiprocExecutor) -> bool:
    return bool(ready._kernel.calls.draining._drainer)


def test_a_future_cannot_be_pickled(pair: MultiprocExecutor) -> None:
    future = pair.collective_rpc("echo", non_block=True)
    with pytest.raises(TypeError, match=r"'echo'.*send its result"):
        pickle.dumps(future)
    with pytest.raises(PayloadError, match="send its result"):
        pair.collective_rpc("echo", args=(future,))
    assert future.result() == [(0,), (1,)]


def test_the_standard_librarys_tools_for_futures(pair: MultiprocExecutor) -> None:
    """Nobody calls `result`: the answers come all the same."""
    futures = [pair.collective_rpc("echo", args=(n,), non_block=True) for n in range(5)]
    done, rest = concurrent.futures.wait(futures, timeout=5)
    assert (len(done), len(rest)) == (5, 0)

    futures = [pair.collective_rpc("echo", args=(n,), non_block=True) for n in range(5)]
    assert {f.result()[0][1] for f in concurrent.futures.as_completed(futures, timeout=5)} == set(range(5))

    told = threading.Event()
    future = pair.collective_rpc("echo", non_block=True)
    future.add_done_callback(lambda _: told.set())
    assert told.wait(5)


def test_asyncio_waits_for_our_futures(pair: MultiprocExecutor) -> None:
    async def all_of_them() -> list[Any]:
        futures = [pair.collective_rpc("echo", args=(n,), non_block=True) for n in range(20)]
        return await asyncio.wait_for(asyncio.gather(*(asyncio.wrap_future(f) for f in futures)), 5)

    assert asyncio.run(all_of_them()) == [[(0, n), (1, n)] for n in range(20)]


def test_a_deadline_reaches_a_callback_though_nobody_waits(pair: MultiprocExecutor, gate: Path) -> None:
    long = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
    told = threading.Event()
    long.add_done_callback(lambda _: None)
    short = pair.collective_rpc("echo", 0.1, non_block=True)
    short.add_done_callback(lambda _: told.set())
    assert told.wait(3)
    assert isinstance(short.exception(0), CallTimeoutError)
    _release_both(pair, gate)


@pytest.mark.parametrize("how", ["callback", "aggregator"])
def test_foreign_code_may_make_calls(pair: MultiprocExecutor, gate: Path, how: str) -> None:
    """It comes up while another thread drains for a call of its own, and must not wait behind that one."""

    class Asks:
        def aggregate(self, outputs: list[Any], output_rank: int = 0) -> Any:
            return pair.collective_rpc("echo", 5, ("inner",))

    found: list[Any] = []
    aggregator = Asks() if how == "aggregator" else None
    first = pair.collective_rpc("echo", 10, ("first",), non_block=True, kv_output_aggregator=aggregator)
    if how == "callback":
        first.add_done_callback(lambda _: found.append(pair.collective_rpc("echo", 5, ("inner",))))
    drainer = threading.Thread(target=pair.collective_rpc, args=("only", 10, (1, "wait_for_pipe", str(gate))))
    drainer.start()
    assert eventually(lambda: _waits_at(gate))
    if how == "aggregator":
        found.append(first.result(5))
    assert eventually(lambda: found)
    assert found == [[(0, "inner"), (1, "inner")]]
    drainer.join(5)
    assert not drainer.is_alive()


def test_callbacks_may_wait_for_each_other(pair: MultiprocExecutor) -> None:
    together = threading.Barrier(3)
    for n in range(2):
        future = pair.collective_rpc("echo", args=(n,), non_block=True)
        future.add_done_callback(lambda _: together.wait(5))
    works(pair)
    together.wait(5)


# --- many at once ---------------------------------------------------------------------------------------------------


def test_two_threads_on_two_futures(pair: MultiprocExecutor) -> None:
    for turn in range(50):
        futures = [pair.collective_rpc("echo", args=((turn, n),), non_block=True) for n in range(2)]
        found: list[Any] = [None, None]

        def wait(n: int, futures: list[Any] = futures, found: list[Any] = found) -> None:
            found[n] = futures[n].result(10)

        threads = [threading.Thread(target=wait, args=(n,)) for n in (1, 0)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert found == [[(0, (turn, n)), (1, (turn, n))] for n in range(2)]


def test_many_threads_each_get_their_own_answer(pair: MultiprocExecutor) -> None:
    wrong: list[object] = []

    def work(who: int) -> None:
        for n in range(40):
            asked = (who, n)
            try:
                if n % 7 == 3:
                    with pytest.raises(WorkerError, match=re.escape(f"<{asked}>")):
                        pair.collective_rpc("raises", args=(n % 2, f"<{asked}>"))
                elif n % 5 == 4:
                    future = pair.collective_rpc("echo", args=(asked,), non_block=True)
                    if not future.cancel() and future.result(10) != [(0, asked), (1, asked)]:
                        wrong.append((asked, future.result()))
                else:
                    answer = pair.collective_rpc("echo", 20, (asked,), non_block=bool(n % 2))
                    answer = answer.result(20) if n % 2 else answer
                    if answer != [(0, asked), (1, asked)]:
                        wrong.append((asked, answer))
            except BaseException as error:  # noqa: BLE001 - a thread's failure is the test's
                wrong.append((asked, error))

    threads = [threading.Thread(target=work, args=(who,)) for who in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_five_hundred_outstanding_calls(gate: Path) -> None:
    with executor(max_inflight_calls=8) as ready:
        ready.collective_rpc("note", args=(0,))
        futures = [ready.collective_rpc("echo", args=(n, b"x" * 5000), non_block=True) for n in range(500)]
        assert [f.result() for f in futures] == [
            [(0, n, b"x" * 5000), (1, n, b"x" * 5000)] for n in range(500)
        ]


def test_back_pressure_names_the_rank_that_is_stuck(gate: Path) -> None:
    with executor(max_inflight_calls=4, shutdown=SHORT) as ready:
        stuck = [ready.collective_rpc("only", args=(1, "wait_for_pipe", str(gate)), non_block=True)]
        stuck += [ready.collective_rpc("echo", args=(n,), non_block=True) for n in range(3)]
        with (
            within(3),
            pytest.raises(CallTimeoutError, match=r"was not sent: 4 calls .* rank 1 still owes call 1"),
        ):
            ready.collective_rpc("echo", timeout=0.3)
        assert len(ready._kernel.state.calls) == 4
        assert eventually(lambda: _waits_at(gate))
        release(gate)
        assert [f.result(5)[1] for f in stuck[1:]] == [(1, n) for n in range(3)]


def test_back_pressure_holds_for_threads_that_submit_at_once(gate: Path) -> None:
    limit = 4
    with executor(max_inflight_calls=limit, shutdown=SHORT) as ready:
        seen = []

        def submit() -> None:
            ready.collective_rpc("echo", non_block=True)
            seen.append(len(ready._kernel.state.calls))

        held = ready.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
        threads = [threading.Thread(target=submit) for _ in range(24)]
        for thread in threads:
            thread.start()
        assert eventually(lambda: len(ready._kernel.state.calls) >= limit)
        assert eventually(lambda: release(gate) or held.done())
        for thread in threads:
            thread.join(10)
        assert held.result(5) == [0, 1]
        assert len(seen) == 24
        assert max(seen) <= limit


def test_a_late_reply_makes_room_for_a_caller_that_is_parked(gate: Path, tmp_path: Path) -> None:
    """The room comes from a call that was given up: no future is settled, and whoever waits for room goes on."""
    second = tmp_path / "second"
    os.mkfifo(second)
    with executor(max_inflight_calls=2, shutdown=SHORT) as ready:
        given_up = ready.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
        given_up.cancel()
        long = ready.collective_rpc("wait_for_pipe", args=(str(second),), non_block=True)
        drainer = threading.Thread(target=long.result)
        drainer.start()
        assert eventually(lambda: _draining(ready))
        sent = threading.Event()

        def submit() -> None:
            ready.collective_rpc("echo", non_block=True)
            sent.set()

        parked = threading.Thread(target=submit)
        parked.start()
        assert eventually(lambda: ready._kernel.calls.draining._parked)
        assert eventually(lambda: release(gate) or len(ready._kernel.state.calls) < 2 or sent.is_set())
        room = sent.wait(3)
        assert eventually(lambda: release(second) or not drainer.is_alive())
        parked.join(5)
        assert room


# --- large things ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", METHODS, indirect=True)
def test_arrays_both_ways(pair: MultiprocExecutor) -> None:
    for size in (0, 1, 511, 512, 513, 32_000, 32_768, 32_769, 65_536, 1 << 20, 64 << 20):
        array = np.resize(np.arange(251, dtype=np.uint8), size)
        total = int(array.sum(dtype=np.uint64))
        assert pair.collective_rpc("total", args=(array,)) == [(size, total)] * 2
        for rank, back in enumerate(pair.collective_rpc("array", args=(size,))):
            assert back.nbytes == size
            assert (back == rank + 1).all()
            back[:] = 9  # what came is the caller's: it may be written to
            assert (back == 9).all()


def test_ranks_that_write_into_an_argument_disturb_nobody(pair: MultiprocExecutor) -> None:
    def scribble(worker: Echo, array: Any) -> int:
        before = int(array.sum())
        array[:] = worker.rank + 1
        return before + int(array.sum())

    array = np.ones(1 << 20, dtype=np.uint8)
    assert pair.collective_rpc(scribble, args=(array,)) == [(1 << 20) * 2, (1 << 20) * 3]
    assert (array == 1).all()


def test_large_calls_to_ranks_that_do_not_read(gate: Path) -> None:
    """More than a channel holds waits in the executor, in order, and the sender goes on."""
    with executor(shutdown=SHORT) as ready:
        held = ready.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
        with within(5):
            futures = [
                ready.collective_rpc("echo", args=(n, bytes([n]) * 30_000), non_block=True) for n in range(60)
            ]
        _release_both_later = threading.Thread(
            target=lambda: eventually(lambda: release(gate) or held.done())
        )
        _release_both_later.start()
        for n, future in enumerate(futures):
            assert future.result(10) == [(0, n, bytes([n]) * 30_000), (1, n, bytes([n]) * 30_000)]
        _release_both_later.join(10)


@pytest.mark.parametrize("side", ["results", "arguments"])
def test_large_things_that_are_kept_cost_no_descriptors(side: str) -> None:
    """A map of a block has a descriptor of its own, and a program has few: many of them are kept as copies."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, before[1]))
    try:
        with executor(shutdown=SHORT) as ready:
            kept = []
            for n in range(300):
                array = np.full(40_000, n % 251, dtype=np.uint8)
                if side == "results":
                    kept.append(ready.collective_rpc("echo", 10, (array,))[1][1])
                else:
                    ready.collective_rpc("note", 10, (array,))
            if side == "arguments":
                kept = ready.collective_rpc("noted", 10)[1]
            assert all((array == n % 251).all() for n, array in enumerate(kept))
            assert len(kept) == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_large_calls_that_meet_the_end() -> None:
    array = np.zeros(1 << 20, dtype=np.uint8)
    for _ in range(5):
        ready = executor(shutdown=SHORT)
        threading.Timer(0.05, os.kill, (ready.pids[1], signal.SIGKILL)).start()
        with pytest.raises(WorkerDiedError):
            send_for_ever(ready, array)
        ready.shutdown()
        with pytest.raises(WorkerDiedError):
            ready.collective_rpc("echo", 5, (array,))


def send_for_ever(ready: MultiprocExecutor, value: Any) -> NoReturn:
    while True:
        ready.collective_rpc("echo", 10, (value,))


# --- death and the end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", METHODS, indirect=True)
@pytest.mark.parametrize("reply_rank", [None, 0])
def test_a_rank_is_killed_in_mid_call_while_the_other_is_busy(
    pair: MultiprocExecutor, reply_rank: int | None
) -> None:
    def deed(worker: Echo) -> None:
        if worker.rank == 1:
            worker.kill_me()
        worker.hang()

    with (
        within(2),
        pytest.raises(WorkerDiedError, match=r"rank 1 .*signal 9 \(SIGKILL\) while it owed call 1") as e,
    ):
        pair.collective_rpc(deed, unique_reply_rank=reply_rank)
    assert (e.value.rank, e.value.exit_status) == (1, -signal.SIGKILL)
    with within(0.5), pytest.raises(WorkerDiedError, match=r"rank 1 .*SIGKILL") as again:
        pair.collective_rpc("echo")
    assert again.value is not e.value
    assert pair.is_failed


@pytest.mark.parametrize(
    ("method", "args", "text"),
    [
        ("exit_me", (3,), "exit code 3"),
        ("exit_me", (0,), "exit code 0"),
        ("sys_exit", (5,), "exit code 5"),
        ("kill_me", (), "SIGKILL"),
    ],
)
def test_a_rank_ends_in_a_call(
    pair: MultiprocExecutor, method: str, args: tuple[int, ...], text: str
) -> None:
    with within(2), pytest.raises(WorkerDiedError, match=f"rank 0 .*{text}") as e:
        pair.collective_rpc("only", args=(0, method, *args))
    assert e.value.rank == 0


def test_every_open_call_fails_with_the_first_cause(pair: MultiprocExecutor) -> None:
    futures = [pair.collective_rpc("hang", non_block=True)]
    futures += [pair.collective_rpc("echo", args=(n,), non_block=True) for n in range(20)]
    os.kill(pair.pids[1], signal.SIGKILL)
    errors = [future.exception(3) for future in futures]
    assert all(isinstance(error, WorkerDiedError) and "rank 1" in str(error) for error in errors)


def test_an_answer_that_came_before_its_rank_died_counts() -> None:
    """The rank had answered: the call did not fail, whoever sees the death first."""
    for _ in range(30):
        pause = SignalAt("rank 0", "serve.serve", "sent")
        with executor(ranks=1, pause=pause, shutdown=SHORT) as ready:
            assert ready.collective_rpc("echo", args=("last",)) == [(0, "last")]
            assert eventually(lambda: ready.is_failed)


def test_a_caller_that_waits_for_room_learns_of_the_end_at_once(gate: Path) -> None:
    with executor(max_inflight_calls=1) as ready:
        ready.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
        caught: list[BaseException] = []

        def submit() -> None:
            try:
                ready.collective_rpc("echo")
            except BaseException as error:  # noqa: BLE001 - whatever comes is what the test looks at
                caught.append(error)

        blocked = threading.Thread(target=submit)
        blocked.start()
        assert eventually(lambda: _draining(ready))
        ready._supervisor.ask_stop()
        blocked.join(1)
        late = blocked.is_alive()
        cpu = time.process_time()
        release(gate)
        assert not late
        assert isinstance(caught[0], ExecutorClosedError)
        assert time.process_time() - cpu < 1.0


def test_calls_after_the_end(pair: MultiprocExecutor) -> None:
    open_call = pair.collective_rpc("hang", non_block=True)
    pair.shutdown()
    with pytest.raises(ExecutorClosedError):
        open_call.result()
    for _ in range(3):
        with pytest.raises(ExecutorClosedError, match="DOWN"):
            pair.collective_rpc("echo")
    with pytest.raises(ExecutorClosedError):
        pair.check_health()


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def test_an_interrupted_wait_leaves_the_executor_well(pair: MultiprocExecutor, gate: Path) -> None:
    for turn in range(5):
        future = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
        threading.Thread(target=_interrupt_when, args=(_main_drains,)).start()
        with pytest.raises(KeyboardInterrupt):
            future.result(10)
        assert not _draining(pair)
        _release_both(pair, gate)
        assert future.result(5) == [0, 1]
        works(pair, turn)


def _main_drains() -> bool:
    """Whether the main thread sleeps in a wait for replies."""
    frame = sys._current_frames()[threading.main_thread().ident or 0]
    return frame.f_code.co_filename.endswith("runtime/wait.py")


def _interrupt_when(true: Any) -> None:
    assert eventually(true)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_an_interrupted_drainer_wakes_the_others(pair: MultiprocExecutor, gate: Path) -> None:
    future = pair.collective_rpc("wait_for_pipe", args=(str(gate),), non_block=True)
    other = pair.collective_rpc("echo", args=("other",), non_block=True)
    found: list[Any] = []
    parked = threading.Thread(target=lambda: found.append(other.result(10)))

    def then() -> bool:
        if _main_drains() and not parked.ident:
            parked.start()
        return bool(pair._kernel.calls.draining._parked)

    threading.Thread(target=_interrupt_when, args=(then,)).start()
    with pytest.raises(KeyboardInterrupt):
        future.result(10)
    assert eventually(lambda: _draining(pair))  # the parked one drains now
    _release_both(pair, gate)
    parked.join(5)
    assert found == [[(0, "other"), (1, "other")]]


class _Interrupts:
    """A thread that sends SIGINT to the main thread at odd moments; it raises only where the block is `open`."""

    def __init__(self) -> None:
        self.open = False
        self._over = threading.Event()
        self._main = threading.main_thread().ident or 0
        self._thread = threading.Thread(target=self._run)
        self._before = signal.getsignal(signal.SIGINT)

    def _run(self) -> None:
        for pause in itertools.cycle(np.random.default_rng(1).uniform(0.0002, 0.004, 997)):
            if self._over.wait(pause):
                return
            signal.pthread_kill(self._main, signal.SIGINT)

    def _heard(self, *_: object) -> None:
        if self.open:
            self.open = False
            raise KeyboardInterrupt

    def __enter__(self) -> _Interrupts:
        signal.signal(signal.SIGINT, self._heard)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        signal.signal(signal.SIGINT, self._before)


def test_an_exception_that_is_kept_keeps_no_answers_memory() -> None:
    """Its traceback keeps frames, and what their names stand for: the answers of the ranks that did answer, once."""
    ready = executor(shutdown=SHORT)
    with pytest.raises(CallTimeoutError) as kept:
        ready.collective_rpc(lambda worker: worker.hang() if worker.rank else worker.array(1 << 20), 2.0)
    ready.shutdown()
    links = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink() and fd.exists()]
    assert [link for link in links if "procession-block" in link] == []
    assert "rank 1" in str(kept.value)


def test_interrupts_at_any_moment_end_in_a_right_answer_or_a_clear_error() -> None:
    """An interruption may fall between any two lines: what must not come of it is a hang or a wrong answer."""
    interrupted = ended = n = 0
    end = time.monotonic() + 4
    while time.monotonic() < end:
        ready = executor(shutdown=SHORT)
        with _Interrupts() as interrupts:
            while time.monotonic() < end:
                n += 1
                try:
                    interrupts.open = True
                    answer = ready.collective_rpc("echo", 5, (n,))
                    interrupts.open = False
                except KeyboardInterrupt:
                    interrupted += 1
                except CallTimeoutError:
                    interrupts.open = False
                    raise
                except ExecutorError as error:
                    interrupts.open = False
                    if "KeyboardInterrupt" not in str(
                        error
                    ):  # else it says that it was ended by the interruption
                        raise
                    ended += 1
                    break
                else:
                    assert answer == [(0, n), (1, n)]
        with within(2, "the end after an interruption"):
            ready.shutdown()
    print(f"{n} calls, {interrupted} interrupted, {ended} of these ended the executor")
    assert interrupted > 5


@pytest.mark.parametrize("method", METHODS)
def test_a_host_that_forks_does_not_disturb_the_parent(method: Method) -> None:
    with executor(start_method=method) as ready:
        future = ready.collective_rpc("echo", args=(1,), non_block=True)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                ready.shutdown()
                try:
                    ready.collective_rpc("echo", timeout=1)
                except ExecutorClosedError:
                    code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert future.result(5) == [(0, 1), (1, 1)]
        works(ready)


def test_a_callback_added_while_the_answer_is_being_told_does_not_run_in_the_drainer(
    pair: MultiprocExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between settling and telling the drainer holds no lock; a callback that makes a call would wait behind itself."""
    telling, added = threading.Event(), threading.Event()
    tell = CallFuture.tell

    def slow(self: CallFuture) -> None:
        telling.set()
        added.wait(1)  # the adder waits for us, so this passes without it: it only had its chance
        tell(self)

    monkeypatch.setattr(CallFuture, "tell", slow)
    future = pair.collective_rpc("echo", args=("first",), non_block=True)
    seen: list[tuple[int, object]] = []

    def add() -> None:
        assert telling.wait(5)
        future.add_done_callback(
            lambda _: seen.append((threading.get_ident(), pair.collective_rpc("echo", args=("second",))))
        )
        added.set()

    adder = threading.Thread(target=add)
    adder.start()
    assert future.result(5) == [(0, "first"), (1, "first")]
    adder.join(5)
    assert not adder.is_alive()
    assert seen == [(adder.ident, [(0, "second"), (1, "second")])]
