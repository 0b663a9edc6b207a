"""Objects to bytes and back, without copying what is large.

Pickle protocol 5 hands out large buffers separately. Torch tensors do not take part by themselves; a reducer makes
each dense CPU tensor one such buffer, of whatever dtype. The buffers follow the pickle, in the message itself if they
are small, else in an anonymous memory file that travels with it (see `channel`).

Only bytes from processes that we started, over sockets that nobody else can reach, are ever unpickled.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import PayloadError

if TYPE_CHECKING:
    import torch

Buffer = bytes | bytearray | memoryview


class Encoded:
    """A pickle and the buffers that belong to it."""

    __slots__ = ("buffers", "pickled", "size")

    def __init__(self, pickled: bytes, buffers: list[memoryview]) -> None:
        self.pickled = pickled
        self.buffers = buffers
        self.size = len(pickled) + sum(buffer.nbytes for buffer in buffers)


def encode(value: object, what: str) -> Encoded:
    """Pickle `value`. Raises `PayloadError`, which names `what`, if it cannot be pickled."""
    buffers: list[memoryview] = []

    def take(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < 512:  # a separate buffer would cost more than the copy
            return True
        buffers.append(raw)
        return False

    try:
        if (
            "torch" not in sys.modules
        ):  # then nothing can be a tensor, and the plain pickler is twice as quick
            return Encoded(pickle.dumps(value, protocol=5, buffer_callback=take), buffers)
        stream = io.BytesIO()
        _Pickler(stream, protocol=5, buffer_callback=take).dump(value)
    except RecursionError as error:
        raise PayloadError(f"{what} is nested too deeply to be pickled") from error
    except Exception as error:
        raise PayloadError(
            f"{what} cannot be pickled ({type(error).__name__}: {error}); nothing was sent. "
            "Send plain data, or a callable that makes the object in the worker."
        ) from error
    return Encoded(stream.getvalue(), buffers)


def decode(pickled: Buffer, buffers: Sequence[Buffer]) -> Any:
    """The object again. Raises whatever the object's own unpickling raises."""
    return pickle.loads(pickled, buffers=buffers)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and type(value) is torch.Tensor and _is_plain(value):
            return _reduce_tensor(value)
        return NotImplemented


def _is_plain(tensor: torch.Tensor) -> bool:
    import torch

    return (
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and (tensor.is_leaf or not tensor.requires_grad)
    )


def _reduce_tensor(tensor: torch.Tensor) -> tuple[Callable[..., torch.Tensor], tuple[object, ...]]:
    import torch

    flat = tensor.detach().contiguous().reshape(-1)
    if flat.numel() == 0:
        buffer: object = b""
    else:
        buffer = pickle.PickleBuffer(flat.view(torch.uint8).numpy().data)
    return _rebuild_tensor, (buffer, tensor.dtype, tuple(tensor.shape), tensor.requires_grad)


def _rebuild_tensor(
    buffer: Buffer, dtype: torch.dtype, shape: tuple[int, ...], requires_grad: bool
) -> torch.Tensor:
    import torch

    if len(buffer) == 0:
        tensor = torch.empty(shape, dtype=dtype)
    else:
        # torch wants memory that may be written to; in-band bytes may not.
        writable = (
            buffer if isinstance(buffer, bytearray) or not memoryview(buffer).readonly else bytearray(buffer)
        )
        tensor = torch.frombuffer(writable, dtype=torch.uint8).view(dtype).reshape(shape)
    return tensor.requires_grad_() if requires_grad else tensor
