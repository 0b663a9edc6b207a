"""A small random model made from a seed: no file, no download, the same numbers on every machine and rank.

Each tensor has a generator of its own, seeded by the seed and the tensor's name, so a slice does not depend on what
was read before. The sizes divide by tensor-parallel sizes 1, 2 and 4 and by 1 to 4 stages, with two query heads for
each key-value head and a vocabulary that divides by neither. What it says is noise; that it says the same noise in
every split is the point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from .errors import ModelError
from .weights import Hyperparameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .tokenizer import Tokenizer

_SIZES = Hyperparameters(
    name="tiny",
    layers=4,
    hidden=64,
    heads=8,
    kv_heads=4,
    head_dim=8,
    feed_forward=128,
    vocabulary=258,  # 256 bytes, beginning, end
    context=512,
    rms_epsilon=1e-5,
    rope_base=10000.0,
    rope_dimensions=8,
)


class TinyModel:
    """A `Weights` from a seed."""

    def __init__(self, seed: int = 0) -> None:
        if seed < 0:
            raise ModelError(f"the seed of the tiny model is {seed}; it can be 0 or above")
        self._seed = seed
        self._shapes = _shapes(_SIZES)

    @property
    def hyperparameters(self) -> Hyperparameters:
        return _SIZES

    def has(self, name: str) -> bool:
        return name in self._shapes

    def read(
        self, name: str, rows: slice | NDArray[np.int64] | None = None, columns: slice | None = None
    ) -> NDArray[np.float32]:
        shape = self._shapes.get(name)
        if shape is None:
            raise ModelError(f"the tiny model has no tensor {name}")
        if shape[0] == 1:
            whole = np.ones(shape, np.float32)  # the norms
        else:
            generator = np.random.default_rng([self._seed, crc32(name.encode())])
            # Variance 1 from layer to layer; the embedding stands for itself.
            scale = 1.0 if name == "token_embd.weight" else shape[1] ** -0.5
            whole = generator.standard_normal(shape, np.float32) * np.float32(scale)
        return whole[rows if rows is not None else slice(None), columns or slice(None)]

    def tokenizer(self) -> Tokenizer:
        from .tokenizer import byte_tokenizer

        return byte_tokenizer()


def _shapes(sizes: Hyperparameters) -> dict[str, tuple[int, int]]:
    hidden, inner = sizes.hidden, sizes.feed_forward
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    shapes = {
        "token_embd.weight": (sizes.vocabulary, hidden),
        "output.weight": (sizes.vocabulary, hidden),
        "output_norm.weight": (1, hidden),
    }
    for layer in range(sizes.layers):
        for name, shape in {
            "attn_norm": (1, hidden),
            "attn_q": (queries, hidden),
            "attn_k": (keys, hidden),
            "attn_v": (keys, hidden),
            "attn_output": (hidden, queries),
            "ffn_norm": (1, hidden),
            "ffn_gate": (inner, hidden),
            "ffn_up": (inner, hidden),
            "ffn_down": (hidden, inner),
        }.items():
            shapes[f"blk.{layer}.{name}.weight"] = shape
    return shapes
