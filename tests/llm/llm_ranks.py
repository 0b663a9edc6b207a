"""Worker ranks for tests: plain processes, each with a pipe, every wait with a deadline.

`Ranks` has the two calls that `generate` wants of an executor, so an executor can take its place. It is a module of
its own, not part of conftest, because the processes import what they run by its name.
"""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from procession.runtime.llm.step import Step
from procession.runtime.llm.worker import LlamaWorker

TIMEOUT = 60.0


def serve(pipe: Connection, keywords: dict[str, Any]) -> None:
    """The process: constructs the worker, then answers calls by name until told to stop."""
    worker = LlamaWorker(**keywords)
    while True:
        method, arguments = pipe.recv()
        try:
            answer = (True, getattr(worker, method)(*arguments))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test's process shall see it
            answer = (False, error)
        if isinstance(answer[1], torch.Tensor):
            answer = (True, answer[1].numpy())  # by value, not through torch's shared memory
        pipe.send(answer)
        if method == "shutdown":
            return


class Ranks:
    """Started, loaded workers; `with` stops them."""

    def __init__(
        self,
        folder: Path,
        model: str,
        tensor: int = 1,
        pipeline: int = 1,
        dtype: str = "float32",
        **more: Any,
    ) -> None:
        context = mp.get_context("forkserver")
        context.set_forkserver_preload(["torch", "procession.runtime.llm.worker"])
        self.output_rank = tensor * (pipeline - 1)
        self.processes: list[mp.process.BaseProcess] = []
        self._pipes: list[Connection] = []
        for rank in range(tensor * pipeline):
            ours, theirs = context.Pipe()
            keywords = {
                "rank": rank,
                "local_rank": rank,
                "is_driver_worker": rank % tensor == 0,
                "distributed_init_method": f"file://{folder}/rendezvous-{tensor}-{pipeline}-{dtype}",
                "shared_worker_lock": None,
                "model": model,
                "tensor_parallel_size": tensor,
                "pipeline_parallel_size": pipeline,
                "dtype": dtype,
                **more,
            }
            process = context.Process(target=serve, args=(theirs, keywords), daemon=True)
            process.start()
            theirs.close()
            self.processes.append(process)
            self._pipes.append(ours)
        try:
            self.call("init_device")
            self.call("load_model")
        except BaseException:
            self.close()
            raise

    def send(self, rank: int, method: str, *arguments: Any) -> None:
        self._pipes[rank].send((method, arguments))

    def answer(self, rank: int, timeout: float = TIMEOUT) -> Any:
        """The rank's oldest answer that was not taken yet; raises what the worker raised, or TimeoutError."""
        if not self._pipes[rank].poll(timeout):
            raise TimeoutError(f"rank {rank} does not answer")
        good, value = self._pipes[rank].recv()
        if not good:
            raise value
        return value

    def call(self, method: str, *arguments: Any, timeout: float = TIMEOUT) -> list[Any]:
        """The answers of all ranks. Takes them all before it raises the first failure."""
        for rank in range(len(self._pipes)):
            self.send(rank, method, *arguments)
        deadline = time.monotonic() + timeout
        answers: list[Any] = []
        failure: BaseException | None = None
        for rank in range(len(self._pipes)):
            try:
                answers.append(self.answer(rank, max(0.0, deadline - time.monotonic())))
            except Exception as error:  # noqa: BLE001 - raised again below
                failure = failure or error
        if failure:
            raise failure
        return answers

    def execute_model(self, scheduler_output: Step, /) -> Any:
        return self.call("execute_model", scheduler_output)[self.output_rank]

    def sample_tokens(self, grammar_output: Mapping[int, Sequence[int]] | None, /) -> Any:
        return self.call("sample_tokens", grammar_output)[self.output_rank]

    def logits(self) -> torch.Tensor:
        return torch.from_numpy(self.call("logits")[self.output_rank])

    def close(self) -> None:
        for pipe, process in zip(self._pipes, self.processes, strict=True):
            if process.is_alive():
                pipe.send(("shutdown", ()))
        deadline = time.monotonic() + 5
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
