"""Waits for what must have come to its end, and judges what has: each outcome, answer and callback.

Theory of operation. A call's first outcome is noted with the call; whoever asks later must hear the same.
"""

from __future__ import annotations

from typing import Any

from .adapter import Ask, Can, Deed, Kind, Outcome
from .finding import Finding
from .known import Known
from .op import Op, eventually
from .record import Asked, Underway, same_bytes
from .work import answer


class Judge(Known):
    """What is known of a program, and what it is held to."""

    def _await(self, op: Op) -> None:
        if not op.wait(self.bound):
            raise Finding("hang", f"{op.name}: not done after {self.bound} s")

    def _settle(self) -> None:
        """Wait for what must be done, and judge what is."""
        for one in list(self.under_way):
            must = [self._must(token) for token in one.tokens]
            if one.brief or (any(must) if one.first else all(must)):
                self._await(one.op)
            if one.op.done:
                one.op.wait(self.bound)
                self.under_way.remove(one)
                one.judge(one)
        self._settle_watchers()
        self._settle_failure()

    def _called(self, one: Underway, brief: bool = False) -> None:
        asked = self.calls[one.tokens[0]]
        error = one.op.error
        if brief and error is not None and self.adapter.outcome(error).kind is Kind.TIMED_OUT:
            if asked.outcome is not None and asked.outcome.kind is not Kind.TIMED_OUT:
                raise Finding(
                    "future", f"call {asked.token} had come out, and its result is not there at once"
                )
            return  # the wait took too long, and the call goes on
        self._note(asked, error, one.op.value)

    def _note(self, asked: Asked, error: BaseException | None, value: Any) -> None:
        outcome = Outcome(Kind.ANSWER) if error is None else self._normal(asked, self.adapter.outcome(error))
        if asked.outcome is not None and not asked.outcome.fits(outcome):
            raise Finding(
                "once", f"call {asked.token} came out as {asked.outcome}, and now as {outcome}{told(error)}"
            )
        allowed = self._may(asked)
        if not asked.sent and asked.ask.brief:
            allowed |= {Outcome(Kind.TIMED_OUT)}
        if not any(outcome.fits(one) for one in allowed):
            words = ", or ".join(sorted(map(str, allowed))) or "nothing yet"
            raise Finding("outcome", f"{asked.ask}: {outcome}; allowed: {words}{told(error)}")
        if outcome.kind is Kind.ANSWER:
            self._same(asked.ask, value)
            for rank in self.ranks:
                rank.saw(asked.token)
        if outcome.kind is Kind.DIED and outcome.rank is not None:
            if self.cause not in (None, outcome.rank):
                raise Finding("cause", f"call {asked.token} names rank {outcome.rank}, not rank {self.cause}")
            self.cause = outcome.rank
        asked.outcome = outcome

    def _normal(self, asked: Asked, outcome: Outcome) -> Outcome:
        """What cannot be sent is reported by one side or the other, and in one word or another."""
        if outcome.kind in (Kind.RAISED, Kind.PAYLOAD):
            if asked.ask.deed is Deed.UNPICKLABLE:
                return outcome._replace(kind=Kind.RAISED)
            if asked.ask.deed is Deed.UNREADABLE:
                return Outcome(Kind.PAYLOAD)
        return outcome

    def _same(self, ask: Ask, value: Any) -> None:
        wanted = answer(ask, len(self.ranks))
        if not same_bytes(value, wanted):
            raise Finding("answer", f"{ask}: got {str(value)[:300]}, not {str(wanted)[:300]}")

    def _waited(self, one: Underway) -> None:
        if one.op.error is not None:
            raise Finding("future", f"wait raised{told(one.op.error)}")
        done = one.op.value.done
        if not one.first and one.op.value.not_done:
            raise Finding("future", "wait for all returned, and not all are done")
        if not done and one.tokens:
            raise Finding("future", "wait returned, and none is done")

    def _completed(self, one: Underway) -> None:
        if one.op.error is not None:
            raise Finding("future", f"as_completed raised{told(one.op.error)}")
        if len(one.op.value) != len(one.tokens) or len(set(map(id, one.op.value))) != len(one.tokens):
            raise Finding("once", "as_completed gave a future twice, or not at all")

    def _settle_watchers(self) -> None:
        for token, asked in self.calls.items():
            if asked.watchers and self._must(token):
                count = asked.watchers
                told = asked.told
                if not eventually(lambda told=told, count=count: len(told) >= count, self.bound):  # type: ignore[misc]  # mypy takes a default for a parameter without a type
                    raise Finding("hang", f"call {token} is settled, and its callback was not told")
            if len(asked.told) > asked.watchers:
                raise Finding("once", f"a callback of call {token} was told {len(asked.told)} times")

    def _settle_failure(self) -> None:
        if not self.running or Can.KILL in self.adapter.lacks:
            return
        must = bool(self._dead(may=False)) and not self.stop_begun
        if must:
            if not eventually(self.adapter.failed, self.bound):
                raise Finding("failed", "a rank died, and the executor does not say that it failed")
            for listening in self.listening:
                if not eventually(lambda one=listening: one.count, self.bound):  # type: ignore[misc]  # as above
                    raise Finding("callback", "the executor failed, and a callback was not called")
        elif not self.may_fail and self.adapter.failed():
            raise Finding("failed", "nothing failed, and the executor says that it did")
        self._callbacks()

    def _callbacks(self) -> None:
        counts = [listening.count for listening in self.listening]
        if any(count > 1 for count in counts):
            raise Finding("callback", f"a failure callback was called {max(counts)} times")
        if any(counts) and not self.may_fail:
            raise Finding("callback", "a failure callback was called, and nothing failed")


def told(error: BaseException | None) -> str:
    return "" if error is None else f" ({type(error).__name__}: {error})"
