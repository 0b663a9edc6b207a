"""The weights that one rank owns, in the memory layout that its products are fastest in.

Column-split (a rank owns output features): query, key and value, fused into one matrix; gate and up, fused; the
output head. Row-split (a rank owns input features): attention output and feed-forward down. Norms are whole
everywhere. The token embedding is not held at all: the first stage reads the few rows it needs from the source.

Decoding one sequence multiplies each matrix with a single vector, which takes as long as reading the matrix from
memory. Measured here (one thread, float32, hidden 576): a matrix with more outputs than inputs is read at 11 to
16 GB/s when it is stored [inputs, outputs], and at 8 to 9 when stored [outputs, inputs]; the other matrices the
other way round. `Matrix` stores each accordingly, so a token costs about 40 ms instead of 55. At 8 rows the wide ones
lose about a quarter by it. bfloat16 is always stored [outputs, inputs]: without AMX the other way takes 10 times as
long.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from .parallel import Layout
    from .weights import Hyperparameters, Weights

_VALUES_AT_ONCE = 1 << 20  # of float32 between source and matrix: 4 MiB beside the matrix itself


class Matrix:
    """A linear map without bias from `inputs` to `outputs` features, filled in parts."""

    def __init__(self, outputs: int, inputs: int, dtype: torch.dtype) -> None:
        self._wide = outputs > inputs and dtype == torch.float32
        self._stored = torch.zeros((inputs, outputs) if self._wide else (outputs, inputs), dtype=dtype)

    def fill(self, at: int, weights: Weights, name: str, rows: range, columns: range | None = None) -> int:
        """Reads `rows` × `columns` of a tensor into the output features from `at` on; returns the next free one."""
        target = self._stored.t() if self._wide else self._stored
        cut = None if columns is None else slice(columns.start, columns.stop)
        step = max(1, _VALUES_AT_ONCE // target.shape[1])
        for start in range(rows.start, rows.stop, step):
            stop = min(start + step, rows.stop)
            part = torch.from_numpy(weights.read(name, slice(start, stop), cut))
            target[at : at + stop - start].copy_(part)
            at += stop - start
        return at

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, inputs] to [rows, outputs], in the matrix's dtype."""
        return torch.mm(x, self._stored) if self._wide else functional.linear(x, self._stored)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's part on one rank; norms are [hidden] float32, times sqrt(hidden)."""

    attention_norm: torch.Tensor
    qkv: Matrix
    attention_output: Matrix
    feed_forward_norm: torch.Tensor
    gate_up: Matrix
    down: Matrix


@dataclass(frozen=True, slots=True)
class Shard:
    """One rank's weights. `norm` and `head` exist on the last stage only; the head's part is padded with zero rows to
    the same size on every rank. `rope_factors` is [rope dimensions / 2] or None."""

    layers: tuple[Layer, ...]
    norm: torch.Tensor | None
    head: Matrix | None
    rope_factors: torch.Tensor | None


def load_shard(weights: Weights, layout: Layout, dtype: torch.dtype) -> Shard:
    """Reads what the rank at `layout` owns. Sizes must have passed `check_sizes`."""
    sizes = weights.hyperparameters

    def vector(name: str) -> torch.Tensor:
        return torch.from_numpy(weights.read(name)[0]).clone()

    def norm_weight(name: str) -> torch.Tensor:
        return vector(name) * sqrt(sizes.hidden)

    def layer(number: int) -> Layer:
        prefix = f"blk.{number}."
        queries = _features(layout.share(sizes.heads), sizes.head_dim)
        keys = _features(layout.share(sizes.kv_heads), sizes.head_dim)
        inner = layout.share(sizes.feed_forward)
        hidden = range(sizes.hidden)

        qkv = Matrix(len(queries) + 2 * len(keys), sizes.hidden, dtype)
        at = qkv.fill(0, weights, prefix + "attn_q.weight", queries)
        at = qkv.fill(at, weights, prefix + "attn_k.weight", keys)
        qkv.fill(at, weights, prefix + "attn_v.weight", keys)
        attention_output = Matrix(sizes.hidden, len(queries), dtype)
        attention_output.fill(0, weights, prefix + "attn_output.weight", hidden, queries)
        gate_up = Matrix(2 * len(inner), sizes.hidden, dtype)
        at = gate_up.fill(0, weights, prefix + "ffn_gate.weight", inner)
        gate_up.fill(at, weights, prefix + "ffn_up.weight", inner)
        down = Matrix(sizes.hidden, len(inner), dtype)
        down.fill(0, weights, prefix + "ffn_down.weight", hidden, inner)
        return Layer(
            norm_weight(prefix + "attn_norm.weight"),
            qkv,
            attention_output,
            norm_weight(prefix + "ffn_norm.weight"),
            gate_up,
            down,
        )

    norm = head = None
    if layout.is_last_stage:
        norm = norm_weight("output_norm.weight")
        head = Matrix(_head_rows(sizes, layout.tensor_parallel), sizes.hidden, dtype)
        name = "output.weight" if weights.has("output.weight") else "token_embd.weight"  # a tied head
        head.fill(0, weights, name, layout.share(sizes.vocabulary))
    factors = vector("rope_freqs.weight") if weights.has("rope_freqs.weight") else None
    return Shard(tuple(layer(number) for number in layout.layers(sizes.layers)), norm, head, factors)


def shard_bytes(sizes: Hyperparameters, layout: Layout, dtype: torch.dtype) -> int:
    """Bytes of the weights that `load_shard` allocates for the rank at `layout`."""
    width = layout.tensor_parallel
    heads = (2 * sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim // width
    layer = sizes.hidden * (heads + 3 * sizes.feed_forward // width)
    values = layer * len(layout.layers(sizes.layers))
    if layout.is_last_stage:
        values += _head_rows(sizes, width) * sizes.hidden
    return values * dtype.itemsize


def _features(heads: range, head_dim: int) -> range:
    return range(heads.start * head_dim, heads.stop * head_dim)


def _head_rows(sizes: Hyperparameters, width: int) -> int:
    return -(-sizes.vocabulary // width)
