"""A Llama-architecture model in a GGUF file, read by slices.

The file is mapped, not read: all ranks on a machine share its pages, and a rank touches only the blocks that it
owns. Quantised values come in blocks of 32 or 256 along a row. Rows are whole blocks, so rows are sliced before they
are dequantised. Columns are cut at block borders where those coincide (they do for the sizes that models have), and
otherwise the covering blocks are dequantised and the surplus dropped; either way the numbers are those of the whole
tensor.

Sizes, keys and tensors that this project's model does not implement are refused at opening, rather than ignored.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from gguf.quants import dequantize

from .errors import ModelError
from .gguf_header import Header, TensorInfo, read_header
from .weights import Hyperparameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .tokenizer import Tokenizer

T = TypeVar("T", int, float, str)
_VALUES_AT_ONCE = 1 << 16  # 256 KiB of float32: stays in the second-level cache


class GgufFile:
    """A `Weights` over one file. Raises ModelError where the file is not a model that can be run."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._data = _map(Path(path))
        self._header = read_header(self._data, self.path)
        self._bytes = np.frombuffer(self._data, np.uint8)
        self._hyperparameters = _hyperparameters(self._header, self.path)
        _check_tensors(self._header, self._hyperparameters, self.path)

    @property
    def hyperparameters(self) -> Hyperparameters:
        return self._hyperparameters

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._data)

    def has(self, name: str) -> bool:
        return name in self._header.tensors

    def read(
        self, name: str, rows: slice | NDArray[np.int64] | None = None, columns: slice | None = None
    ) -> NDArray[np.float32]:
        info = self._header.tensors.get(name)
        if info is None:
            raise ModelError(f"{self.path} has no tensor {name}")
        blocks = self._bytes[info.offset : info.offset + info.bytes].reshape(info.rows, info.row_bytes)
        if rows is not None:
            blocks = blocks[rows]
        first, last, _ = (columns or slice(None)).indices(info.columns)
        values, size = info.block
        low, high = first // values, -(-last // values)
        blocks = blocks[:, low * size : high * size]
        dense = _dequantize(blocks, info)
        return dense[:, first - low * values : last - low * values]

    def tokenizer(self) -> Tokenizer:
        # Read once more, with the strings: only the engine needs them, the ranks never do.
        from .vocabulary import tokenizer_from_metadata

        return tokenizer_from_metadata(read_header(self._data, self.path, strings=True).metadata, self.path)


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise ModelError(f"no such file: {path}") from None
    except ValueError:  # what mmap says of an empty file
        raise ModelError(f"{path} is not a GGUF file: it is empty") from None
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None


def _dequantize(blocks: NDArray[np.uint8], info: TensorInfo) -> NDArray[np.float32]:
    """The values of rows of blocks, [rows, columns], in long runs of blocks.

    The package's own loop goes 16 rows at a time, which for small rows is mostly the loop. Blocks know nothing of
    rows, so one long row of many blocks is the same to it.
    """
    values, size = info.block
    out = np.empty(blocks.size // size * values, np.float32)
    flat = np.ascontiguousarray(blocks).reshape(-1)
    run = max(1, _VALUES_AT_ONCE // values)
    for start in range(0, flat.size // size, run):
        part = flat[start * size : (start + run) * size]
        out[start * values : (start + run) * values] = dequantize(part[None], info.quantization)[0]
    return out.reshape(blocks.shape[0], blocks.shape[1] // size * values)


def _hyperparameters(header: Header, path: str) -> Hyperparameters:
    metadata = header.metadata
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise ModelError(f"{path} is of the architecture {architecture!r}; only 'llama' can be run")
    if metadata.get("split.count", 0) not in (0, 1):
        raise ModelError(f"{path} is one of {metadata['split.count']} parts; merge them into one file first")

    def get(key: str, kind: type[T], default: T | None = None) -> T:
        value = metadata.get(f"llama.{key}", default)
        if value is None:
            raise ModelError(f"{path} is damaged: it does not say llama.{key}")
        if isinstance(value, np.ndarray):
            raise ModelError(f"{path}: llama.{key} differs from layer to layer, which is not implemented")
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, int | float) and not 0 < value < 1 << 32):
            raise ModelError(f"{path} is damaged: llama.{key} is {value!r}")
        return value

    if metadata.get("llama.expert_count"):
        raise ModelError(f"{path} is a mixture of experts, which is not implemented")
    scaling = get("rope.scaling.type", str, "none")
    if scaling not in ("none", "linear"):
        raise ModelError(f"{path}: RoPE scaling {scaling!r} is not implemented; 'none' and 'linear' are")
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelError(f"{path} has no tensor token_embd.weight")
    heads = get("attention.head_count", int)
    head_dim = get("attention.key_length", int, embedding.columns // heads)
    if get("attention.value_length", int, head_dim) != head_dim:
        raise ModelError(f"{path}: keys and values of different length are not implemented")
    sizes = Hyperparameters(
        name=str(metadata.get("general.name", path)),
        layers=get("block_count", int),
        hidden=get("embedding_length", int),
        heads=heads,
        kv_heads=get("attention.head_count_kv", int, heads),
        head_dim=head_dim,
        feed_forward=get("feed_forward_length", int),
        vocabulary=embedding.rows,
        context=get("context_length", int),
        rms_epsilon=get("attention.layer_norm_rms_epsilon", float),
        rope_base=get("rope.freq_base", float, 10000.0),
        rope_dimensions=get("rope.dimension_count", int, head_dim),
        rope_scale=get("rope.scaling.factor", float, 1.0) if scaling == "linear" else 1.0,
    )
    if sizes.layers > len(header.tensors):
        raise ModelError(f"{path} is damaged: {sizes.layers} layers, but {len(header.tensors)} tensors")
    if sizes.heads % sizes.kv_heads or sizes.rope_dimensions % 2 or sizes.rope_dimensions > head_dim:
        raise ModelError(f"{path} is damaged: its heads or RoPE dimensions do not fit together: {sizes}")
    return sizes


def _check_tensors(header: Header, sizes: Hyperparameters, path: str) -> None:
    """Every tensor that the model needs is there in the right shape, none that it ignores, all can be dequantised."""
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    hidden, inner = sizes.hidden, sizes.feed_forward
    layer = {
        "attn_norm": (1, hidden),
        "attn_q": (queries, hidden),
        "attn_k": (keys, hidden),
        "attn_v": (keys, hidden),
        "attn_output": (hidden, queries),
        "ffn_norm": (1, hidden),
        "ffn_gate": (inner, hidden),
        "ffn_up": (inner, hidden),
        "ffn_down": (hidden, inner),
    }
    wanted = {f"blk.{i}.{name}.weight": shape for i in range(sizes.layers) for name, shape in layer.items()}
    wanted["token_embd.weight"] = (sizes.vocabulary, hidden)
    wanted["output_norm.weight"] = (1, hidden)
    optional = {
        "output.weight": (sizes.vocabulary, hidden),
        "rope_freqs.weight": (1, sizes.rope_dimensions // 2),
    }
    for name, shape in {**wanted, **optional}.items():
        info = header.tensors.get(name)
        if info is None:
            if name in wanted:
                raise ModelError(f"{path} has no tensor {name}")
        elif (info.rows, info.columns) != shape:
            raise ModelError(f"{path}: tensor {name} has the shape {(info.rows, info.columns)}, not {shape}")
    surplus = sorted(header.tensors.keys() - wanted.keys() - optional.keys())
    if surplus:
        raise ModelError(f"{path} has tensors that are not implemented: {', '.join(surplus[:5])}")
    for quantization, (name, info) in {i.quantization: (n, i) for n, i in header.tensors.items()}.items():
        try:  # one block of zeros: the package has no other way to say what it can do
            dequantize(np.zeros((1, info.block[1]), np.uint8), quantization)
        except NotImplementedError:
            raise ModelError(
                f"{path}: unsupported quantisation {quantization.name} of tensor {name}; "
                "the gguf package cannot dequantise it"
            ) from None
