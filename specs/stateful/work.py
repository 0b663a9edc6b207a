"""What a rank does when a program asks it to: in the rank's process, of whatever executor.

Theory of operation. An answer names its rank and its call, and carries as many bytes as came with the call, so no
answer can be taken for another's. Large ones are pickled out of band, as arrays are. A gate is a pipe of the driver's,
opened through procfs: a rank that reads it goes on when the driver writes, whatever the executor.
"""

from __future__ import annotations

import os
import pickle
import threading
from typing import Any, NoReturn

from .adapter import Ask, Deed

EXIT_CODE = 7


class Bulk:
    """Bytes that are pickled out of band, like an array's, where the protocol has that."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Bulk, (pickle.PickleBuffer(self.data) if protocol >= 5 else bytes(self.data),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bulk) and memoryview(self.data) == memoryview(other.data)

    __hash__ = None  # type: ignore[assignment]  # it is compared, and never a key

    def __repr__(self) -> str:
        data = bytes(self.data)
        return f"Bulk({len(data)} bytes of {sorted(set(data))[:4]})"


def _explode() -> NoReturn:
    raise ValueError("cannot be read")


class Poison:
    """It pickles, and does not unpickle."""

    def __reduce__(self) -> Any:
        return _explode, ()


def payload(ask: Ask) -> Bulk | None:
    """What travels with the call, and comes back."""
    return Bulk(bytes([ask.token % 251]) * ask.size) if ask.size else None


def perform(rank: int, ask: Ask, data: Bulk | None) -> Any:
    """One call on one rank."""
    deed = ask.does(rank)
    if deed is Deed.RAISE:
        raise ValueError(f"rank {rank} was asked to raise in call {ask.token}")
    if deed is Deed.UNPICKLABLE:
        return threading.Lock()
    if deed is Deed.UNREADABLE:
        return Poison()
    if deed is Deed.EXIT:
        os._exit(EXIT_CODE)
    if deed is Deed.GATE:
        gate = os.open(ask.gate, os.O_RDONLY)
        try:
            os.read(gate, 1)
        finally:
            os.close(gate)
    return rank, ask.token, data


def answer(ask: Ask, ranks: int) -> Any:
    """What the caller must get."""
    answers = [(rank, ask.token, payload(ask)) for rank in range(ranks)]
    if ask.merged:
        return merge(answers)
    return answers if ask.reply is None else answers[ask.reply]


def merge(answers: list[Any]) -> Any:
    """What the aggregator makes of all answers."""
    return ("merged", tuple(answers))
