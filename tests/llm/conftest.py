"""A model split over an executor's ranks, whose recorded run is held to the protocol when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from procession.runtime import ExecutorConfig, MultiprocExecutor, Recorder
from procession.specs.trace import validate

Split = Callable[..., AbstractContextManager[MultiprocExecutor]]


@pytest.fixture
def split() -> Split:
    """`with split(model, tensor, pipeline, dtype) as executor`."""

    @contextmanager
    def run(
        model: str, tensor: int = 1, pipeline: int = 1, dtype: str = "float32", validated: bool = True
    ) -> Iterator[MultiprocExecutor]:
        recorder = Recorder()
        config = ExecutorConfig(
            "procession.runtime.llm.worker:LlamaWorker",
            worker_kwargs={
                "model": model,
                "tensor_parallel_size": tensor,
                "pipeline_parallel_size": pipeline,
                "dtype": dtype,
            },
            tensor_parallel_size=tensor,
            pipeline_parallel_size=pipeline,
            preload=("torch", "procession.runtime.worker_proc", "procession.runtime.llm.worker"),
            start_timeout=120.0,
            call_timeout=60.0,
            recorder=recorder,
        )
        with MultiprocExecutor(config) as executor:
            yield executor
        if validated:
            verdict = validate(recorder.lines())
            assert verdict.accepted, str(verdict)

    return run
