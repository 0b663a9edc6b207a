"""Our executor as a peer, through its public methods alone."""

from __future__ import annotations

from collections import deque
from typing import Any

from ...runtime import ExecutorConfig, MultiprocExecutor, Recorder
from ..peer import Payload, Reply, Request
from .work import answer, begin

PRELOAD = ("numpy", "procession.runtime.worker_proc", "procession.bench.peers.ours")


class Worker:
    """Answers as every peer's worker does."""

    def __init__(self, *, rank: int, **_: object) -> None:
        self.rank = rank

    def init_device(self) -> None:
        """Bound the life of the process."""
        begin()

    def load_model(self) -> None:
        """There is none."""

    def work(self, reply: str, payload: Payload | None, busy: float) -> Any:
        """One call."""
        return answer(self.rank, Request(reply, payload, busy))


class Ours:
    """`MultiprocExecutor`; `spin` in seconds."""

    def __init__(self, spin: float = 0.0, recording: bool = False) -> None:
        self._spin = spin
        self._recording = recording
        self._executor: MultiprocExecutor | None = None
        self._pids: list[int] = []
        self._sent: deque[tuple[Any, bool]] = deque()

    @property
    def pids(self) -> list[int]:
        """Of every rank, in rank order."""
        return self._pids

    def start(self, ranks: int) -> None:
        """Returns when every rank is ready."""
        self._executor = MultiprocExecutor(
            ExecutorConfig(
                Worker,
                tensor_parallel_size=ranks,
                preload=PRELOAD,
                spin=self._spin,
                recorder=Recorder() if self._recording else None,
            )
        )
        self._pids = [pid for _, pid in sorted(self._executor.pids.items())]

    def call(self, request: Request, timeout: float) -> list[Any]:
        """The blocking path, which makes no future."""
        assert self._executor is not None
        rank = 0 if request.reply == Reply.ONE else None
        found = self._executor.collective_rpc("work", timeout, tuple(request), unique_reply_rank=rank)
        return [found] if rank == 0 else list(found)

    def submit(self, request: Request) -> None:
        """Makes a future."""
        assert self._executor is not None
        one = request.reply == Reply.ONE
        future = self._executor.collective_rpc(
            "work", args=tuple(request), non_block=True, unique_reply_rank=0 if one else None
        )
        self._sent.append((future, one))

    def collect(self, timeout: float) -> list[Any]:
        """The oldest future's result."""
        future, one = self._sent.popleft()
        found = future.result(timeout)
        return [found] if one else list(found)

    def stop(self) -> None:
        """Shut it down."""
        self._sent.clear()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
