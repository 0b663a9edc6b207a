"""vLLM's MultiprocExecutor as a peer, with an empty worker and no model.

It is written against the signatures of 0.11.2 and 0.15.1 (`collective_rpc(method, timeout, args, kwargs, non_block,
unique_reply_rank)`, a worker that gets `vllm_config, local_rank, rank, distributed_init_method, is_driver_worker` and
more). **It has not been run as part of this project's tests**, where vLLM is not installed: if your version differs,
the bench says what it raised and goes on with the other peers.

Its idle workers compute all the time (up to a core each, see docs/performance.md), so they are stopped while others are
measured.
"""

from __future__ import annotations

import importlib
import multiprocessing
from collections import deque
from typing import Any

from ..peer import Reply, Request
from .work import answer, begin


class EmptyWorker:
    """What vLLM constructs in each process."""

    def __init__(self, *, rank: int = 0, **_: object) -> None:
        self.rank = rank

    def init_device(self) -> None:
        """Bound the life of the process."""
        begin()

    def load_model(self, **_: object) -> None:
        """There is none."""

    def check_health(self) -> None:
        """It is well."""

    def shutdown(self) -> None:
        """Nothing to do."""

    def work(self, reply: str, payload: Any, busy: float) -> Any:
        """One call."""
        return answer(self.rank, Request(reply, payload, busy))


class Vllm:
    """`vllm.v1.executor.multiproc_executor.MultiprocExecutor`."""

    def __init__(self) -> None:
        self._executor: Any = None
        self._pids: list[int] = []
        self._sent: deque[tuple[Any, bool]] = deque()

    @property
    def pids(self) -> list[int]:
        """Of every worker."""
        return self._pids

    def start(self, ranks: int) -> None:
        """Returns when every rank is ready."""
        config: Any = importlib.import_module("vllm.config")
        module: Any = importlib.import_module("vllm.v1.executor.multiproc_executor")
        before = {each.pid for each in multiprocessing.active_children()}
        parallel = config.ParallelConfig(
            tensor_parallel_size=ranks,
            distributed_executor_backend="mp",
            worker_cls=f"{EmptyWorker.__module__}.{EmptyWorker.__qualname__}",
        )
        self._executor = module.MultiprocExecutor(config.VllmConfig(parallel_config=parallel))
        new = (each.pid for each in multiprocessing.active_children() if each.pid not in before)
        self._pids = sorted(pid for pid in new if pid is not None)

    def call(self, request: Request, timeout: float) -> list[Any]:
        """Blocking."""
        return _answers(self._rpc(request, timeout, non_block=False), request.reply == Reply.ONE)

    def submit(self, request: Request) -> None:
        """Not blocking: its FutureWrapper."""
        self._sent.append((self._rpc(request, None, non_block=True), request.reply == Reply.ONE))

    def collect(self, timeout: float) -> list[Any]:  # noqa: ARG002 - result(timeout) is not implemented there
        """The oldest future's result."""
        future, one = self._sent.popleft()
        return _answers(future.result(), one)

    def _rpc(self, request: Request, timeout: float | None, non_block: bool) -> Any:
        return self._executor.collective_rpc(
            "work",
            timeout=timeout,
            args=(request.reply, request.payload, request.busy),
            non_block=non_block,
            unique_reply_rank=0 if request.reply == Reply.ONE else None,
        )

    def stop(self) -> None:
        """Shut it down."""
        executor, self._executor = self._executor, None
        self._sent.clear()
        if executor is not None:
            executor.shutdown()


def _answers(found: Any, one: bool) -> list[Any]:
    # One reply rank: a list of one in some versions, the bare result in others.
    return found if isinstance(found, list) and (not one or len(found) == 1) else [found]
