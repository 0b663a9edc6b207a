"""`MultiprocExecutor`: the reference system's methods, over the kernel and the supervisor."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

import cloudpickle

from .config import ExecutorConfig
from .errors import ConfigError, ExecutorClosedError, ExecutorError, PayloadError, StartError
from .kernel import Kernel
from .supervisor import Supervisor
from .wait import deadline_in


class Aggregator(Protocol):
    """Merges every rank's output, as the reference system's `KVOutputAggregator` does."""

    def aggregate(self, outputs: list[Any], output_rank: int = 0) -> Any:
        """`outputs` by rank; what the caller gets."""


_running: weakref.WeakSet[Supervisor] = weakref.WeakSet()


class MultiprocExecutor:
    """Runs a worker in each of TP x PP processes, on this machine.

    The constructor returns when every rank is ready and every queue open. If that fails, every process is gone when
    it raises `StartError` (or `ConfigError`, if nothing was started at all). Use it as a context manager, or call
    `shutdown`.
    """

    supports_pp = True

    def __init__(self, config: ExecutorConfig) -> None:
        self.config = config
        try:
            self._kernel = Kernel(config)
        except OSError as error:
            raise StartError(
                f"nothing was started: the channels of {config.world_size} ranks could not be made ({error}); "
                "are there descriptors left (ulimit -n)?"
            ) from error
        self._supervisor = Supervisor(self._kernel)
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _ask_stop, self._supervisor, self._owner)
        self._finalizer.atexit = False  # `_at_exit` does it, and waits
        _running.add(self._supervisor)
        self._supervisor.start()
        try:
            self._wait_for_start()
        except BaseException:
            self.shutdown()
            raise

    def _wait_for_start(self) -> None:
        kernel = self._kernel
        kernel.decided.wait()
        if kernel.up.is_set():
            return
        kernel.ended.wait()
        cause = kernel.why_closed()
        if isinstance(cause, StartError):
            raise cause from cause.__cause__
        raise StartError(f"the executor did not start: {cause}") from cause

    # --- the reference system's methods -----------------------------------------------------------------------------

    def collective_rpc(
        self,
        method: str | Callable[..., Any],
        timeout: float | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        non_block: bool = False,
        unique_reply_rank: int | None = None,
        kv_output_aggregator: Aggregator | None = None,
    ) -> Any:
        """Call a method, by name, or a callable that gets the worker first, on every rank.

        timeout: seconds for the whole call, all ranks together; None: no bound.
        non_block: return a `concurrent.futures.Future` at once.
        unique_reply_rank: return this rank's result alone; without it, a list by rank. Every rank's failure fails the
            call in either case.
        kv_output_aggregator: return what it makes of every rank's result.

        Raises `WorkerError`, `WorkerDiedError`, `CallTimeoutError`, `PayloadError` (an argument cannot be pickled;
        nothing was sent) or `ExecutorClosedError`.
        """
        if (
            os.getpid() != self._owner
        ):  # the channels are shared with the parent: a call would disturb its own
            raise ExecutorClosedError(
                f"this executor belongs to process {self._owner}, of which this is a fork"
            )
        name = method if isinstance(method, str) else getattr(method, "__qualname__", repr(method))
        if timeout is not None and timeout < 0:
            raise ConfigError(f"timeout must be 0 or more seconds, or None, not {timeout!r}")
        reply_rank = self._checked_rank(unique_reply_rank)
        aggregate: Callable[[list[Any]], Any] | None = None
        if kv_output_aggregator is not None:
            aggregator, output_rank = (
                kv_output_aggregator,
                self.output_rank if reply_rank is None else reply_rank,
            )
            reply_rank = None

            def aggregate(outputs: list[Any]) -> Any:
                return aggregator.aggregate(outputs, output_rank=output_rank)

        request = (_sendable(method, name), tuple(args), dict(kwargs or {}), reply_rank)
        return self._kernel.calls.submit(
            name, request, deadline_in(timeout), timeout, reply_rank, aggregate, non_block
        )

    async def rpc(self, method: str | Callable[..., Any], **options: Any) -> Any:
        """`collective_rpc` for coroutines; cancelling the coroutine cancels the call."""
        import asyncio  # a program that has no event loop need not load one

        return await asyncio.wrap_future(self.collective_rpc(method, non_block=True, **options))

    def execute_model(
        self, scheduler_output: Any, non_block: bool = False, kv_output_aggregator: Aggregator | None = None
    ) -> Any:
        """One forward step; the output rank's result."""
        return self._output("execute_model", (scheduler_output,), non_block, kv_output_aggregator)

    def sample_tokens(
        self, grammar_output: Any, non_block: bool = False, kv_output_aggregator: Aggregator | None = None
    ) -> Any:
        """Sample from the last forward step; the output rank's result."""
        return self._output("sample_tokens", (grammar_output,), non_block, kv_output_aggregator)

    def execute_dummy_batch(self) -> None:
        """A step without requests, so that groups that step together stay together."""
        self._output("execute_dummy_batch", (), False, None)

    def take_draft_token_ids(self) -> Any:
        """The draft tokens of the last step, from the output rank."""
        return self._output("take_draft_token_ids", (), False, None)

    def check_health(self, timeout: float | None = 10.0) -> None:
        """A round trip through every worker's loop, within `timeout` seconds. Raises what is wrong."""
        self.collective_rpc("check_health", timeout=timeout)

    def register_failure_callback(self, callback: Callable[[], object]) -> None:
        """Call `callback` once when the executor fails; at once if it has failed."""
        self._kernel.listen(callback)

    @property
    def is_failed(self) -> bool:
        """Whether something failed, beyond one call."""
        return self._kernel.cause is not None

    @property
    def failure(self) -> ExecutorError | None:
        """The first cause, or None."""
        return None if self._kernel.cause is None else self._kernel.cause.fresh()

    @property
    def output_rank(self) -> int:
        """The rank whose result is the model's: the first of the last pipeline stage."""
        return self.config.world_size - self.config.tensor_parallel_size

    @property
    def max_concurrent_batches(self) -> int:
        """How many batches may be in flight: one a pipeline stage."""
        return self.config.pipeline_parallel_size

    @property
    def pids(self) -> dict[int, int]:
        """Process numbers by rank, of the ranks that are not reaped."""
        ranks = self._kernel.ranks
        return {rank: ranks.process(rank).pid for rank in ranks.alive()}

    @property
    def exits(self) -> dict[int, int | None]:
        """Exit statuses by rank, of the ranks that are reaped; negative: a signal."""
        return dict(self._kernel.exits)

    @property
    def survivors(self) -> list[tuple[int, int]]:
        """(rank, pid) of processes that could not be ended within the policy's bounds."""
        return list(self._kernel.survivors)

    def shutdown(self) -> None:
        """Stop every rank, by stages, and wait for the end. From any thread, any number of times."""
        if os.getpid() != self._owner:
            return  # a fork of the host: these are not its children
        self._supervisor.ask_stop()
        if threading.current_thread() is not self._supervisor.thread:
            self._kernel.ended.wait()
            self._supervisor.thread.join()

    def __enter__(self) -> MultiprocExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    # --- helpers ----------------------------------------------------------------------------------------------------

    def _output(
        self, method: str, args: tuple[Any, ...], non_block: bool, aggregator: Aggregator | None
    ) -> Any:
        return self.collective_rpc(
            method,
            timeout=self.config.call_timeout,
            args=args,
            non_block=non_block,
            unique_reply_rank=self.output_rank,
            kv_output_aggregator=aggregator,
        )

    def _checked_rank(self, rank: int | None) -> int | None:
        if rank is not None and not 0 <= rank < self.config.world_size:
            raise ConfigError(f"unique_reply_rank must be from 0 to {self.config.world_size - 1}, not {rank}")
        return rank


def _sendable(method: str | Callable[..., Any], name: str) -> str | bytes:
    if isinstance(method, str):
        return method
    try:
        return bytes(cloudpickle.dumps(method))
    except Exception as error:
        raise PayloadError(
            f"{name!r} cannot be sent ({type(error).__name__}: {error}); nothing was sent"
        ) from error


def _ask_stop(supervisor: Supervisor, owner: int) -> None:
    # A finaliser runs anywhere, under any lock: it may set a flag, and nothing else.
    if os.getpid() == owner:
        supervisor.ask_stop()


def _at_exit() -> None:
    mine = [supervisor for supervisor in _running if supervisor.thread.is_alive()]
    for supervisor in mine:
        supervisor.ask_stop()
    for supervisor in mine:
        supervisor.kernel.ended.wait()


# After multiprocessing's own, so that it runs before: that one would wait for our workers for ever.
atexit.register(_at_exit)
