"""The worker that the suite gives to our executor: it does what a program asks of it."""

from __future__ import annotations

import faulthandler
import os
import signal
from pathlib import Path
from typing import Any

from ..specs.stateful.adapter import Ask, Deed, Flaw
from ..specs.stateful.work import Bulk, perform

STACKS = signal.SIGUSR2


class Hand:
    """A worker; with a flaw in its start, if it has one."""

    def __init__(self, *, rank: int, folder: str, flaw: Flaw | None, **_: Any) -> None:
        self.rank = rank
        self._flaw = flaw if flaw is not None and flaw.rank == rank else None
        if folder:
            self._show_stacks(folder)

    def _show_stacks(self, folder: str) -> None:
        # Kept open: a signal writes every thread's stack into it, for whoever wants to know where this rank hangs.
        self._stacks = Path(folder, f"{self.rank}.stacks").open("w")  # noqa: SIM115 - for the whole life of the process
        faulthandler.register(STACKS, self._stacks, all_threads=True)

    def _reached(self, phase: str) -> None:
        if self._flaw is not None and self._flaw.phase == phase:
            if self._flaw.deed is Deed.EXIT:
                os._exit(7)
            raise ValueError(f"rank {self.rank} was asked to fail in {phase}")

    def init_device(self) -> None:
        """The device's phase."""
        self._reached("init_device")

    def load_model(self) -> None:
        """The model's phase."""
        self._reached("load_model")

    def perform(self, ask: Ask, data: Bulk | None) -> Any:
        """One call."""
        return perform(self.rank, ask, data)
