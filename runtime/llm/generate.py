"""Drives an executor token by token, and says beforehand whether that can work.

Per token two calls: `execute_model` with what is new, then `sample_tokens` for the token that follows. The first step
carries the whole prompt, each later one the token before. What the model cannot take (a prompt beyond the context)
or the machine cannot hold (more ranks than memory) is refused here, before a process is started or a step is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from .errors import ModelError
from .parallel import Layout
from .shard import shard_bytes
from .step import SequenceStep, Step
from .tokenizer import Tokenizer
from .weights import Hyperparameters


class Executor(Protocol):
    """What is needed of an executor; `sample_tokens` answers for the output rank: next token by sequence id."""

    def execute_model(self, scheduler_output: Step, /) -> Any: ...

    def sample_tokens(self, grammar_output: Mapping[int, Sequence[int]] | None, /) -> Any: ...


def check_prompt(prompt_tokens: Sequence[int], max_tokens: int, context: int) -> None:
    """Raises ModelError unless the prompt and `max_tokens` new tokens fit a context of `context` tokens."""
    if not prompt_tokens:
        raise ModelError("the prompt is empty")
    if max_tokens < 1:
        raise ModelError(f"cannot generate {max_tokens} tokens; at least 1")
    if len(prompt_tokens) + max_tokens > context:
        room = context - len(prompt_tokens)
        advice = f"at most {room} new tokens fit" if room > 0 else "shorten the prompt"
        raise ModelError(
            f"a prompt of {len(prompt_tokens)} tokens and {max_tokens} new ones do not fit the model's context of "
            f"{context} tokens; {advice}"
        )


def generate(
    executor: Executor,
    tokenizer: Tokenizer,
    prompt_tokens: Sequence[int],
    max_tokens: int,
    *,
    context: int,
    sequence: int = 0,
) -> Iterator[int]:
    """Yields up to `max_tokens` tokens; ends before a token that ends the text (which is not yielded).

    Checks the sizes before the first step, when called, not when first iterated. `sequence` is the number under
    which ranks cache the text; a text that starts under the same number replaces the older one, so a caller that
    generates one text after another need not tell the ranks that one is finished.
    """
    check_prompt(prompt_tokens, max_tokens, context)
    return _tokens(executor, tokenizer.stop, tuple(prompt_tokens), max_tokens, sequence)


def generate_text(
    executor: Executor,
    tokenizer: Tokenizer,
    prompt_tokens: Sequence[int],
    max_tokens: int,
    *,
    context: int,
    sequence: int = 0,
) -> Iterator[str]:
    """As `generate`, but yields pieces of text, never half a character."""
    tokens = generate(executor, tokenizer, prompt_tokens, max_tokens, context=context, sequence=sequence)
    return _text(tokens, tokenizer)


def _tokens(
    executor: Executor, stop: frozenset[int], new: tuple[int, ...], max_tokens: int, sequence: int
) -> Iterator[int]:
    position = 0
    for _ in range(max_tokens):
        executor.execute_model(Step((SequenceStep(sequence, new, position),)))
        token: int = executor.sample_tokens(None)[sequence]
        if token in stop:
            return
        yield token
        position += len(new)
        new = (token,)


def _text(tokens: Iterator[int], tokenizer: Tokenizer) -> Iterator[str]:
    detokenizer = tokenizer.detokenizer()
    for token in tokens:
        if text := detokenizer.push(token):
            yield text
    if text := detokenizer.finish():
        yield text


# Measured with the tiny model, as memory private to the process (USS): what Python and torch allocate in a worker
# forked from a server that has torch imported, and what gloo's groups and threads add per peer.
RANK_BYTES = 60 << 20
PEER_BYTES = 1 << 20


def memory_needed(
    sizes: Hyperparameters,
    tensor_parallel: int,
    pipeline_parallel: int,
    dtype: torch.dtype | str = torch.float32,
    tokens: int | None = None,
) -> int:
    """Bytes that all ranks together need, as private memory.

    Counted: each rank's weights in `dtype`, keys and values of `tokens` tokens (default: the whole context), a base
    per rank, and gloo's share per peer. Not counted: the model file, whose mapped pages are shared and can be
    dropped, and activations, which are small.
    """
    kind = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    world = tensor_parallel * pipeline_parallel
    layouts = [Layout(rank, tensor_parallel, pipeline_parallel) for rank in range(world)]
    weights = sum(shard_bytes(sizes, layout, kind) for layout in layouts)
    length = sizes.context if tokens is None else tokens
    cache = 2 * sizes.layers * sizes.kv_heads * sizes.head_dim * length * kind.itemsize
    return weights + cache + world * (RANK_BYTES + (world - 1) * PEER_BYTES)


def check_memory(
    sizes: Hyperparameters,
    tensor_parallel: int,
    pipeline_parallel: int,
    dtype: torch.dtype | str = torch.float32,
    tokens: int | None = None,
    available: int | None = None,
) -> None:
    """Raises ModelError where `memory_needed` is above `available` bytes (default: the kernel's MemAvailable)."""
    needed = memory_needed(sizes, tensor_parallel, pipeline_parallel, dtype, tokens)
    held = available_memory() if available is None else available
    if needed > held:
        world = tensor_parallel * pipeline_parallel
        raise ModelError(
            f"TP {tensor_parallel} × PP {pipeline_parallel} = {world} ranks of {sizes.name} need about "
            f"{needed / 2**30:.1f} GiB of memory, and {held / 2**30:.1f} GiB are available; use fewer ranks"
        )


def available_memory() -> int:
    """MemAvailable of /proc/meminfo in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise ModelError(
        "this kernel does not say how much memory is available (no MemAvailable in /proc/meminfo)"
    )
