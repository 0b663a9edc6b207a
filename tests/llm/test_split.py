"""However the model is split over ranks, it computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest
import torch

from procession.runtime import MultiprocExecutor
from procession.runtime.llm.generate import Executor, generate
from procession.runtime.llm.source import open_model
from procession.runtime.llm.step import SequenceStep, Step

Split = Callable[..., AbstractContextManager[MultiprocExecutor]]
PROMPTS = [
    "What is the capital of France?",
    "Write a sentence about the sea.",
    "Why is the sky blue?",
    "List three fruits.",
    "Translate 'good morning' into Spanish.",
]


def first_step(prompts: Sequence[Sequence[int]]) -> Step:
    return Step(tuple(SequenceStep(i, tuple(prompt), 0) for i, prompt in enumerate(prompts)))


def greedy(executor: Executor, prompts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """`count` tokens for each prompt, all prompts in one batch."""
    step = first_step(prompts)
    told: list[list[int]] = [[] for _ in prompts]
    for _ in range(count):
        executor.execute_model(step)
        for i, token in executor.sample_tokens(None).items():
            told[i].append(token)
        step = Step(
            tuple(
                SequenceStep(i, (told[i][-1],), len(prompt) + len(told[i]) - 1)
                for i, prompt in enumerate(prompts)
            )
        )
    return told


def logits_of(ranks: MultiprocExecutor, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
    ranks.execute_model(first_step(prompts))
    logits = ranks.collective_rpc("logits", unique_reply_rank=ranks.output_rank)
    assert isinstance(logits, torch.Tensor)
    return logits


def assert_close(ours: torch.Tensor, whole: torch.Tensor, relative: float) -> None:
    assert ours.shape == whole.shape
    assert float((ours - whole).abs().max() / whole.abs().max()) < relative


def test_tiny_is_the_same_in_every_split(split: Split) -> None:
    tokenizer = open_model("tiny").tokenizer()
    prompts = [tokenizer.prompt(text) for text in PROMPTS]
    with split("tiny") as ranks:
        whole = logits_of(ranks, prompts)
        tokens = greedy(ranks, prompts, 30)
    assert len({tuple(told) for told in tokens}) == len(prompts), "the model says the same to everything"
    for tensor, pipeline in [(2, 1), (4, 1), (1, 2), (2, 2), (4, 2), (1, 3)]:
        with split("tiny", tensor, pipeline) as ranks:
            assert_close(logits_of(ranks, prompts), whole, 1e-5)
            assert greedy(ranks, prompts, 30) == tokens, f"TP {tensor} × PP {pipeline}"


def test_tiny_bfloat16_stays_near_float32(split: Split) -> None:
    tokenizer = open_model("tiny").tokenizer()
    prompts = [tokenizer.prompt(text) for text in PROMPTS]
    with split("tiny") as ranks:
        whole = logits_of(ranks, prompts)
    for tensor, pipeline in [(1, 1), (2, 2)]:
        with split("tiny", tensor, pipeline, "bfloat16") as ranks:
            assert_close(logits_of(ranks, prompts), whole, 0.05)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)  # four models on two cores that other tests may keep busy
def test_smollm2_is_the_same_in_every_split(split: Split) -> None:
    model = open_model("smollm2")
    tokenizer = model.tokenizer()
    prompts = [tokenizer.prompt(text) for text in PROMPTS]
    with split("smollm2") as ranks:
        whole = logits_of(ranks, prompts)
        tokens = greedy(ranks, prompts, 12)
        context = model.hyperparameters.context
        answer = list(generate(ranks, tokenizer, prompts[0], 12, context=context))
    assert tokenizer.decode(answer) == "The capital of France is Paris."
    assert tokens[0][: len(answer)] == answer
    for tensor, pipeline in [(3, 1), (1, 2), (3, 2)]:
        with split("smollm2", tensor, pipeline) as ranks:
            assert_close(logits_of(ranks, prompts), whole, 1e-5)
            assert greedy(ranks, prompts, 12) == tokens, f"TP {tensor} × PP {pipeline}"
