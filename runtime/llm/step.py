"""What the engine tells every rank to compute next.

A step carries only what is new: tokens that no rank has seen yet, the position of the first of them, and the
sequences that will not be continued. Everything older lives in the ranks' key-value caches, under the sequence's
number. All ranks get the same step, so all of them can reject a bad one alike, before any of them waits for another.

Two rules follow from the caches:
- a sequence starts, or starts afresh, at position 0;
- it continues at most at its cached length. A lower position rolls the cache back: the tokens after it are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SequenceStep:
    """New tokens of one sequence: the whole prompt, a chunk of it, or the token that was sampled last.

    `position` is the index of `tokens[0]` in the sequence. `sample` is False for every chunk of a prompt but the
    last: then no logits are computed for the sequence in this step.
    """

    id: int
    tokens: tuple[int, ...]
    position: int
    sample: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass of several sequences; each appears at most once. `finished` is dropped before it starts."""

    sequences: tuple[SequenceStep, ...]
    finished: tuple[int, ...] = ()
