"""What does not fit is refused beforehand, with a message that says what would."""

from __future__ import annotations

import dataclasses

import pytest

from procession.runtime.llm.errors import ModelError
from procession.runtime.llm.generate import (
    available_memory,
    check_memory,
    check_prompt,
    generate,
    memory_needed,
)
from procession.runtime.llm.parallel import Layout, check_sizes
from procession.runtime.llm.source import open_model
from procession.runtime.llm.step import Step
from procession.runtime.llm.weights import Hyperparameters

SMOLLM2 = Hyperparameters("SmolLM2", 30, 576, 9, 3, 64, 1536, 49152, 8192, 1e-5, 1e5, 64)
TINY = open_model("tiny").hyperparameters


@pytest.mark.parametrize(
    ("tensor", "pipeline", "message"),
    [
        (2, 1, "TP 2 does not divide 9 heads and 3 key-value heads; TP can be 1 or 3; PP can be 1 to 30"),
        (9, 1, "TP 9 does not divide 9 heads and 3 key-value heads; TP can be 1 or 3; PP can be 1 to 30"),
        (0, 1, "TP 0 is below 1; TP can be 1 or 3; PP can be 1 to 30"),
        (3, 31, "PP 31 does not split 30 layers; TP can be 1 or 3; PP can be 1 to 30"),
        (1, 0, "PP 0 does not split 30 layers; TP can be 1 or 3; PP can be 1 to 30"),
    ],
)
def test_sizes_that_do_not_divide(tensor: int, pipeline: int, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_sizes(SMOLLM2, tensor, pipeline)
    assert str(caught.value) == message


def test_feed_forward_must_divide_too() -> None:
    odd = dataclasses.replace(SMOLLM2, feed_forward=1000)
    with pytest.raises(
        ModelError, match="TP 3 does not divide the feed-forward size 1000; TP can be 1; PP can be"
    ):
        check_sizes(odd, 3, 1)


@pytest.mark.parametrize("sizes", [(SMOLLM2, 1, 1), (SMOLLM2, 3, 30), (TINY, 4, 4), (TINY, 2, 3)])
def test_sizes_that_divide(sizes: tuple[Hyperparameters, int, int]) -> None:
    check_sizes(*sizes)


@pytest.mark.parametrize(("tensor", "pipeline"), [(1, 1), (3, 1), (1, 2), (3, 2), (8, 4), (3, 7)])
def test_layout_covers_everything_once(tensor: int, pipeline: int) -> None:
    layouts = [Layout(rank, tensor, pipeline) for rank in range(tensor * pipeline)]
    output = [rank for rank in layouts if rank.is_last_stage and rank.tensor_rank == 0]
    assert [rank.rank for rank in output] == [layouts[0].output_rank]
    for tensor_rank in range(tensor):
        chain = [layout for layout in layouts if layout.tensor_rank == tensor_rank]
        assert [layer for layout in chain for layer in layout.layers(30)] == list(range(30))
    for count in (258, 9, 2):
        stage = [layout for layout in layouts if layout.is_first_stage]
        assert [thing for layout in stage for thing in layout.share(count)] == list(range(count))


def test_rank_outside_the_layout() -> None:
    with pytest.raises(ModelError, match="rank 6 is not one of 6 ranks"):
        Layout(6, 3, 2)


@pytest.mark.parametrize(
    ("prompt", "new", "message"),
    [
        (
            100,
            29,
            "a prompt of 100 tokens and 29 new ones .* context of 128 tokens; at most 28 new tokens fit",
        ),
        (128, 1, "shorten the prompt"),
        (0, 1, "the prompt is empty"),
        (1, 0, "cannot generate 0 tokens"),
    ],
)
def test_prompts_that_do_not_fit(prompt: int, new: int, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check_prompt([1] * prompt, new, 128)


def test_prompt_is_checked_before_anything_is_sent() -> None:
    class Untouched:
        def execute_model(self, scheduler_output: Step, /) -> None:
            raise AssertionError("a step was sent")

        def sample_tokens(self, grammar_output: object, /) -> None:
            raise AssertionError("a step was sent")

    with pytest.raises(ModelError, match="do not fit"):
        generate(Untouched(), open_model("tiny").tokenizer(), [1] * 10, 10, context=12)


def test_memory_grows_with_ranks_and_dtype() -> None:
    whole = memory_needed(SMOLLM2, 1, 1)
    weights = 4 * (30 * (576 * (576 * 2 + 192 * 2) + 3 * 576 * 1536) + 49152 * 576)
    assert whole > weights
    assert memory_needed(SMOLLM2, 3, 2) > memory_needed(SMOLLM2, 3, 1) > whole
    assert memory_needed(SMOLLM2, 1, 1, "bfloat16") < whole - weights / 3
    assert memory_needed(SMOLLM2, 1, 1, tokens=100) < whole
    assert memory_needed(SMOLLM2, 3, 2, start_method="spawn") > memory_needed(SMOLLM2, 3, 2) + 6 * (100 << 20)


def test_too_little_memory_is_one_message() -> None:
    assert available_memory() > 1 << 20
    check_memory(SMOLLM2, 1, 1, available=1 << 40)
    with pytest.raises(
        ModelError, match=r"TP 3 × PP 30 = 90 ranks of SmolLM2 need about .* GiB .* use fewer ranks"
    ):
        check_memory(SMOLLM2, 3, 30, available=1 << 30)
