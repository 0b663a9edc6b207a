"""Small GGUF files for tests, written with the gguf package's own writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGMLQuantizationType as Quantization
from numpy.typing import NDArray

from procession.runtime.llm.weights import Weights

SIZES: Mapping[str, int | float] = {
    "block_count": 2,
    "context_length": 64,
    "embedding_length": 64,
    "feed_forward_length": 96,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
}


def tensors(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random tensors for a model of `SIZES`, head tied."""
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (40, 64), "output_norm.weight": (64,)}
    for layer in range(2):
        for name, shape in {
            "attn_norm": (64,),
            "attn_q": (64, 64),
            "attn_k": (32, 64),
            "attn_v": (32, 64),
            "attn_output": (64, 64),
            "ffn_norm": (64,),
            "ffn_gate": (96, 64),
            "ffn_up": (96, 64),
            "ffn_down": (64, 96),
        }.items():
            shapes[f"blk.{layer}.{name}.weight"] = tuple(shape)
    return {name: random.standard_normal(shape, np.float32) / np.float32(8) for name, shape in shapes.items()}


def write(
    path: Path,
    values: Mapping[str, NDArray[np.float32]],
    sizes: Mapping[str, int | float | str] = SIZES,
    quantization: Quantization = Quantization.F32,
    architecture: str = "llama",
) -> Path:
    """A file with `values`, matrices in `quantization`, and a byte-pair vocabulary without merges."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, size in sizes.items():
        if isinstance(size, int):
            writer.add_uint32(f"{architecture}.{key}", size)
        elif isinstance(size, float):
            writer.add_float32(f"{architecture}.{key}", size)
        else:
            writer.add_string(f"{architecture}.{key}", size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([f"token{i}" for i in range(40)])
    for name, value in values.items():
        if value.ndim == 1:
            writer.add_tensor(name, value)
        else:
            writer.add_tensor(name, gguf.quantize(value, quantization), raw_dtype=quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def sizes_of(model: Weights) -> dict[str, int | float | str]:
    """The metadata keys that say a model's sizes."""
    sizes = model.hyperparameters
    return {
        "block_count": sizes.layers,
        "context_length": sizes.context,
        "embedding_length": sizes.hidden,
        "feed_forward_length": sizes.feed_forward,
        "attention.head_count": sizes.heads,
        "attention.head_count_kv": sizes.kv_heads,
        "attention.layer_norm_rms_epsilon": sizes.rms_epsilon,
        "rope.freq_base": sizes.rope_base,
    }


def flat(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """A matrix of one row as the vector that it is in a file."""
    return value[0] if len(value) == 1 else value
