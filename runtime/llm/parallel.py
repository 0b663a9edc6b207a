"""Which rank computes what, and how ranks exchange numbers.

Ranks are numbered as in vLLM: rank = pipeline stage × TP + tensor rank. A tensor group holds the ranks of one stage,
each with a slice of every layer; they add up their partial results twice a layer. A pipeline chain holds the ranks of
equal tensor rank; each sends its activations to the next stage. The output rank, the first tensor rank of the last
stage, collects the logits.

Deadlocks are excluded by order, not by timing:
- every rank makes every group, members or not, in one written order (tensor groups by stage, then chains by tensor
  rank), before it does anything else and before any helper thread can exist;
- afterwards each rank's sequence of collectives follows from the step alone, which all ranks are given alike.

Transport is gloo over the loopback interface. A peer that dies turns into an exception here; a peer that stands
still turns into one after `timeout`. World size 1 uses none of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from .errors import ModelError

if TYPE_CHECKING:
    from .weights import Hyperparameters


@dataclass(frozen=True, slots=True)
class Layout:
    """One rank's place among `tensor_parallel` × `pipeline_parallel` ranks."""

    rank: int
    tensor_parallel: int
    pipeline_parallel: int

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise ModelError(f"rank {self.rank} is not one of {self.world_size} ranks")

    @property
    def world_size(self) -> int:
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def tensor_rank(self) -> int:
        return self.rank % self.tensor_parallel

    @property
    def stage(self) -> int:
        return self.rank // self.tensor_parallel

    @property
    def is_first_stage(self) -> bool:
        return self.stage == 0

    @property
    def is_last_stage(self) -> bool:
        return self.stage == self.pipeline_parallel - 1

    @property
    def output_rank(self) -> int:
        """The rank that has the logits: first tensor rank of the last stage."""
        return self.world_size - self.tensor_parallel

    def layers(self, count: int) -> range:
        """The contiguous block of `count` layers that this stage owns; the first stages get the remainder."""
        each, more = divmod(count, self.pipeline_parallel)
        start = self.stage * each + min(self.stage, more)
        return range(start, start + each + (self.stage < more))

    def share(self, count: int) -> range:
        """This rank's part of `count` things: equal parts, the last ones shorter (or empty) if they do not divide."""
        each = -(-count // self.tensor_parallel)
        return range(min(self.tensor_rank * each, count), min((self.tensor_rank + 1) * each, count))


def check_sizes(sizes: Hyperparameters, tensor_parallel: int, pipeline_parallel: int) -> None:
    """Raises ModelError, saying which sizes do divide, unless the model can be split like this."""

    def divides(size: int) -> bool:
        return not (sizes.heads % size or sizes.kv_heads % size or sizes.feed_forward % size)

    possible = [size for size in range(1, sizes.kv_heads + 1) if divides(size)]
    wrong = ""
    if tensor_parallel not in possible:
        if tensor_parallel < 1:
            wrong = f"TP {tensor_parallel} is below 1"
        elif sizes.heads % tensor_parallel or sizes.kv_heads % tensor_parallel:
            wrong = f"TP {tensor_parallel} does not divide {sizes.heads} heads and {sizes.kv_heads} key-value heads"
        else:
            wrong = f"TP {tensor_parallel} does not divide the feed-forward size {sizes.feed_forward}"
    elif not 1 <= pipeline_parallel <= sizes.layers:
        wrong = f"PP {pipeline_parallel} does not split {sizes.layers} layers"
    if wrong:
        *some, last = map(str, possible)
        choice = f"{', '.join(some)} or {last}" if some else last
        raise ModelError(f"{wrong}; TP can be {choice}; PP can be 1 to {sizes.layers}")


_RING_ABOVE = 1 << 16  # values: from here on it is the bytes through one rank that count, not the steps


def _wait(works: Iterable[dist.Work | None]) -> None:
    for work in list(works):  # all are begun before the first is waited for
        if work is not None:  # None would be for a rank outside the group
            work.wait()


class Groups:
    """The exchanges of one rank. Each call is made by all ranks concerned or by none."""

    def __init__(
        self, layout: Layout, init_method: str | None = None, timeout: timedelta = timedelta(seconds=300)
    ) -> None:
        """Makes all groups, which waits for all ranks. `init_method` goes to torch.distributed as it is."""
        self.layout = layout
        self._tensor: dist.ProcessGroup | None = None
        self._chain: dist.ProcessGroup | None = None
        if layout.world_size == 1:
            return
        # All ranks are on this machine, and nobody else has business with their sockets.
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group(
            "gloo", init_method=init_method, rank=layout.rank, world_size=layout.world_size, timeout=timeout
        )
        width, depth = layout.tensor_parallel, layout.pipeline_parallel
        if width > 1:
            for stage in range(depth):
                group = dist.new_group(list(range(stage * width, (stage + 1) * width)), timeout, "gloo")
                if stage == layout.stage:
                    self._tensor = group
        if depth > 1:
            for tensor_rank in range(width):
                group = dist.new_group(list(range(tensor_rank, layout.world_size, width)), timeout, "gloo")
                if tensor_rank == layout.tensor_rank:
                    self._chain = group

    def add_up(self, partial: torch.Tensor) -> torch.Tensor:
        """The sum of the tensor group's `partial` (contiguous float32, any shape), in place; the same bits on every
        rank.

        Small ones go to the group's first rank and come back as a sum, in the order of ranks: two messages a rank,
        and at each the waiting thread is woken directly. gloo's ring makes twice as many steps and hands each to a
        thread of its own; at one decoded token, where all is latency, it takes 2 times as long.
        """
        group = self._tensor
        if group is None:
            return partial
        if partial.numel() > _RING_ABOVE:
            dist.all_reduce(partial, group=group)
            return partial
        root = self.layout.stage * self.layout.tensor_parallel
        if self.layout.rank != root:
            dist.send(partial, root, group)
            dist.recv(partial, root, group)
            return partial
        peers = range(root + 1, root + self.layout.tensor_parallel)
        theirs = [torch.empty_like(partial) for _ in peers]
        _wait(dist.irecv(part, peer, group) for peer, part in zip(peers, theirs, strict=True))
        for part in theirs:
            partial += part
        _wait(dist.isend(partial, peer, group) for peer in peers)
        return partial

    def send_on(self, activations: torch.Tensor) -> None:
        """Hands contiguous `activations` to the same tensor rank of the next stage."""
        dist.send(activations, self.layout.rank + self.layout.tensor_parallel, group=self._chain)

    def receive(self, activations: torch.Tensor) -> torch.Tensor:
        """Fills `activations` with what the same tensor rank of the previous stage sends on."""
        dist.recv(activations, self.layout.rank - self.layout.tensor_parallel, group=self._chain)
        return activations

    def collect_columns(self, part: torch.Tensor, columns: int) -> torch.Tensor | None:
        """On the group's first rank the parts side by side, cut to `columns`; elsewhere None. `part` is
        [rows, n] with the same n on every rank."""
        if self._tensor is None:
            return part[:, :columns]
        root = self.layout.stage * self.layout.tensor_parallel
        if self.layout.rank != root:
            dist.gather(part, None, root, group=self._tensor)
            return None
        parts = [torch.empty_like(part) for _ in range(self.layout.tensor_parallel)]
        dist.gather(part, parts, root, group=self._tensor)
        return torch.cat(parts, dim=1)[:, :columns]
