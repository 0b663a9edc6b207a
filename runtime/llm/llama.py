"""The Llama model: one rank's part of a forward pass.

Activations are [tokens, hidden], the tokens of all sequences of a step one below the other. The residual stream is
float32 in every dtype; only the matrix products, keys and values are in the model's dtype. Partial products of a
tensor group are added in float32, so that TP changes rounding as little as it can.

    x = x + sum over ranks of  attention_output( attend( rope(qkv(norm(x))) ) )
    x = x + sum over ranks of  down( silu(gate(norm(x))) * up(norm(x)) )

Keys and values are cached per sequence in one tensor for all layers, allocated at its full length when the sequence
starts (untouched pages cost no memory). A query head shares its key-value head with its neighbours: when one token is
decoded, those heads are folded into the query's token axis, and attention needs neither mask nor copies.

RoPE is the interleaved kind that Llama GGUF files are permuted for: features 2i and 2i+1 are one complex number,
which position p turns by p × frequency i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from .shard import Layer, load_shard

if TYPE_CHECKING:
    from .parallel import Groups
    from .step import SequenceStep, Step
    from .weights import Hyperparameters, Weights


class _Cache:
    """Keys and values of one sequence, [layers, 2 × key-value heads, positions, features]; keys come first."""

    __slots__ = ("length", "values")

    def __init__(self, shape: tuple[int, int, int, int], dtype: torch.dtype) -> None:
        self.values = torch.empty(shape, dtype=dtype)
        self.length = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows `start` to `stop` of a step's activations: positions `first` to `last` of one sequence."""

    start: int
    stop: int
    first: int
    last: int
    cache: _Cache
    mask: torch.Tensor | None  # [stop - start, last], where a chunk continues a sequence


class Llama:
    """One rank's model and caches."""

    def __init__(self, weights: Weights, groups: Groups, dtype: torch.dtype, max_length: int) -> None:
        """Loads the rank's weights. `max_length` is the longest sequence in tokens."""
        layout = groups.layout
        self._weights, self._groups, self._dtype, self._max_length = weights, groups, dtype, max_length
        self._sizes = sizes = weights.hyperparameters
        self._shard = load_shard(weights, layout, dtype)
        self._heads, self._kv_heads = len(layout.share(sizes.heads)), len(layout.share(sizes.kv_heads))
        self._rotations = _rotations(sizes, self._shard.rope_factors, max_length)
        self._epsilon = torch.tensor((sizes.hidden * sizes.rms_epsilon) ** 0.5)
        self._caches: dict[int, _Cache] = {}

    def check(self, step: Step) -> None:
        """Raises ValueError for a step that cannot be run; changes nothing. All ranks come to the same verdict."""
        seen: set[int] = set()
        for sequence in step.sequences:
            cache = None if sequence.id in step.finished else self._caches.get(sequence.id)
            length = cache.length if cache else 0
            end = sequence.position + len(sequence.tokens)
            if sequence.id in seen:
                raise ValueError(f"sequence {sequence.id} is twice in one step")
            if not sequence.tokens:
                raise ValueError(f"sequence {sequence.id} has no new tokens")
            if not 0 <= sequence.position <= length:
                raise ValueError(
                    f"sequence {sequence.id} continues at {sequence.position} but has {length} tokens"
                )
            if end > self._max_length:
                raise ValueError(
                    f"sequence {sequence.id} would have {end} tokens; at most {self._max_length} fit"
                )
            if not (min(sequence.tokens) >= 0 and max(sequence.tokens) < self._sizes.vocabulary):
                raise ValueError(
                    f"sequence {sequence.id} has a token outside the {self._sizes.vocabulary} known"
                )
            seen.add(sequence.id)

    @torch.inference_mode()
    def forward(self, step: Step) -> torch.Tensor | None:
        """Runs a checked step. On the output rank: float32 logits [sampled sequences, vocabulary], else None."""
        for finished in step.finished:
            self._caches.pop(finished, None)
        if not step.sequences:
            return None
        parts = self._parts(step)
        x = self._enter(step, parts[-1].stop)
        positions = torch.tensor([p for part in parts for p in range(part.first, part.last)])
        rotations = self._rotations[positions]
        for number, layer in enumerate(self._shard.layers):
            x += self._attention(number, layer, x, rotations, parts)
            x += self._feed_forward(layer, x)
        for part in parts:
            part.cache.length = part.last
        return self._leave(x, [p.stop - 1 for p, s in zip(parts, step.sequences, strict=True) if s.sample])

    def _enter(self, step: Step, rows: int) -> torch.Tensor:
        """The activations [rows, hidden] that the first layer of this stage sees."""
        if not self._groups.layout.is_first_stage:
            return self._groups.receive(torch.empty(rows, self._sizes.hidden))
        tokens = torch.tensor([token for sequence in step.sequences for token in sequence.tokens])
        # Read where it lies: the few rows of a step cost less than 100 MB of table in each rank.
        return torch.from_numpy(self._weights.read("token_embd.weight", tokens.numpy())).clone()

    def _leave(self, x: torch.Tensor, sampled: list[int]) -> torch.Tensor | None:
        """Sends activations on, or makes logits of the `sampled` rows."""
        norm, head = self._shard.norm, self._shard.head
        if norm is None or head is None:
            self._groups.send_on(x)
            return None
        if not sampled:
            return None
        logits = head(self._norm(x[sampled], norm)).float()
        return self._groups.collect_columns(logits, self._sizes.vocabulary)

    def _parts(self, step: Step) -> list[_Part]:
        parts: list[_Part] = []
        start = 0
        for sequence in step.sequences:
            stop, last = start + len(sequence.tokens), sequence.position + len(sequence.tokens)
            mask = None
            if sequence.position and len(sequence.tokens) > 1:
                mask = torch.arange(last) <= torch.arange(sequence.position, last).unsqueeze(1)
            parts.append(_Part(start, stop, sequence.position, last, self._cache(sequence), mask))
            start = stop
        return parts

    def _cache(self, sequence: SequenceStep) -> _Cache:
        cache = self._caches.get(sequence.id)
        if cache is None:
            shape = (len(self._shard.layers), 2 * self._kv_heads, self._max_length, self._sizes.head_dim)
            cache = self._caches[sequence.id] = _Cache(shape, self._dtype)
        return cache

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """x / sqrt(mean(x²) + ε) × weight, as x / hypot(|x|, sqrt(n × ε)) × (sqrt(n) × weight): half the time of
        functional.rms_norm, which is eight small operations on a processor."""
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x.div(torch.hypot(length, self._epsilon)).mul_(weight).to(self._dtype)

    def _attention(
        self, number: int, layer: Layer, x: torch.Tensor, rotations: torch.Tensor, parts: list[_Part]
    ) -> torch.Tensor:
        heads, kv_heads, width = self._heads, self._kv_heads, self._sizes.head_dim
        qkv = layer.qkv(self._norm(x, layer.attention_norm)).float().view(-1, heads + 2 * kv_heads, width)
        turned = qkv[:, : heads + kv_heads, : self._sizes.rope_dimensions].unflatten(-1, (-1, 2))
        torch.view_as_complex(turned).mul_(rotations)
        query = qkv[:, :heads].to(self._dtype)
        mixed = [
            self._attend(query[p.start : p.stop], qkv[p.start : p.stop, heads:], p, number) for p in parts
        ]
        together = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        return self._groups.add_up(layer.attention_output(together).float())

    def _attend(self, query: torch.Tensor, new: torch.Tensor, part: _Part, number: int) -> torch.Tensor:
        """[tokens, heads × features] from queries [tokens, heads, features] and new keys and values."""
        tokens, kv_heads, width = len(query), self._kv_heads, self._sizes.head_dim
        cached = part.cache.values[number]
        cached[:, part.first : part.last] = new.transpose(0, 1)
        keys, values = cached[None, :kv_heads, : part.last], cached[None, kv_heads:, : part.last]
        attention = functional.scaled_dot_product_attention
        if tokens == 1:
            return attention(query.reshape(1, kv_heads, -1, width), keys, values).reshape(1, -1)
        mixed = attention(
            query.transpose(0, 1)[None],
            keys,
            values,
            attn_mask=part.mask,
            is_causal=part.mask is None,
            enable_gqa=True,
        )
        return mixed[0].transpose(0, 1).reshape(tokens, -1)

    def _feed_forward(self, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        gate, up = layer.gate_up(self._norm(x, layer.feed_forward_norm)).chunk(2, dim=1)
        return self._groups.add_up(layer.down(functional.silu(gate).mul_(up)).float())


def _rotations(sizes: Hyperparameters, factors: torch.Tensor | None, length: int) -> torch.Tensor:
    """Unit complex numbers [length, 1, rope dimensions / 2]. Angles in float64: at position 8000 a float32 product is
    off by more than the dtype of the rest."""
    exponents = torch.arange(0, sizes.rope_dimensions, 2, dtype=torch.float64) / sizes.rope_dimensions
    frequencies = sizes.rope_base**-exponents
    if factors is not None:
        frequencies = frequencies / factors
    angles = torch.outer(torch.arange(length, dtype=torch.float64) / sizes.rope_scale, frequencies)
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64).unsqueeze(1)
