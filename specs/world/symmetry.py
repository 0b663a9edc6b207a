"""Ranks that may change places, in a world where nothing tells them apart but their numbers.

Theory of operation:

1. A rank's *share* of a state is its own part without its number, and its slot in each of the executor's clusters. Two
   states whose shares differ only in their order are the same to every property that names no rank; the canonical one
   has its shares sorted, by the executor's slots first: so few of the executor's states are ever met.
2. Processes are made in the order of ranks, so those that do not exist yet come last: a rank's place among them stays.
3. What names a rank elsewhere keeps the ranks apart: calls (a thread waits for rank 1), survivors (a bit a rank),
   stale words. Such worlds are refused.
"""

from __future__ import annotations

from itertools import count
from operator import add
from typing import Any

from ...protocol.core import State
from ...protocol.core.cluster import ClusterState
from ...protocol.executor import ExecutorState
from ...protocol.shutdown import RankStop
from .parts import Parts, node
from .rank import Rank
from .state import Now
from .words import Message, Node

_CHANNELS = ("control", "calls", "joins", "replies", "joined")
_CLUSTERS = ("start", "broadcast", "replies", "stop")  # the last says whether there is a process
_SLOTS = 1 << 24  # more than there are distinct shares, so that a sum stands for a pair
_LAST = 1 << 60


class Symmetry:
    """The canonical form; see the module's theory of operation."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._numbers = count(1)
        self._shares: dict[object, int] = {}

    def __call__(self, now: Now) -> Now:
        """The state of its class whose shares are sorted."""
        executor, threads, ghost, ranks = now
        keys = self._keys(executor, ranks)
        ordered = sorted(keys)
        if keys == ordered:
            return now
        order = tuple(map(keys.index, ordered))  # of equal ones, one stands for all
        after = executor.memo.get(order)
        if after is None:
            after = executor.memo[order] = node(self._parts.executors, _reordered(executor.value, order))
        renamed = tuple([self._renamed(ranks[old], new) for new, old in enumerate(order)])
        return Now(after, threads, ghost, renamed)

    def distinct(self, now: Now) -> list[int]:
        """Of a canonical state: the ranks that differ from the one before, so that each share is met once."""
        keys = self._keys(now.executor, now.ranks)
        return [number for number, key in enumerate(keys) if not number or key != keys[number - 1]]

    def _keys(self, executor: Node[ExecutorState], ranks: tuple[Node[Rank], ...]) -> list[int]:
        slots = executor.memo.get("slots") or self._of_executor(executor)
        return list(map(add, [own.memo.get("share") or self._of_rank(own) for own in ranks], slots))

    def _of_rank(self, part: Node[Rank]) -> int:
        share = part.memo["share"] = self._number(_as(part.value, 0))
        return share

    def _of_executor(self, part: Node[ExecutorState]) -> tuple[int, ...]:
        slots = zip(*(getattr(part.value, name)[1:] for name in _CLUSTERS), strict=True)
        keys = part.memo["slots"] = tuple(map(self._of_slot, slots))
        return keys

    def _of_slot(self, slot: tuple[State, ...]) -> int:
        return _LAST if slot[-1] is RankStop.ABSENT else self._number(slot) * _SLOTS

    def _number(self, share: object) -> int:
        known = self._shares.get(share)
        if known is None:
            known = self._shares[share] = next(self._numbers)
        return known

    def _renamed(self, part: Node[Rank], number: int) -> Node[Rank]:
        if part.value.number == number:
            return part
        key = "as", number
        known: Node[Rank] | None = part.memo.get(key)
        if known is None:
            known = part.memo[key] = node(self._parts.ranks, _as(part.value, number))
        return known


def _as(rank: Rank, number: int) -> Rank:
    channels: dict[str, Any] = {name: _said_by(number, getattr(rank, name)) for name in _CHANNELS}
    return rank._replace(number=number, **channels)


def _said_by(number: int, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(one._replace(identity=one.identity._replace(rank=number)) for one in messages)


def _reordered(state: ExecutorState, order: tuple[int, ...]) -> ExecutorState:
    clusters: dict[str, Any] = {}
    for name in _CLUSTERS:
        cluster: ClusterState = getattr(state, name)
        clusters[name] = (cluster[0], *(cluster[1 + old] for old in order))
    return state._replace(**clusters)
