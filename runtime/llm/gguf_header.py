"""Reads the header of a GGUF file: its metadata, and where each tensor lies.

The `gguf` package has a reader of its own. It makes several numpy arrays for each string of the file, and the
tokenizer of a small model is 150 thousand strings: 5.5 s on the machine this was written on, in every rank. This
module walks the same bytes in a few hundredths of a second, skips string arrays unless asked for them, and knows
enough to tell a truncated file from a wrong one. Type numbers, block sizes and the arithmetic of quantised blocks
stay the package's. A test holds both readers equal.

Layout, little-endian: magic, version, tensor count, key count; then key, type, value for each key; then name,
dimensions (fastest first), type, offset for each tensor; then padding, and the tensors' data.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGUF_DEFAULT_ALIGNMENT, GGMLQuantizationType, GGUFValueType

from .errors import ModelError

if TYPE_CHECKING:
    from mmap import mmap

_SCALARS = {
    GGUFValueType.UINT8: "B",
    GGUFValueType.INT8: "b",
    GGUFValueType.UINT16: "H",
    GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I",
    GGUFValueType.INT32: "i",
    GGUFValueType.FLOAT32: "f",
    GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "Q",
    GGUFValueType.INT64: "q",
    GGUFValueType.FLOAT64: "d",
}
_MAX_NAME = 1 << 16  # a longer key or tensor name is a corrupted length


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where one tensor lies: `rows` lines of `columns` values, `offset` bytes from the start of the file."""

    rows: int
    columns: int
    quantization: GGMLQuantizationType
    offset: int

    @property
    def block(self) -> tuple[int, int]:
        """Values a block, and bytes a block."""
        return GGML_QUANT_SIZES[self.quantization]

    @property
    def row_bytes(self) -> int:
        """Bytes a row; rows are whole blocks."""
        values, size = self.block
        return self.columns // values * size

    @property
    def bytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata by key (arrays as numpy arrays or lists of str), and tensors by name."""

    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]


class _Cursor:
    """A position in the mapped file; every read is checked against the file's end."""

    def __init__(self, data: mmap, path: str) -> None:
        self.data = data
        self.path = path
        self.offset = 0

    def truncated(self) -> ModelError:
        return ModelError(
            f"{self.path} is truncated: its header goes on behind the file's end ({len(self.data)} bytes)"
        )

    def take(self, count: int) -> int:
        """Advances by `count` bytes; returns the offset before."""
        start = self.offset
        if count > len(self.data) - start:
            raise self.truncated()
        self.offset = start + count
        return start

    def number(self, code: str) -> Any:
        return struct.unpack_from("<" + code, self.data, self.take(struct.calcsize("<" + code)))[0]

    def text(self, limit: int | None = None) -> str:
        length = self.number("Q")
        if limit is not None and length > limit:
            raise ModelError(f"{self.path} is damaged: a name of {length} bytes at byte {self.offset}")
        start = self.take(length)
        return self.data[start : self.offset].decode("utf-8", "replace")

    def skip_texts(self, count: int) -> None:
        # The hot loop of a rank's start: no method call a string.
        data, offset, end = self.data, self.offset, len(self.data) - 8
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if offset > end:
                raise self.truncated()
            offset += 8 + unpack(data, offset)[0]
        self.offset = offset
        self.take(0)


def _value(cursor: _Cursor, kind: int, strings: bool) -> Any:
    try:
        kind = GGUFValueType(kind)
    except ValueError:
        raise ModelError(f"{cursor.path} is damaged: unknown value type {kind}") from None
    if kind == GGUFValueType.STRING:
        return cursor.text()
    if kind != GGUFValueType.ARRAY:
        return cursor.number(_SCALARS[kind])
    element = cursor.number("I")
    count = cursor.number("Q")
    if element == GGUFValueType.STRING:
        if not strings:
            return cursor.skip_texts(count)
        return [cursor.text() for _ in range(count)]
    if element not in _SCALARS:
        raise ModelError(f"{cursor.path} is damaged: an array of value type {element}")
    dtype = np.dtype("<" + _SCALARS[GGUFValueType(element)])
    start = cursor.take(count * dtype.itemsize)
    # A copy: a view would keep the mapping alive and could not outlive it.
    return np.frombuffer(cursor.data, dtype, count, start).copy()


def _tensor(cursor: _Cursor) -> tuple[str, tuple[int, ...], GGMLQuantizationType, int]:
    name = cursor.text(_MAX_NAME)
    dimensions = cursor.number("I")
    if not 1 <= dimensions <= 4:
        raise ModelError(f"{cursor.path} is damaged: tensor {name} has {dimensions} dimensions")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))
    kind = cursor.number("I")
    offset = cursor.number("Q")
    try:
        return name, shape, GGMLQuantizationType(kind), offset
    except ValueError:
        raise ModelError(
            f"{cursor.path}: unsupported quantisation of tensor {name}: type {kind} is unknown to the gguf package"
        ) from None


def read_header(data: mmap, path: str, strings: bool = False) -> Header:
    """The header of the mapped file; arrays of strings are None unless `strings`.

    Raises ModelError: not a GGUF, a version or byte order that is not read here, damaged, or truncated (also where
    only the tensors' data is cut short).
    """
    if data[:4] != b"GGUF":
        raise ModelError(f"{path} is not a GGUF file: it starts with {bytes(data[:4])!r}, not with b'GGUF'")
    cursor = _Cursor(data, path)
    cursor.take(4)
    version = cursor.number("I")
    if version not in (2, 3):
        swapped = " (a big-endian file?)" if version and version % 65536 == 0 else ""
        raise ModelError(f"{path} is GGUF version {version}{swapped}; versions 2 and 3 can be read")
    tensor_count, key_count = cursor.number("Q"), cursor.number("Q")
    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = cursor.text(_MAX_NAME)
        metadata[key] = _value(cursor, cursor.number("I"), strings)
    entries = [_tensor(cursor) for _ in range(tensor_count)]

    alignment = metadata.get("general.alignment", GGUF_DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ModelError(f"{path} is damaged: general.alignment is {alignment!r}")
    start = -(-cursor.offset // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    for name, shape, quantization, offset in entries:
        info = TensorInfo(prod(shape[1:]), shape[0], quantization, start + offset)
        if shape[0] % info.block[0]:
            raise ModelError(
                f"{path} is damaged: rows of tensor {name} are not whole {quantization.name} blocks"
            )
        if info.offset + info.bytes > len(data):
            raise ModelError(
                f"{path} is truncated: tensor {name} ends at byte {info.offset + info.bytes}, "
                f"the file at byte {len(data)}"
            )
        tensors[name] = info
    return Header(metadata, tensors)
