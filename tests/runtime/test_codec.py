"""What goes in comes out: nested data, arrays and tensors of every kind."""

from __future__ import annotations

import collections
import datetime
import importlib
import pickle
from typing import TYPE_CHECKING, Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from procession.protocol.core import Identity
from procession.runtime.arena import Arena, Returns
from procession.runtime.channel import Packet, Say, pair, receive
from procession.runtime.codec import decode, encode

if TYPE_CHECKING:
    import torch


@pytest.fixture(scope="module", autouse=True)
def _torch() -> None:
    """Imported when the first of these tests runs, and not when they are collected: see conftest."""
    globals()["torch"] = importlib.import_module("torch")


def through(value: Any) -> Any:
    """As a message makes the way: in-band or by a block of memory, whichever its size asks for."""
    left, right = pair()
    arena, returns = Arena(1), Returns()
    try:
        packet = Packet(Say.CALL, encode(value, "it"), arena=arena).address(Identity(1, 2, 3))
        assert packet.send(left)
        packet.close()
        message = receive(right, returns)
        assert message is not None
        assert (message.kind, message.identity) == (Say.CALL, Identity(1, 2, 3))
        return message.value()
    finally:
        left.close()
        right.close()
        arena.close()


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=2000),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner) | st.sets(st.integers())
    ),
    max_leaves=30,
)


@given(plain)
@settings(max_examples=200, deadline=None)
def test_nested_data(value: Any) -> None:
    assert through(value) == value


arrays = hnp.arrays(
    dtype=hnp.scalar_dtypes() | hnp.array_dtypes() | hnp.unicode_string_dtypes(),
    shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9),
)


@given(arrays, st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_arrays_of_every_kind_and_order(array: Any, way: int) -> None:
    view = {0: array, 1: array.T, 2: array[..., ::-1] if array.ndim else array, 3: np.asfortranarray(array)}[
        way
    ]
    back = through([view, {"again": view}])[0]
    plain = pickle.loads(pickle.dumps(view, 5))  # which loses the byte order of some texts
    assert back.dtype == plain.dtype
    assert back.shape == view.shape
    assert back.tobytes() == plain.tobytes()
    if back.size:
        back.flat[0] = back.flat[0]  # it may be written to


@pytest.mark.parametrize("size", [0, 1, 511, 512, 32_700, 32_768, 40_000, 1 << 20])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes_of_every_size(kind: Any, size: int) -> None:
    value = kind(bytes(range(256)) * (size // 256 + 1))[:size]
    assert through(value) == value
    assert through([value] * 3) == [value] * 3


def test_one_array_twice_is_one_array() -> None:
    array = np.arange(100_000)
    first, second = through((array, array))
    assert first is second


def test_views_of_one_array() -> None:
    array = np.arange(100_000)
    first, second = through((array[10:], array[:10]))
    assert (first == array[10:]).all()
    assert (second == array[:10]).all()


def test_objects_and_readonly_arrays() -> None:
    Point = collections.namedtuple("Point", "x y")
    globals()["Point"] = Point
    Point.__module__, Point.__qualname__ = __name__, "Point"
    array = np.arange(1000)
    array.flags.writeable = False
    value = through(
        {"now": datetime.datetime(2026, 1, 1), "array": array, "object": np.array([None, "x"], dtype=object)}
    )
    assert value["now"] == datetime.datetime(2026, 1, 1)
    assert (value["array"] == array).all()
    assert list(value["object"]) == [None, "x"]


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "uint16",
    "uint32",
    "uint64",
]
SHAPES = [(), (0,), (1,), (3, 0, 2), (7,), (3, 5), (2, 3, 4), (300, 400)]


def bits(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor in its logical order; a comparison that knows no NaN and no dtype's lack of `==`."""
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def tensor_of(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    count = int(np.prod(shape, dtype=np.int64))
    size = torch.empty(0, dtype=dtype).element_size()
    raw = np.random.default_rng(count).integers(
        0, 2 if dtype is torch.bool else 256, count * size, dtype=np.uint8
    )
    return torch.from_numpy(raw).view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_tensors_of_every_dtype_and_shape(name: str) -> None:
    dtype = getattr(torch, name)
    for shape in SHAPES:
        tensor = tensor_of(dtype, shape)
        back = through({"t": tensor})["t"]
        assert (back.dtype, back.shape, back.requires_grad) == (dtype, tensor.shape, False)
        assert bits(back) == bits(tensor)
        back.copy_(tensor)  # it may be written to


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.t(),
        lambda t: t[::2],
        lambda t: t[:, 1:3],
        lambda t: t[:, 1],
        lambda t: t.expand(3, *t.shape),
        lambda t: t[5:],
        lambda t: t.unfold(0, 3, 1),
        lambda t: torch.nn.Parameter(t),
        lambda t: t.clone().requires_grad_(),
        lambda t: t.conj(),
        lambda t: torch.complex(t, t).conj(),
        lambda t: torch.complex(t, t).conj().imag,
        lambda t: t.to_sparse(),
        lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8),
        lambda t: t.to("meta"),
    ],
    ids=[
        "transposed", "strided", "cut", "column", "expanded", "tail", "unfolded", "parameter", "requires-grad",
        "conj-of-real", "conj", "negated", "sparse", "quantised", "meta",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.filterwarnings("ignore:.*quantiz.*")  # torch will remove it; until then it must pass
def test_tensors_in_odd_forms(make: Any) -> None:
    tensor = make(torch.arange(6000, dtype=torch.float32).reshape(100, 60))
    back = through([tensor])[0]
    torch._utils._sparse_tensors_to_validate.clear()  # torch keeps each one that was unpickled, until a torch.load
    assert type(back) is type(tensor)
    assert (back.dtype, back.shape, back.requires_grad) == (tensor.dtype, tensor.shape, tensor.requires_grad)
    assert back.layout == tensor.layout
    if tensor.device.type == "meta":
        assert back.device.type == "meta"
    elif tensor.layout is torch.strided and not tensor.is_quantized:
        assert bits(back.resolve_conj().resolve_neg()) == bits(tensor.resolve_conj().resolve_neg())
    else:
        assert torch.equal(back.to_dense() if tensor.is_sparse else back.dequantize(),
                           tensor.to_dense() if tensor.is_sparse else tensor.dequantize())  # fmt: skip


def test_a_gradients_history_stays_at_home() -> None:
    back = through(torch.ones(3, requires_grad=True) * 2)
    assert (back.tolist(), back.requires_grad, back.grad_fn) == ([2.0] * 3, True, None)


def test_a_small_view_of_a_large_tensor_is_small() -> None:
    large = torch.zeros(1 << 20)
    assert encode(large[:10], "it").size < 2000


def test_what_a_reader_does_to_a_tensor_stays_with_it() -> None:
    tensor = torch.ones(100_000)
    back = through(tensor)
    back.fill_(7)
    assert bool((tensor == 1).all())


def test_garbled_bytes_raise() -> None:
    good = encode([np.arange(1000)], "it")
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        decode(good.pickled[:-5], good.buffers)
    with pytest.raises(pickle.UnpicklingError):
        decode(good.pickled, [])
