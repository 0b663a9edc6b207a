"""What a program knows of its own calls, callbacks and threads."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .adapter import Ask, Outcome
from .op import Op


@dataclass(eq=False)
class Asked:
    """A call that was made. `gate` is the descriptor of its gate's pipe, or -1."""

    ask: Ask
    gate: int = -1
    gate_open: bool = False
    op: Op | None = None
    future: concurrent.futures.Future[Any] | None = None
    sent: bool = False
    cancelled: bool = False
    outcome: Outcome | None = None
    watchers: int = 0
    told: list[int] = field(default_factory=list)

    @property
    def token(self) -> int:
        """The call's own number."""
        return self.ask.token

    def open_gate(self, ranks: int) -> None:
        """Let every rank through."""
        self.gate_open = True
        if self.gate >= 0:
            os.write(self.gate, b"x" * ranks)

    def close(self) -> None:
        """Close the gate's pipe, and remove it."""
        if self.gate >= 0:
            os.close(self.gate)
            self.gate = -1
            Path(self.ask.gate).unlink(missing_ok=True)


@dataclass(eq=False)
class Underway:
    """Something that a thread is doing, and how it is judged when it has come to its end."""

    op: Op
    tokens: tuple[int, ...]
    judge: Callable[[Underway], None]
    first: bool = False  # it ends with the first of the calls, not the last
    brief: bool = False  # it ends soon, whatever the call does


class Listening:
    """A failure callback, which counts."""

    def __init__(self, then: Callable[[], object] | None) -> None:
        self.count = 0
        self._then = then

    def __call__(self) -> None:
        """Called by the executor."""
        self.count += 1
        if self._then is not None:
            self._then()


def gate(folder: str, token: int) -> tuple[str, int]:
    """A fresh pipe with a name: its path, and a descriptor that keeps it open at both ends."""
    path = Path(folder, f"gate-{token}")
    os.mkfifo(path)
    return str(path), os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def same_bytes(value: object, wanted: object) -> bool:
    """Whether they are equal; a comparison that fails is a difference."""
    try:
        return bool(value == wanted)
    except Exception:  # noqa: BLE001 - what came back may be anything
        return False
