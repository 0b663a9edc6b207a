"""The model computes Llama: held to a slow, plain float64 version, and to itself however a sequence is fed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from procession.runtime.llm.llama import Llama
from procession.runtime.llm.parallel import Groups, Layout
from procession.runtime.llm.source import open_model
from procession.runtime.llm.step import SequenceStep, Step
from procession.runtime.llm.tiny import TinyModel
from procession.runtime.llm.weights import Weights
from tests.llm import gguf_files

Matrix = NDArray[np.float64]


def plain(weights: Weights, tokens: list[int], factors: Matrix | None = None) -> Matrix:
    """Logits [tokens, vocabulary], one head, one position, one pair of features at a time."""
    sizes = weights.hyperparameters

    def tensor(name: str) -> Matrix:
        return weights.read(name).astype(np.float64)

    def norm(x: Matrix, name: str) -> Matrix:
        scale: Matrix = np.sqrt((x**2).mean(axis=1, keepdims=True) + sizes.rms_epsilon)
        return x / scale * tensor(name)

    def rope(x: Matrix) -> Matrix:
        turned = x.copy()
        for position in range(len(x)):
            for pair in range(sizes.rope_dimensions // 2):
                frequency = sizes.rope_base ** (-2 * pair / sizes.rope_dimensions)
                if factors is not None:
                    frequency /= factors[pair]
                angle = position / sizes.rope_scale * frequency
                a, b = x[position, 2 * pair], x[position, 2 * pair + 1]
                turned[position, 2 * pair] = a * np.cos(angle) - b * np.sin(angle)
                turned[position, 2 * pair + 1] = a * np.sin(angle) + b * np.cos(angle)
        return turned

    x = tensor("token_embd.weight")[tokens]
    for layer in range(sizes.layers):
        prefix = f"blk.{layer}."
        h = norm(x, prefix + "attn_norm.weight")
        q, k, v = (h @ tensor(f"{prefix}attn_{part}.weight").T for part in "qkv")
        mixed = np.zeros_like(q)
        for head in range(sizes.heads):
            own = slice(head * sizes.head_dim, (head + 1) * sizes.head_dim)
            shared = head // (sizes.heads // sizes.kv_heads)
            key = slice(shared * sizes.head_dim, (shared + 1) * sizes.head_dim)
            scores = rope(q[:, own]) @ rope(k[:, key]).T / np.sqrt(sizes.head_dim)
            scores[np.triu_indices(len(tokens), 1)] = -np.inf
            weight = np.exp(scores - scores.max(axis=1, keepdims=True))
            mixed[:, own] = weight / weight.sum(axis=1, keepdims=True) @ v[:, key]
        x = x + mixed @ tensor(prefix + "attn_output.weight").T
        h = norm(x, prefix + "ffn_norm.weight")
        gate = h @ tensor(prefix + "ffn_gate.weight").T
        up = h @ tensor(prefix + "ffn_up.weight").T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ tensor(prefix + "ffn_down.weight").T
    name = "output.weight" if weights.has("output.weight") else "token_embd.weight"
    result: Matrix = norm(x, "output_norm.weight") @ tensor(name).T
    return result


def single(weights: Weights, length: int = 128) -> Llama:
    return Llama(weights, Groups(Layout(0, 1, 1)), torch.float32, length)


def run(model: Llama, *sequences: SequenceStep, finished: tuple[int, ...] = ()) -> torch.Tensor:
    step = Step(sequences, finished)
    model.check(step)
    logits = model.forward(step)
    assert logits is not None
    return logits


def prompt(tokens: list[int], number: int = 0) -> SequenceStep:
    return SequenceStep(number, tuple(tokens), 0)


TOKENS = np.random.default_rng(1).integers(0, 256, 20).tolist()


def assert_equal(ours: torch.Tensor, right: torch.Tensor | Matrix) -> None:
    np.testing.assert_allclose(ours.numpy(), np.asarray(right), atol=2e-5, rtol=2e-5)


def test_logits_are_those_of_the_plain_version() -> None:
    weights = TinyModel()
    assert_equal(run(single(weights), prompt(TOKENS))[0], plain(weights, TOKENS)[-1])


@pytest.mark.parametrize(
    ("more", "tied", "factors"),
    [
        ({}, False, False),
        ({"rope.dimension_count": 4}, True, False),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, False, False),
        ({"rope.freq_base": 500000.0}, False, True),
    ],
)
def test_models_from_files_are_those_of_the_plain_version(
    tmp_path: Path, more: dict[str, int | float | str], tied: bool, factors: bool
) -> None:
    tiny = TinyModel(3)
    names = [name for name in tiny._shapes if not (tied and name == "output.weight")]
    values = {name: gguf_files.flat(tiny.read(name)) for name in names}
    wanted = None
    if factors:
        wanted = np.array([1.0, 2.0, 4.0, 8.0])
        values["rope_freqs.weight"] = wanted.astype(np.float32)
    path = gguf_files.write(tmp_path / "m.gguf", values, gguf_files.sizes_of(tiny) | more)
    weights = open_model(path)
    assert_equal(run(single(weights), prompt(TOKENS))[0], plain(weights, TOKENS, wanted)[-1])


def test_token_by_token_equals_all_at_once() -> None:
    model = single(TinyModel())
    whole = [run(model, prompt(TOKENS[: i + 1]))[0] for i in range(len(TOKENS))]
    for i, token in enumerate(TOKENS):
        assert_equal(run(model, SequenceStep(7, (token,), i))[0], whole[i])


@pytest.mark.parametrize("chunk", [2, 3, 7, 19])
def test_chunked_prompt_equals_whole_prompt(chunk: int) -> None:
    model = single(TinyModel())
    whole = run(model, prompt(TOKENS))
    for start in range(0, len(TOKENS), chunk):
        part = SequenceStep(1, tuple(TOKENS[start : start + chunk]), start, start + chunk >= len(TOKENS))
        step = Step((part,))
        model.check(step)
        logits = model.forward(step)
        assert (logits is None) == (not part.sample)
    assert logits is not None
    assert_equal(logits, whole)


def test_sequences_of_one_step_do_not_see_each_other() -> None:
    model = single(TinyModel())
    others = [TOKENS[::-1], TOKENS[3:5], [TOKENS[0]]]
    alone = [run(model, prompt(tokens))[0] for tokens in [TOKENS, *others]]
    together = run(model, *(prompt(tokens, i) for i, tokens in enumerate([TOKENS, *others])))
    assert_equal(together, torch.stack(alone))
    # A prompt, a chunk and a decoded token side by side; the middle one is not sampled.
    mixed = run(
        model,
        prompt(others[0], 9),
        SequenceStep(1, tuple(TOKENS[:4]), 3, sample=False),
        SequenceStep(0, (5,), len(TOKENS)),
    )
    assert_equal(mixed, torch.stack([alone[1], run(model, prompt([*TOKENS, 5], 8))[0]]))


def test_a_lower_position_rolls_back() -> None:
    model = single(TinyModel())
    right = run(model, prompt([*TOKENS[:10], 1, 2]))
    run(model, prompt(TOKENS))
    assert_equal(run(model, SequenceStep(0, (1, 2), 10)), right)


def test_a_number_can_be_used_again() -> None:
    model = single(TinyModel())
    right = run(model, prompt(TOKENS[:5]))
    run(model, prompt(TOKENS, 3))
    assert_equal(run(model, prompt(TOKENS[:5], 3)), right)
    assert_equal(run(model, prompt(TOKENS[:5], 3), finished=(3,)), right)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step((prompt([1]), prompt([2]))), "twice"),
        (Step((prompt([]),)), "no new tokens"),
        (Step((SequenceStep(0, (1,), 1),)), "continues at 1 but has 0 tokens"),
        (Step((SequenceStep(0, (1,), -1),)), "continues at -1"),
        (Step((SequenceStep(5, (1,), 3),), finished=(5,)), "continues at 3 but has 0 tokens"),
        (Step((prompt([1] * 17),)), "17 tokens; at most 16"),
        (Step((prompt([1, 258]),)), "outside the 258 known"),
        (Step((prompt([-1]),)), "outside the 258 known"),
    ],
)
def test_bad_steps_are_refused_and_change_nothing(step: Step, message: str) -> None:
    model = single(TinyModel(), 16)
    run(model, prompt([1, 2, 3], 5))
    with pytest.raises(ValueError, match=message):
        model.check(step)
    assert_equal(run(model, SequenceStep(5, (4,), 3)), run(model, prompt([1, 2, 3, 4], 6)))


def test_norm_of_zeros_is_zero() -> None:
    model = single(TinyModel())
    assert not model._norm(torch.zeros(2, 64), torch.ones(64)).any()
