"""What is known of one program: its executor, its ranks, its calls; what it may do next, and what calls may come to.

Theory of operation. Which steps make sense is said from the program alone, never from what the executor did: so a
program that is drawn once can be done again.
"""

from __future__ import annotations

import concurrent.futures
import tempfile
from typing import Any

from .adapter import Adapter, Deed, Kind, Outcome, Plan
from .allowed import Facts, is_settled, outcomes
from .program import Step
from .rank import RankModel
from .record import Asked, Listening, Underway

BOUND = 30.0  # seconds for a step; nothing that is right comes near it, even on a loaded machine
MOST_CALLS = 12  # that a program may have under way at once


class Known:
    """One program on one adapter."""

    def __init__(self, adapter: Adapter, bound: float = BOUND) -> None:
        self.adapter = adapter
        self.bound = bound
        self.program: list[Step] = []
        self.plan: Plan | None = None  # of the executor that runs
        self.ranks: list[RankModel] = []
        self.calls: dict[int, Asked] = {}
        self.under_way: list[Underway] = []
        self.listening: list[Listening] = []
        self.stop_begun = False
        self.stop_done = False
        self.cause: int | None = None  # the rank that the executor's failure names
        self.traces: list[list[str]] = []
        self._tokens = 0
        self._folder = tempfile.TemporaryDirectory(prefix="procession-suite-")

    @property
    def running(self) -> bool:
        """Whether there is an executor that nobody stopped."""
        return self.plan is not None and not self.stop_done

    @property
    def all_free(self) -> bool:
        """Whether every rank answers whatever comes, and nothing has failed."""
        return self.running and all(rank.free for rank in self.ranks)

    @property
    def may_fail(self) -> bool:
        """Whether the executor may have failed."""
        return any(rank.may_be_dead for rank in self.ranks)

    def can_call(self) -> bool:
        """Whether a call can be made that is sent at once, or refused."""
        if not self.running or self.plan is None:
            return False
        owed = sum(1 for call in self.calls.values() if call.outcome is None or not self._all_said(call))
        return self.all_free or owed < min(self.plan.room, MOST_CALLS)

    def open_calls(self) -> list[int]:
        """Calls of which the program holds a future."""
        return [token for token, call in self.calls.items() if call.future is not None]

    def gated(self) -> list[int]:
        """Calls whose gate is shut."""
        return [token for token, call in self.calls.items() if call.gate >= 0 and not call.gate_open]

    def _all_said(self, call: Asked) -> bool:
        return all(self._replies(call, rank, rank.must().said) for rank in self.ranks)

    def _future(self, token: int) -> concurrent.futures.Future[Any]:
        future = self.calls[token].future
        if future is None:
            raise ValueError(f"there is no future of call {token}")
        return future

    # --- what must be, and what may ---------------------------------------------------------------------------------

    def _replies(self, call: Asked, rank: RankModel, said: int) -> Kind | None:
        for index, ask in enumerate(rank.asks[:said]):
            if index < said and ask is call.ask:
                deed = ask.does(rank.number)
                if deed is Deed.UNREADABLE:
                    return Kind.PAYLOAD
                return Kind.RAISED if deed in (Deed.RAISE, Deed.UNPICKLABLE) else Kind.ANSWER
        return None

    def _may(self, call: Asked) -> frozenset[Outcome]:
        if call.ask.deed is Deed.ARGUMENT:
            refused = {Outcome(Kind.PAYLOAD)}
            refused |= {Outcome(Kind.CLOSED)} if self.stop_begun else set()
            return frozenset(refused) | frozenset(self._deaths(self._dead(may=True)))
        found = outcomes(
            Facts(
                tuple(self._replies(call, rank, rank.may().said) for rank in self.ranks),
                self._dead(may=True),
                self.stop_begun,
                call.ask.brief,
                call.cancelled,
            )
        )
        return frozenset({Outcome(Kind.CANCELLED)}) if call.cancelled else found

    def _dead(self, may: bool) -> frozenset[int]:
        return frozenset(
            rank.number for rank in self.ranks if (rank.may_be_dead if may else rank.must_be_dead)
        )

    def _deaths(self, ranks: frozenset[int]) -> set[Outcome]:
        return {Outcome(Kind.DIED, rank) for rank in ranks}

    def _must(self, token: int) -> bool:
        """Whether the call must have come out by now."""
        call = self.calls[token]
        if call.outcome is not None or not call.sent:
            return True
        return is_settled(
            Facts(
                tuple(self._replies(call, rank, rank.must().said) for rank in self.ranks),
                self._dead(may=False),
                self.stop_begun,
                call.ask.brief,
                call.cancelled,
            )
        )
