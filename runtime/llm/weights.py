"""What the model needs to know about a source of weights, whatever it is: a GGUF file, or numbers from a seed.

Tensor names are the GGUF ones ("blk.3.attn_q.weight"). A matrix has the shape [outputs, inputs], so a rank that owns
some output features reads rows, and a rank that owns some input features reads columns. Sources hand out only what is
asked for: a rank never holds a whole tensor that it owns a part of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Sizes of a Llama-architecture model. `context` is in tokens; `rope_scale` divides positions (1.0: none)."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    context: int
    rms_epsilon: float
    rope_base: float
    rope_dimensions: int
    rope_scale: float = 1.0


class Weights(Protocol):
    """A source of weights."""

    @property
    def hyperparameters(self) -> Hyperparameters: ...

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name; the only optional ones are the output head and RoPE factors."""
        ...

    def read(
        self, name: str, rows: slice | NDArray[np.int64] | None = None, columns: slice | None = None
    ) -> NDArray[np.float32]:
        """The part of a tensor as float32, [rows, columns]; a vector is one row.

        `rows` is a slice of step 1 or an array of row numbers; `columns` is a slice of step 1. Raises ModelError for
        a name that does not exist.
        """
        ...

    def tokenizer(self) -> Tokenizer:
        """The tokenizer that belongs to the weights. Raises ModelError where it cannot be built."""
        ...
