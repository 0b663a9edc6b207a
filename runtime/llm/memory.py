"""How much memory a split model takes, and whether this machine has it.

Counted is what each rank has for itself: its weights, keys and values for the tokens asked for, and a base. The base
was measured with the tiny model in 1 to 16 ranks as memory private to the process: 10 to 22 MiB in a worker forked
where torch was already imported, gloo's threads and sockets included (its share did not grow visibly with the number
of ranks); 147 MiB in a spawned one, which has its own copy of what importing torch writes. The constants leave room.

Not counted: the model file, whose mapped pages all ranks share and the kernel may drop; activations, which are small
beside the rest; and the engine's own process.
"""

from __future__ import annotations

from pathlib import Path

import torch

from .errors import ModelError
from .parallel import Layout
from .shard import shard_bytes
from .weights import Hyperparameters

FORKED_BYTES = 30 << 20
SPAWNED_BYTES = 160 << 20


def memory_needed(
    sizes: Hyperparameters,
    tensor_parallel: int,
    pipeline_parallel: int,
    dtype: torch.dtype | str = torch.float32,
    *,
    tokens: int | None = None,
    start_method: str = "forkserver",
) -> int:
    """Bytes that all ranks together need as private memory, with `tokens` cached (default: one whole context)."""
    kind = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    world = tensor_parallel * pipeline_parallel
    layouts = [Layout(rank, tensor_parallel, pipeline_parallel) for rank in range(world)]
    weights = sum(shard_bytes(sizes, layout, kind) for layout in layouts)
    length = sizes.context if tokens is None else tokens
    cache = 2 * sizes.layers * sizes.kv_heads * sizes.head_dim * length * kind.itemsize
    base = SPAWNED_BYTES if start_method == "spawn" else FORKED_BYTES
    return int(weights + cache + world * base)


def check_memory(
    sizes: Hyperparameters,
    tensor_parallel: int,
    pipeline_parallel: int,
    dtype: torch.dtype | str = torch.float32,
    *,
    tokens: int | None = None,
    start_method: str = "forkserver",
    available: int | None = None,
) -> None:
    """Raises ModelError where `memory_needed` is above `available` bytes (default: the kernel's MemAvailable)."""
    needed = memory_needed(
        sizes, tensor_parallel, pipeline_parallel, dtype, tokens=tokens, start_method=start_method
    )
    held = available_memory() if available is None else available
    if needed > held:
        world = tensor_parallel * pipeline_parallel
        raise ModelError(
            f"TP {tensor_parallel} × PP {pipeline_parallel} = {world} ranks of {sizes.name} need about "
            f"{needed / 2**30:.1f} GiB of memory, and {held / 2**30:.1f} GiB are available; use fewer ranks"
        )


def available_memory() -> int:
    """MemAvailable of /proc/meminfo in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise ModelError(
        "this kernel does not say how much memory is available (no MemAvailable in /proc/meminfo)"
    )
