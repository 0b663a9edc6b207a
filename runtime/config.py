"""What an executor is made from, checked before anything is started."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..protocol.executor import ExecutorProtocol
from ..protocol.worker import WorkerProtocol
from .errors import ConfigError
from .process import StartMethod
from .record import Pause, Recorder


@dataclass(frozen=True)
class ShutdownPolicy:
    """How long each stage of a stop may last, in seconds.

    `grace`: after the control channels are closed; `term`: after SIGTERM; `kill`: after SIGKILL, until a process that
    is still there is reported as a survivor. `grace_after_failure` stands for `grace` when something failed: peers of
    a failed rank tend to be stuck in a collective with it, and the caller waits for the error.
    """

    grace: float = 4.0
    term: float = 4.0
    kill: float = 4.0
    grace_after_failure: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what is not a length of time."""
        for name in ("grace", "term", "kill", "grace_after_failure"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < 1e6:
                raise ConfigError(
                    f"ShutdownPolicy.{name} must be a number of seconds from 0 on, not {value!r}"
                )


@dataclass(frozen=True)
class ExecutorConfig:
    """Configuration of a `MultiprocExecutor`.

    worker_cls: a class, or "module:Class". It is constructed in each process with the keywords `rank`, `local_rank`,
        `is_driver_worker`, `distributed_init_method`, `shared_worker_lock` and `worker_kwargs`, and must have
        `init_device()` and `load_model()`; `check_health()` and `shutdown()` if it likes.
    tensor_parallel_size, pipeline_parallel_size: rank = stage * tensor_parallel_size + place in the stage.
    start_method: "forkserver" (with `preload` imported once, for all), "spawn" or "fork".
    start_timeout: seconds for the whole start; None: no bound.
    call_timeout: seconds for `execute_model` and `sample_tokens`; None: no bound.
    max_inflight_calls: calls that may owe replies at once; the next one waits.
    threads: OpenMP and torch threads of each worker; None: cores / ranks, at least 1.
    spin: seconds for which both sides look for the next message, yielding, before they sleep. It saves the wake-ups
        of calls that follow each other closely; an idle executor costs nothing either way.
    recorder: writes every step of every process; see `procession.runtime.Recorder`.
    pause: called at every step of every process; for tests.
    on_phase: called with (rank, phase, seconds since the start) as each rank's READY phases happen; from a thread.
    executor_protocol, worker_protocol: the tables; other ones are for tests that show what a table does.
    """

    worker_cls: type[Any] | str
    worker_kwargs: Mapping[str, Any] = field(default_factory=dict)
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    start_method: StartMethod = "forkserver"
    preload: tuple[str, ...] = ("torch", "procession.runtime.worker_proc")
    start_timeout: float | None = 300.0
    call_timeout: float | None = 300.0
    max_inflight_calls: int = 64
    shutdown: ShutdownPolicy = field(default_factory=ShutdownPolicy)
    threads: int | None = None
    spin: float = 0.0
    recorder: Recorder | None = None
    pause: Pause | None = None
    on_phase: Callable[[int, str, float], None] | None = None
    executor_protocol: ExecutorProtocol | None = None
    worker_protocol: WorkerProtocol | None = None

    def __post_init__(self) -> None:
        """Check everything that can be checked without starting anything. Raises `ConfigError`."""
        for name in ("tensor_parallel_size", "pipeline_parallel_size", "max_inflight_calls"):
            _check_count(name, getattr(self, name))
        if self.threads is not None:
            _check_count("threads", self.threads)
        if self.start_method not in multiprocessing.get_all_start_methods():
            methods = ", ".join(multiprocessing.get_all_start_methods())
            raise ConfigError(
                f"start_method {self.start_method!r} is none of those of this system: {methods}"
            )
        for name in ("start_timeout", "call_timeout"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise ConfigError(f"{name} must be a number of seconds above 0, or None, not {value!r}")
        for module in self.preload:
            if not _exists(module):  # the fork server itself would pass over it in silence (cpython#141860)
                raise ConfigError(
                    f"preload names {module!r}, and there is no such module on this Python's path"
                )
        _check_worker(self.worker_cls)

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def worker_threads(self) -> int:
        """Threads of each worker."""
        return self.threads or max(1, len(os.sched_getaffinity(0)) // self.world_size)


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{name} must be a whole number from 1 on, not {value!r}")


def _check_worker(worker: object) -> None:
    if isinstance(worker, str):
        module, colon, name = worker.partition(":")
        if not colon or not module or not name.isidentifier():
            raise ConfigError(
                f"worker_cls {worker!r} must be a class or a string like 'package.module:Class'"
            )
        if not _exists(module):
            raise ConfigError(f"worker_cls {worker!r}: there is no module {module!r} on this Python's path")
        return
    check_worker_class(worker)


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def check_worker_class(worker: object) -> None:
    """Raises `ConfigError` unless `worker` is a class with what a worker must have."""
    if not isinstance(worker, type):
        raise ConfigError(f"worker_cls must be a class, not {worker!r}")
    missing = [name for name in ("init_device", "load_model") if not callable(getattr(worker, name, None))]
    if missing:
        raise ConfigError(
            f"{worker.__module__}.{worker.__qualname__} is no worker: it has no {' and no '.join(missing)}"
        )
