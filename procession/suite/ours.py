"""The adapter of our own `MultiprocExecutor`. It lacks nothing."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..runtime import (
    CallTimeoutError,
    ExecutorClosedError,
    ExecutorConfig,
    MultiprocExecutor,
    PayloadError,
    Recorder,
    ShutdownPolicy,
    StartError,
    WorkerDiedError,
    WorkerError,
)
from ..runtime.fork_server import warm
from ..runtime.leftovers import left_behind, snapshot
from ..specs.stateful.adapter import BRIEF, Ask, Can, Deed, Kind, Outcome, Plan
from ..specs.stateful.op import eventually
from ..specs.stateful.work import merge, payload
from .hand import STACKS, Hand
from .hold import Holder, Holds

PRELOAD = ("procession.runtime.worker_proc", "procession.suite.hand")
_HURRIED = ShutdownPolicy(grace=0.2, term=0.1, kill=20.0, grace_after_failure=0.05)
_PATIENT = ShutdownPolicy(grace=60.0, term=0.1, kill=20.0, grace_after_failure=0.05)
_START = 60.0  # seconds; a start that takes longer hangs


class _Merging:
    """An aggregator as the reference system's."""

    def aggregate(self, outputs: list[Any], output_rank: int = 0) -> Any:  # noqa: ARG002 - its signature
        """All of them."""
        return merge(outputs)


class Ours:
    """`MultiprocExecutor`, driven."""

    name = "procession"
    lacks: frozenset[Can] = frozenset()
    methods: tuple[str, ...] = ("forkserver", "fork")

    def __init__(self) -> None:
        warm(PRELOAD)
        gc.collect()  # what an earlier program left to the collector is not this one's
        self._before = snapshot()
        self._executor: MultiprocExecutor | None = None
        self._recorder = Recorder()
        self._holds = Holds("")
        self._holder: Holder | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pidfds: dict[int, int] = {}

    # --- start and calls --------------------------------------------------------------------------------------------

    def start(self, plan: Plan) -> None:
        """Start one. Raises `StartError`."""
        self._close()
        self._executor = None
        self._folder = tempfile.TemporaryDirectory(prefix="procession-suite-")
        self._holds = Holds(self._folder.name)
        holder = Holder(self._folder.name, plan.ranks)
        self._recorder = Recorder()
        if plan.hold is not None:
            holder.arm(*plan.hold, call=0)
        self._holder = holder
        self._executor = MultiprocExecutor(
            ExecutorConfig(
                Hand,
                {"folder": self._folder.name, "flaw": plan.flaw},
                tensor_parallel_size=plan.ranks,
                start_method=plan.method,  # type: ignore[arg-type]  # checked by the configuration
                preload=PRELOAD,
                threads=1,
                start_timeout=_START,
                max_inflight_calls=plan.room,
                shutdown=_PATIENT if plan.patient else _HURRIED,
                recorder=self._recorder,
                pause=self._holds,
            )
        )
        for rank, pid in self._executor.pids.items():
            with contextlib.suppress(OSError):
                self._keep(rank, pid)

    def _keep(self, rank: int, pid: int) -> None:
        if rank not in self._pidfds:
            self._pidfds[rank] = os.pidfd_open(pid)

    @property
    def executor(self) -> MultiprocExecutor:
        """The one that was started last."""
        assert self._executor is not None
        return self._executor

    def _options(self, ask: Ask) -> dict[str, Any]:
        data: object = threading.Lock() if ask.deed is Deed.ARGUMENT else payload(ask)
        return {
            "args": (ask, data),
            "timeout": BRIEF if ask.brief else None,
            "unique_reply_rank": None if ask.merged else ask.reply,
            "kv_output_aggregator": _Merging() if ask.merged else None,
        }

    def call(self, ask: Ask) -> Any:
        """A blocking call."""
        return self.executor.collective_rpc("perform", **self._options(ask))

    def future(self, ask: Ask) -> concurrent.futures.Future[Any]:
        """The same, not blocking."""
        future: concurrent.futures.Future[Any] = self.executor.collective_rpc(
            "perform", non_block=True, **self._options(ask)
        )
        return future

    def sent(self) -> int:
        """Counted at the step of each submission."""
        return self._holds.sent

    def stop(self) -> None:
        """Shut down."""
        if self._executor is not None:
            self._executor.shutdown()

    def outcome(self, error: BaseException) -> Outcome:
        """Our errors in the suite's words."""
        if isinstance(error, StartError) and error.__cause__ is not None:
            return self.outcome(error.__cause__)
        if isinstance(error, WorkerDiedError):
            return Outcome(Kind.DIED, error.rank)
        if isinstance(error, WorkerError):
            return Outcome(Kind.RAISED, error.rank)
        for kind, word in (
            (CallTimeoutError, Kind.TIMED_OUT),
            (concurrent.futures.CancelledError, Kind.CANCELLED),
            (ExecutorClosedError, Kind.CLOSED),
            (PayloadError, Kind.PAYLOAD),
        ):
            if isinstance(error, kind):
                return Outcome(word)
        return Outcome(Kind.OTHER)

    # --- signals and holds ------------------------------------------------------------------------------------------

    def kill(self, rank: int) -> None:
        """SIGKILL."""
        self._signal(rank, signal.SIGKILL)

    def pause(self, rank: int) -> None:
        """SIGSTOP."""
        self._signal(rank, signal.SIGSTOP)

    def resume(self, rank: int) -> None:
        """SIGCONT."""
        self._signal(rank, signal.SIGCONT)

    def _signal(self, rank: int, number: signal.Signals) -> None:
        if rank in self._pidfds:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfds[rank], number)

    def hold(self, rank: int, point: str, call: int) -> None:
        """Hold a rank."""
        assert self._holder is not None
        self._holder.arm(rank, point, call)

    def held(self, rank: int, seconds: float) -> bool:
        """Whether it is there. A rank that is held in its start can be killed from here on."""
        eventually(lambda: self._holder, seconds)  # a start has begun, in another thread
        assert self._holder is not None
        pid = self._holder.held(rank, seconds)
        if pid:
            self._keep(rank, pid)
        return pid > 0

    def release(self, rank: int) -> None:
        """Let it go."""
        assert self._holder is not None
        self._holder.release(rank)

    # --- failure and end --------------------------------------------------------------------------------------------

    def listen(self, callback: Callable[[], object]) -> None:
        """Register a failure callback."""
        self.executor.register_failure_callback(callback)

    def failed(self) -> bool:
        """Whether it failed."""
        return self._executor is not None and self._executor.is_failed

    def exits(self) -> dict[int, int | None]:
        """Exit statuses by rank."""
        return {} if self._executor is None else self._executor.exits

    def orphan(self, ranks: int, method: str, seconds: float) -> list[str]:
        """A program with an executor is killed."""
        command = [sys.executable, "-m", "procession.suite.host", str(ranks), method]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as host:
            assert host.stdout is not None
            pids: dict[str, int] = json.loads(host.stdout.readline() or "{}")
            pidfds = {}
            for name, pid in pids.items():
                with contextlib.suppress(OSError):
                    pidfds[name] = os.pidfd_open(pid)
            host.kill()
            host.wait()
        if len(pids) < ranks:
            return ["the program did not start"]
        left = []
        for name, pidfd in pidfds.items():
            if not eventually(lambda pidfd=pidfd: _ended(pidfd), seconds):  # type: ignore[misc]  # mypy takes a default for a parameter without a type
                left.append(f"{name} lives on, {seconds} s after its executor's process was killed")
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        return left

    # --- reports ----------------------------------------------------------------------------------------------------

    def states(self) -> list[str]:
        """Every machine of the executor's side."""
        if self._executor is None:
            return []
        state = self._executor._kernel.state
        found = [f"life: {state.life[0].name}"]
        for name in ("start", "broadcast", "replies", "stop"):
            found.append(f"{name}: {' '.join(one.name for one in getattr(state, name))}")
        found += [f"call {call.call}: {' '.join(one.name for one in owed)}" for call, owed in state.calls]
        return found

    def stacks(self) -> list[str]:
        """Of every rank that lives and is not stopped."""
        if self._folder is None:
            return []
        found: list[str] = []
        for rank in self._pidfds:
            self._signal(rank, STACKS)
            path = Path(self._folder.name, f"{rank}.stacks")
            eventually(lambda path=path: path.exists() and path.stat().st_size, 1.0)  # type: ignore[misc]  # as above
            if path.exists():
                found += [f"rank {rank}:", *(f"  {line}" for line in path.read_text().splitlines())]
        return found

    def trace(self) -> list[str]:
        """What the last one recorded."""
        return self._recorder.lines()

    def leftovers(self) -> list[str]:
        """What there is and was not at first. Whatever was started is down by now."""
        self._close()
        self._executor = None
        gc.collect()
        return left_behind(self._before)

    def _close(self) -> None:
        for pidfd in self._pidfds.values():
            os.close(pidfd)
        self._pidfds.clear()
        holder, self._holder = self._holder, None
        if holder is not None:
            holder.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def clear(self) -> None:
        """Kill every rank; give the executor a moment to see it."""
        for rank in self._pidfds:
            self._signal(rank, signal.SIGKILL)
        if self._executor is not None:
            end = threading.Thread(target=self._executor.shutdown, name="suite: clear", daemon=True)
            end.start()
            end.join(5.0)
        self._close()


def _ended(pidfd: int) -> bool:
    """Whether the process has ended: its pidfd is readable then."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
