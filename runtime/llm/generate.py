"""Drives an executor token by token, and says beforehand whether that can work.

Per token two calls: `execute_model` with what is new, then `sample_tokens` for the token that follows. The first step
carries the whole prompt, each later one the token before. What the model cannot take (a prompt beyond the context)
or the machine cannot hold (more ranks than memory) is refused here, before a process is started or a step is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from .errors import ModelError
from .memory import available_memory, check_memory, memory_needed
from .step import SequenceStep, Step
from .tokenizer import Tokenizer

__all__ = [
    "Executor",
    "available_memory",
    "check_memory",
    "check_prompt",
    "generate",
    "generate_text",
    "memory_needed",
]


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
