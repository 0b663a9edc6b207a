"""What a peer is: processes that are started, called, and stopped; and what they are asked to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
Payload = NDArray[np.uint8]


class Reply:
    """Who returns the payload. Plain strings: an enum's member would cost each side microseconds to pickle.

    SUM: every rank answers with a check sum, for which it read one byte of each page of the payload.
    """

    ALL: Final = "all ranks"
    ONE: Final = "one rank"
    SUM: Final = "one way"


REPLIES = (Reply.ALL, Reply.ONE, Reply.SUM)


class Request(NamedTuple):
    """One call. `busy`: seconds of computing in each worker before it answers."""

    reply: str
    payload: Payload | None = None
    busy: float = 0.0


class GaveUpError(Exception):
    """No answer came in time, and nobody said why."""


class Peer(Protocol):
    """An executor, or what could stand for one; started and stopped once. It may raise whatever its library raises."""

    @property
    def pids(self) -> list[int]:
        """The worker processes; the last one is what is killed, where that is measured."""

    def start(self, ranks: int) -> None:
        """Start `ranks` processes. They need not be ready: the first call waits for that."""

    def call(self, request: Request, timeout: float) -> list[Any]:
        """One call to every rank, and what they answer: one item for `Reply.ONE`, else one a rank."""

    def submit(self, request: Request) -> None:
        """Send a call and return."""

    def collect(self, timeout: float) -> list[Any]:
        """The answers of the oldest call that was submitted and not collected."""

    def stop(self) -> None:
        """End every process and wait for their end. After a failure, too."""


@dataclass(frozen=True)
class Entry:
    """A peer that can be asked for by name.

    missing: why it cannot be measured here ("not installed"), or None.
    largest: bytes of the largest payload that it can carry; None: any.
    restless: it computes even when nobody calls it, so it is stopped (SIGSTOP) while others are measured.
    stepping: it is there for the cost of stepping and recording alone, and only makes empty calls.
    """

    name: str
    what: str
    make: Callable[[], Peer]
    missing: str | None = None
    largest: int | None = None
    restless: bool = False
    stepping: bool = False


def payload(size: int) -> Payload | None:
    """A payload of `size` bytes, the same in each run; None for 0."""
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8) if size else None


def check_sum(array: Payload | None) -> int:
    """Reads one byte of each page. Two payloads that differ only in the first byte have two sums."""
    return 0 if array is None else int(array[::PAGE].sum())


def wrong(request: Request, ranks: int, answers: list[Any], expected: int) -> str | None:
    """Reads the answers; what is wrong with them, or None."""
    count = 1 if request.reply == Reply.ONE else ranks
    if len(answers) != count:
        return f"{len(answers)} answers instead of {count}"
    sums = answers if request.reply == Reply.SUM else [check_sum(answer) for answer in answers]
    return None if all(found == expected for found in sums) else f"check sums {sums} instead of {expected}"
