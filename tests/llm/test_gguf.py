"""A GGUF file is read as the gguf package reads it, by slices; a bad one gives one clear message."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType as Quantization
from numpy.typing import NDArray

from procession.runtime.llm.errors import ModelError
from procession.runtime.llm.gguf_file import GgufFile
from procession.runtime.llm.source import open_model, smollm2_path
from tests.llm import gguf_files

QUANTIZATIONS = [
    Quantization.F32,
    Quantization.F16,
    Quantization.BF16,
    Quantization.Q4_0,
    Quantization.Q4_1,
    Quantization.Q5_0,
    Quantization.Q8_0,
]


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_slices_equal_the_whole_tensor(tmp_path: Path, quantization: Quantization) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors(), quantization=quantization)
    file = GgufFile(path)
    for tensor in gguf.GGUFReader(path).tensors:
        whole = np.atleast_2d(gguf.dequantize(tensor.data, tensor.tensor_type))
        np.testing.assert_array_equal(file.read(tensor.name), whole)
        rows, columns = whole.shape
        choices: list[slice | NDArray[np.int64]] = [
            slice(0, rows),
            slice(rows // 2, rows),
            slice(rows, rows),
            np.array([0, rows - 1, 0]),
        ]
        for row in choices:
            # At block borders (32), across them, inside one block, and empty.
            for column in [
                None,
                slice(32, 64),
                slice(24, 40),
                slice(1, 3),
                slice(columns - 1, columns),
                slice(5, 5),
            ]:
                got = file.read(tensor.name, row, column)
                np.testing.assert_array_equal(got, whole[row][:, column or slice(None)])


@pytest.mark.model
@pytest.mark.slow  # the package's reader is
def test_smollm2_is_read_as_the_gguf_package_reads_it() -> None:
    path = smollm2_path()
    file, reader = GgufFile(path), gguf.GGUFReader(path)
    for tensor in reader.tensors:
        if tensor.name.startswith(("blk.7.", "token", "output")):
            whole = np.atleast_2d(gguf.dequantize(tensor.data, tensor.tensor_type))
            np.testing.assert_array_equal(file.read(tensor.name), whole)
            third = whole.shape[1] // 3
            part = file.read(tensor.name, None, slice(third, 2 * third))
            np.testing.assert_array_equal(part, whole[:, third : 2 * third])
    assert {t.name for t in reader.tensors} == file._header.tensors.keys()
    sizes = file.hyperparameters
    assert (sizes.layers, sizes.hidden, sizes.heads, sizes.kv_heads, sizes.vocabulary) == (
        30,
        576,
        9,
        3,
        49152,
    )


def test_metadata_is_read_as_the_gguf_package_reads_it(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors())
    file, reader = GgufFile(path), gguf.GGUFReader(path)
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert fields.keys() == file._header.metadata.keys()
    for key, field in fields.items():
        value = file._header.metadata[key]
        assert value == field.contents() or (value is None and key == "tokenizer.ggml.tokens")


def test_tokenizer_without_merges(tmp_path: Path) -> None:
    file = GgufFile(gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors()))
    with pytest.raises(ModelError, match="no merges"):
        file.tokenizer()


def test_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        open_model(tmp_path / "absent.gguf")
    with pytest.raises(ModelError, match=r"cannot read .*: Is a directory"):
        open_model(tmp_path)
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(ModelError, match="it is empty"):
        open_model(empty)
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\n")
    with pytest.raises(ModelError, match="not a GGUF file: it starts with b'#!/b'"):
        open_model(str(text))
    for version, message in [(1, "GGUF version 1;"), (3 << 24, "big-endian")]:
        text.write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, 0))
        with pytest.raises(ModelError, match=message):
            open_model(text)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"block_count": None}, "does not say llama.block_count"),
        ({"block_count": 3}, "no tensor blk.2"),
        ({"block_count": 1}, "not implemented: blk.1"),
        ({"block_count": 1 << 31}, "layers, but 20 tensors"),
        ({"feed_forward_length": 64}, "ffn_gate.weight has the shape"),
        ({"attention.head_count": 0}, "head_count is 0"),
        ({"attention.head_count_kv": 3}, "do not fit together"),
        ({"rope.dimension_count": 3}, "do not fit together"),
        ({"embedding_length": "many"}, "embedding_length is 'many'"),
        ({"expert_count": 8}, "mixture of experts"),
        ({"rope.scaling.type": "yarn"}, "RoPE scaling 'yarn'"),
        ({"attention.value_length": 8}, "different length"),
    ],
)
def test_sizes_that_cannot_be_run(tmp_path: Path, sizes: dict[str, int | str | None], message: str) -> None:
    merged = {k: v for k, v in {**gguf_files.SIZES, **sizes}.items() if v is not None}
    path = gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors(), merged)
    with pytest.raises(ModelError, match=message):
        open_model(path)


def test_another_architecture(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors(), architecture="qwen2")
    with pytest.raises(ModelError, match="architecture 'qwen2'; only 'llama'"):
        open_model(path)


def test_quantizations_that_cannot_be_read(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors(), quantization=Quantization.BF16)
    whole = path.read_bytes()
    at = whole.index(b"blk.1.ffn_up.weight") + len(b"blk.1.ffn_up.weight") + 4 + 2 * 8
    assert struct.unpack_from("<I", whole, at)[0] == Quantization.BF16
    # Eight-bit integers have half the bytes, so the file stays long enough.
    for kind, message in [
        (Quantization.I8, "unsupported quantisation I8 of tensor blk.1.ffn_up"),
        (999, "type 999"),
    ]:
        path.write_bytes(whole[:at] + struct.pack("<I", kind) + whole[at + 4 :])
        with pytest.raises(ModelError, match=message):
            open_model(path)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors())
    whole = path.read_bytes()
    header = whole.index(b"blk.1.ffn_down.weight") + 100
    cut = tmp_path / "cut.gguf"
    for length in [*range(4, header, 7), header, len(whole) // 2, len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(ModelError, match="truncated"):
            open_model(cut)


def test_damaged_headers_raise_nothing_but_model_errors(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", gguf_files.tensors())
    whole = path.read_bytes()
    header = whole.index(b"blk.1.ffn_down.weight") + 100
    damaged = tmp_path / "damaged.gguf"
    generator = random.Random(0)
    refused = 0
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(generator.choice([1, 1, 4])):
            data[generator.randrange(header)] = generator.randrange(256)
        damaged.write_bytes(data)
        try:
            open_model(damaged)
        except ModelError:
            refused += 1
    assert refused > 500
