"""The worker's life: what it refuses, what it samples, and that it ends without its peers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from procession.runtime import MultiprocExecutor, StartError, WorkerDiedError, WorkerError
from procession.runtime.llm.errors import ModelError
from procession.runtime.llm.generate import generate, generate_text
from procession.runtime.llm.source import open_model
from procession.runtime.llm.step import SequenceStep, Step
from procession.runtime.llm.worker import LlamaWorker

Split = Callable[..., AbstractContextManager[MultiprocExecutor]]


def worker(**changes: Any) -> LlamaWorker:
    keywords: dict[str, Any] = {
        "rank": 0,
        "local_rank": 0,
        "is_driver_worker": True,
        "distributed_init_method": None,
        "shared_worker_lock": None,
        "model": "tiny",
        # As the test process has it: a test should not change that for the others.
        "threads": torch.get_num_threads(),
    }
    return LlamaWorker(**(keywords | changes))


def loaded(**changes: Any) -> LlamaWorker:
    made = worker(**changes)
    made.init_device()
    made.load_model()
    return made


def prompt(*tokens: int, number: int = 0) -> SequenceStep:
    return SequenceStep(number, tokens, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float16"}, "dtype 'float16' is not known; it can be float32 or bfloat16"),
        ({"threads": 0}, "cannot run on 0 threads"),
        ({"rank": 2, "tensor_parallel_size": 2}, "rank 2 is not one of 2 ranks"),
        ({"model": "/no/such/file"}, "no such file"),
        ({"max_model_len": 1000}, "context is 1 to 512 tokens"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_a_worker_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        loaded(**changes)


def test_calls_out_of_order() -> None:
    made = worker()
    with pytest.raises(RuntimeError, match="load_model before init_device"):
        made.load_model()
    made.init_device()
    for call in (made.check_health, lambda: made.execute_model(Step(()))):
        with pytest.raises(RuntimeError, match="no model"):
            call()
    made.load_model()
    made.check_health()
    made.shutdown()
    made.shutdown()
    with pytest.raises(RuntimeError, match="shutdown was"):
        made.check_health()


def test_sampling_is_greedy_and_follows_a_grammar() -> None:
    made = loaded()
    made.execute_model(Step((prompt(1, 2, number=4), prompt(3, number=9))))
    logits = made.logits()
    assert logits is not None
    assert logits.dtype == torch.float32
    assert logits.shape == (2, 258)
    best = made.sample_tokens()
    assert best == {4: int(logits[0].argmax()), 9: int(logits[1].argmax())}
    assert made.sample_tokens({9: [7, 5]}) == {4: best[4], 9: 7 if logits[1, 7] > logits[1, 5] else 5}
    with pytest.raises(ValueError, match="no token is allowed next in sequence 9"):
        made.sample_tokens({9: []})


def test_equal_logits_give_the_lowest_token() -> None:
    made = loaded()
    made.execute_model(Step((prompt(1),)))
    made._logits = torch.tensor([[0.0, 2.0, 1.0, 2.0]])
    assert made.sample_tokens() == {0: 1}


def test_empty_steps_sample_nothing() -> None:
    made = loaded()
    made.execute_model(Step((prompt(1),)))
    made.execute_model(Step((), finished=(0,)))
    assert made.sample_tokens() == {}


def test_refused_step_keeps_the_last_result() -> None:
    made = loaded()
    made.execute_model(Step((prompt(1),)))
    before = made.sample_tokens()
    with pytest.raises(ValueError, match="no new tokens"):
        made.execute_model(Step((prompt(),)))
    assert made.sample_tokens() == before


def test_generate_stops_where_the_text_ends() -> None:
    tokenizer = open_model("tiny").tokenizer()

    class Scripted:
        """Says "hé", then that the text ends; remembers the steps."""

        def __init__(self) -> None:
            self.script = [*"hé".encode(), 257, 65]
            self.steps: list[Step] = []

        def execute_model(self, scheduler_output: Step, /) -> None:
            self.steps.append(scheduler_output)

        def sample_tokens(self, grammar_output: object, /) -> dict[int, int]:
            return {3: self.script.pop(0)}

    scripted = Scripted()
    assert list(generate(scripted, tokenizer, [256, 1], 10, context=20, sequence=3)) == list("hé".encode())
    fed = [(s.sequences[0].tokens, s.sequences[0].position) for s in scripted.steps]
    assert fed == [((256, 1), 0), ((104,), 2), ((195,), 3), ((169,), 4)]
    assert list(generate_text(Scripted(), tokenizer, [1], 10, context=20, sequence=3)) == ["h", "é"]
    assert list(generate_text(Scripted(), tokenizer, [1], 2, context=20, sequence=3)) == ["h", "\ufffd"]


def test_ranks_that_have_no_output_answer_none(split: Split) -> None:
    with split("tiny", 2, 2) as ranks:
        assert ranks.output_rank == 2
        assert ranks.collective_rpc("execute_model", args=(Step((prompt(1, 2),)),)) == [None] * 4
        answers = ranks.collective_rpc("sample_tokens")
        assert [rank for rank, answer in enumerate(answers) if answer is not None] == [2]
        # A refused step leaves all ranks as they were, and the next one works.
        with pytest.raises(WorkerError, match="no new tokens"):
            ranks.execute_model(Step((prompt(),)))
        ranks.execute_model(Step((SequenceStep(0, (5,), 2),)))


def test_sizes_are_refused_by_every_rank(split: Split) -> None:
    with pytest.raises(StartError, match="TP can be 1, 2 or 4"), split("tiny", 3, 1):
        pass


def test_a_dead_peer_is_an_error_at_once_and_stopping_needs_no_peer(split: Split) -> None:
    with split("tiny", 2, 2) as ranks:
        ranks.execute_model(Step((prompt(1, 2),)))
        noticed = threading.Event()
        ranks.register_failure_callback(noticed.set)
        os.kill(ranks.pids[3], signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(
            (WorkerDiedError, WorkerError)
        ):  # the peer's rank, or the executor, whoever is first
            ranks.execute_model(Step((SequenceStep(0, (5,), 2),)))
        assert noticed.wait(20)  # a death that a stop is faster than is an end like any other
        ranks.shutdown()
        assert time.monotonic() - began < 10
        assert ranks.is_failed
        assert ranks.exits[3] == -signal.SIGKILL
        assert ranks.survivors == []
