"""Does the steps of a program on a real executor, and holds what comes of them to what the tables allow.

Theory of operation. `do` performs one step, then `_settle` looks at everything that is under way: what must have come
to its end by now is waited for, within the bound, and what has is judged. So every step ends in a state that the
program alone determines, up to the orders that nobody can know.
"""

from __future__ import annotations

import concurrent.futures
import functools
import threading
from collections.abc import Callable
from typing import Any

from ..trace import validate
from .adapter import Ask, Can, Deed, Flaw, Kind, Outcome, Plan
from .explain import explain
from .finding import Finding
from .judge import Judge, told
from .op import Op, eventually
from .program import Step
from .rank import RankModel
from .record import Asked, Listening, Underway, gate


class Driver(Judge):
    """One program on one adapter. `finish` it, however it ended."""

    # --- steps ------------------------------------------------------------------------------------------------------

    def do(self, step: Step) -> None:
        """Do one step. Raises `Finding`, with everything that helps to see why."""
        self.program.append(step)
        deed: Callable[..., None] | None = getattr(self, f"do_{step.word}", None)
        if deed is None:
            known = ", ".join(sorted(name[3:] for name in dir(self) if name.startswith("do_")))
            raise ValueError(f"there is no step {step.word!r}; there are: {known}")
        try:
            deed(**step.options)
            self._settle()
        except Finding as finding:
            explain(self, finding)
            raise

    def do_start(
        self,
        ranks: int = 2,
        method: str = "",
        room: int = 64,
        patient: int = 0,
        flaw: str = "",
        who: int = 0,
        deed: str = "raise",
        point: str = "",
        then: str = "release",
    ) -> None:
        """A start; with a flaw, or with a rank held at a step of its start and then killed or released."""
        self._end_of_life()
        held = (who, point.replace(":", " ")) if point else None
        bad = Flaw(flaw, who, Deed[deed.upper()]) if flaw else None
        plan = Plan(ranks, method or self.adapter.methods[0], room, bool(patient), bad, held)
        op = Op("start", functools.partial(self.adapter.start, plan))
        wanted: Outcome | None = None
        if flaw:
            wanted = Outcome(Kind.RAISED if deed == "raise" else Kind.DIED, who)
        if held is not None:
            if not self.adapter.held(who, self.bound):
                raise Finding("hold", f"rank {who} never came to {held[1]}")
            if then == "kill":
                wanted = Outcome(Kind.DIED, who)
                self.adapter.kill(who)
            else:
                self.adapter.release(who)
        self._await(op)
        got = None if op.error is None else self.adapter.outcome(op.error)
        if (wanted is None) != (got is None) or (
            wanted is not None and got is not None and not wanted.fits(got)
        ):
            raise Finding("start", f"expected {wanted or 'success'}, got {got or 'success'}{told(op.error)}")
        self._born(plan, started=got is None)

    def _born(self, plan: Plan, started: bool) -> None:
        self.plan = plan
        self.ranks = [RankModel(number) for number in range(plan.ranks)] if started else []
        self.calls, self.under_way, self.listening = {}, [], []
        self.stop_begun = self.stop_done = not started
        self.cause = None
        self._tokens = 0
        if not started:
            self._end_of_life()

    def do_call(self, **options: Any) -> None:
        """A blocking call, in a thread of its own."""
        asked = self._asked(**options)
        self._sent(asked, functools.partial(self.adapter.call, asked.ask))
        assert asked.op is not None
        self.under_way.append(Underway(asked.op, (asked.token,), self._called))

    def do_future(self, **options: Any) -> None:
        """A call that returns a future."""
        asked = self._asked(**options)
        self._sent(asked, functools.partial(self.adapter.future, asked.ask))
        op = asked.op
        assert op is not None
        self._await(op)
        if op.error is not None:
            # A call that is refused at once is a future that has failed: what a program may do next is the same.
            asked.future = concurrent.futures.Future()
            asked.future.set_exception(op.error)
            self._note(asked, op.error, None)
        else:
            asked.future = op.value

    def _asked(
        self,
        deed: str = "echo",
        who: int = -1,
        size: int = 0,
        reply: int = -1,
        merged: int = 0,
        brief: int = 0,
    ) -> Asked:
        self._tokens += 1
        what = Deed[deed.upper()]
        path, number = gate(self._folder.name, self._tokens) if what is Deed.GATE else ("", -1)
        only, wanted = (None if n < 0 else n for n in (who, reply))
        ask = Ask(self._tokens, what, only, size, wanted, bool(merged), bool(brief), path)
        asked = self.calls[ask.token] = Asked(ask, number)
        return asked

    def _sent(self, asked: Asked, work: Callable[[], Any]) -> None:
        """Begin a call, and come back when it was sent, or has come to its end without."""
        before = self.adapter.sent()
        asked.op = op = Op(str(asked.ask), work)
        if not eventually(lambda: op.done or self.adapter.sent() > before, self.bound):
            raise Finding("hang", f"{asked.ask}: neither sent nor refused within {self.bound} s")
        if self.adapter.sent() > before:
            asked.sent = True
            for rank in self.ranks:
                rank.asks.append(asked.ask)

    def do_result(self, call: int, brief: int = 0) -> None:
        """Ask a future for its result, perhaps with little patience."""
        future = self._future(call)
        op = Op(f"result of call {call}", lambda: future.result(0.01 if brief else None))
        judge = functools.partial(self._called, brief=bool(brief))
        self.under_way.append(Underway(op, (call,), judge, brief=bool(brief)))

    def do_wait(self, first: int = 0) -> None:
        """`concurrent.futures.wait` for every future, or the first."""
        tokens = tuple(self.open_calls())
        futures = [self._future(token) for token in tokens]
        when = concurrent.futures.FIRST_COMPLETED if first else concurrent.futures.ALL_COMPLETED
        op = Op("wait", lambda: concurrent.futures.wait(futures, return_when=when))
        self.under_way.append(Underway(op, tokens, self._waited, first=bool(first)))

    def do_each(self) -> None:
        """`concurrent.futures.as_completed` over every future."""
        tokens = tuple(self.open_calls())
        futures = [self._future(token) for token in tokens]
        op = Op("as_completed", lambda: list(concurrent.futures.as_completed(futures)))
        self.under_way.append(Underway(op, tokens, self._completed))

    def do_cancel(self, call: int) -> None:
        """Cancel a call."""
        asked, future = self.calls[call], self._future(call)
        op = Op(f"cancel call {call}", future.cancel)
        self._await(op)
        if op.error is not None:
            raise Finding("future", f"cancel of call {call} raised{told(op.error)}")
        if op.value and asked.outcome is not None and asked.outcome.kind is not Kind.CANCELLED:
            raise Finding(
                "once", f"call {call} had come out as {asked.outcome}, and says that it is cancelled"
            )
        asked.cancelled = asked.cancelled or bool(op.value)
        if not op.value and not future.done():
            raise Finding("future", f"call {call} is not done, and cannot be cancelled")

    def do_drop(self, call: int) -> None:
        """Forget a future."""
        self.calls[call].future = None
        self.calls[call].op = None

    def do_watch(self, call: int) -> None:
        """Have a callback told when a call is done."""
        asked = self.calls[call]
        asked.watchers += 1
        self._future(call).add_done_callback(lambda _: asked.told.append(threading.get_ident()))

    def do_open(self, call: int) -> None:
        """Open a gate."""
        self.calls[call].open_gate(len(self.ranks))
        for rank in self.ranks:
            rank.opened.add(call)

    def do_swarm(self, threads: int = 3, calls: int = 5, size: int = 0) -> None:
        """Several threads, each of which makes calls one after the other; every rank is free."""
        asks = [
            [self._next_ask(size, reply if reply < len(self.ranks) else None) for _ in range(calls)]
            for reply in range(threads)
        ]
        ops = [Op(f"swarm {number}", functools.partial(self._many, mine)) for number, mine in enumerate(asks)]
        for op in ops:
            self._await(op)
            if op.error is not None:
                raise Finding("outcome", f"{op.name}: every rank was free, and a call failed{told(op.error)}")
            for ask, value in op.value:
                self._same(ask, value)

    def _next_ask(self, size: int, reply: int | None) -> Ask:
        self._tokens += 1
        return Ask(self._tokens, size=size, reply=reply)

    def _many(self, asks: list[Ask]) -> list[tuple[Ask, Any]]:
        return [(ask, self.adapter.call(ask)) for ask in asks]

    def do_kill(self, rank: int) -> None:
        """SIGKILL a rank."""
        self.ranks[rank].kill()
        self.adapter.kill(rank)

    def do_pause(self, rank: int) -> None:
        """SIGSTOP a rank."""
        self.ranks[rank].stop()
        self.adapter.pause(rank)

    def do_resume(self, rank: int) -> None:
        """SIGCONT a rank."""
        self.ranks[rank].resume()
        self.adapter.resume(rank)

    def do_hold(self, rank: int, event: str) -> None:
        """Hold a rank at a step of the next call."""
        model = self.ranks[rank]
        model.hold = (len(model.asks), event)
        self.adapter.hold(rank, f"serve.serve {event}", self.adapter.sent() + 1)

    def do_release(self, rank: int) -> None:
        """A rank that is held goes on. If it must have come there, it has."""
        model = self.ranks[rank]
        if model.must().held and not self.adapter.held(rank, self.bound):
            raise Finding("hold", f"rank {rank} never came to where it is to be held")
        model.hold = None
        self.adapter.release(rank)

    def do_listen(self, then: str = "") -> None:
        """Register a failure callback, which may stop the executor."""
        listening = Listening(self.adapter.stop if then == "stop" else None)
        self.listening.append(listening)
        self.adapter.listen(listening)

    def do_stop(self, threads: int = 1) -> None:
        """Stop, from one or several threads at once. Ranks that a stop waits for are freed first."""
        if self.plan is not None and (self.plan.patient or Can.STOP_STUCK in self.adapter.lacks):
            self._free()
        self.stop_begun = True
        ops = [Op(f"stop {number}", self.adapter.stop) for number in range(threads)]
        for op in ops:
            self._await(op)
            if op.error is not None:
                raise Finding("stop", f"a stop raised{told(op.error)}")
        self.stop_done = True
        self._settle()
        self._refused()
        self._end_of_life()

    def _refused(self) -> None:
        """After a stop, a call fails at once."""
        op = Op("a call after the stop", functools.partial(self.adapter.call, self._next_ask(0, None)))
        self._await(op)
        got = Outcome(Kind.ANSWER) if op.error is None else self.adapter.outcome(op.error)
        if got.kind is not Kind.CLOSED and not (got.kind is Kind.DIED and self.may_fail):
            raise Finding("outcome", f"a call after the stop: {got}; allowed: {Kind.CLOSED.value}")

    def do_orphan(self, ranks: int = 2, method: str = "") -> None:
        """An executor in a process of its own, which is killed."""
        left = self.adapter.orphan(ranks, method or self.adapter.methods[0], self.bound)
        if left:
            raise Finding("orphan", "; ".join(left))

    def _free(self) -> None:
        for token in self.gated():
            self.do_open(token)
        for rank in self.ranks:
            if rank.stopped:
                self.do_resume(rank.number)
            if rank.hold is not None:
                rank.hold = None
                self.adapter.release(rank.number)
        self._settle()

    # --- the end ----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """The end of the program: stop what runs, and look at what is left. Call it even after a finding."""
        try:
            if self.running:
                self.do_stop()
            self._end_of_life()
            self._nothing_left()
        except Finding as finding:
            explain(self, finding)
            raise
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Give the program up: end everything by force."""
        self.adapter.clear()
        for call in self.calls.values():
            call.close()
        self.calls.clear()
        self.plan = None
        self._folder.cleanup()

    def _end_of_life(self) -> None:
        """The executor is down, or failed to start: what can be said of its whole life."""
        if self.plan is None:
            return
        plan, self.plan = self.plan, None
        self._callbacks()
        quiet = plan.patient and plan.flaw is None and plan.hold is None and not self.may_fail
        exits = self.adapter.exits()
        if quiet and any(exits.values()):
            raise Finding("exit", f"every rank was free to leave, and the exit statuses are {exits}")
        self._forget()
        if Can.TRACE not in self.adapter.lacks:
            lines = self.adapter.trace()
            self.traces.append(lines)
            verdict = validate(lines)
            if not verdict.accepted:
                raise Finding("trace", str(verdict))
        self._nothing_left()

    def _forget(self) -> None:
        """Every call and callback. In a function of its own: no variable may keep an answer, and its memory, alive."""
        for call in self.calls.values():
            call.close()
        self.calls, self.under_way, self.listening = {}, [], []

    def _nothing_left(self) -> None:
        """A thread or a process that is ending is not left; one that is there for long is."""
        if not eventually(lambda: not self.adapter.leftovers(), min(self.bound, 10.0)):
            raise Finding("left", "; ".join(self.adapter.leftovers()))
