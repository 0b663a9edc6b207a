"""`ExecutorMachine`: Hypothesis draws programs for a `Driver`, and shrinks the one that found something.

Theory of operation:

1. A rule draws small numbers and makes one step of them. A rank or a call is drawn as a number and taken modulo how
   many there are, so that shrinking another step leaves it meaningful.
2. What can be drawn depends on the program so far, never on the executor: the preconditions ask the driver's model.
3. Make a subclass with an `adapter` and run it: `run_state_machine_as_test(Mine)`, or `Mine.TestCase` for unittest and
   pytest. `words` may narrow the rules, `deeds` what ranks are asked to do, `sizes` the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from .adapter import Adapter, Can
from .driver import Driver
from .finding import Finding
from .known import BOUND
from .program import Step, Value, step
from .rank import HOLDS

POINTS = (
    "boot.boot:born",
    "boot.boot:device_up",
    "boot.boot:weights_up",
    "boot.boot:queues_up",
    "intake.reader:handle",
)
"""Steps of a start at which a rank that is killed fails it for certain."""

LATE_POINTS = ("intake.reader:opened", "outlet.seat:joined", "outlet.gate:all_in", "serve.serve:begin")

DEEDS = ("echo", "echo", "raise", "unpicklable", "unreadable", "exit", "gate", "gate", "argument")
_DEED_NEEDS = {
    "unreadable": Can.ANSWER,
    "unpicklable": Can.ANSWER,
    "argument": Can.ARGUMENT,
    "exit": Can.EXIT,
}
WORDS = (
    "start", "flawed", "held", "call", "future", "result", "wait", "each", "cancel", "drop", "watch", "open",
    "swarm", "kill", "pause", "resume", "hold", "release", "listen", "stop", "orphan",
)  # fmt: skip
WORD_NEEDS = {
    "flawed": Can.FLAW,
    "held": Can.HOLD,
    "hold": Can.HOLD,
    "release": Can.HOLD,
    "cancel": Can.CANCEL,
    "kill": Can.KILL,
    "pause": Can.PAUSE,
    "resume": Can.PAUSE,
    "listen": Can.LISTEN,
    "orphan": Can.ORPHAN,
}

small = st.integers(0, 5)


def when(word: str, ready: Callable[[Driver], object]) -> Callable[[Any], Any]:
    """The rule's word is one that this machine uses, and the program is where it makes sense."""

    def allowed(machine: ExecutorMachine) -> bool:
        return machine.offers(word) and bool(ready(machine.driver))

    return precondition(allowed)


class ExecutorMachine(RuleBasedStateMachine):
    """Programs for the executor of `adapter`."""

    adapter: ClassVar[Callable[[], Adapter]]
    words: ClassVar[tuple[str, ...]] = WORDS
    deeds: ClassVar[tuple[str, ...]] = DEEDS
    sizes: ClassVar[tuple[int, ...]] = (0, 0, 0, 10, 40_000, 300_000)
    methods: ClassVar[tuple[str, ...]] = ()
    bound: ClassVar[float] = BOUND
    last: ClassVar[Finding | None] = None
    """What the last program that found something found: after Hypothesis has shrunk it, the shortest."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(type(self).adapter(), self.bound)
        self.found = False

    def offers(self, word: str) -> bool:
        """Whether programs may use the word."""
        return word in self.words and WORD_NEEDS.get(word) not in self.driver.adapter.lacks

    def do(self, word: str, **options: Value) -> None:
        """One step."""
        self._do(step(word, **options))

    def _do(self, one: Step) -> None:
        try:
            self.driver.do(one)
        except BaseException as error:
            self._note(error)
            raise

    def _note(self, error: BaseException) -> None:
        self.found = True
        if isinstance(error, Finding):
            type(self).last = error

    def teardown(self) -> None:
        """The end of a program."""
        if self.found:
            self.driver.abandon()
            return
        try:
            self.driver.finish()
        except BaseException as error:
            self._note(error)
            raise
        self.finished()

    def finished(self) -> None:
        """A program came to its end, and nothing was found; a subclass may count."""

    # --- starts -----------------------------------------------------------------------------------------------------

    def _method(self, number: int) -> str:
        methods = self.methods or self.driver.adapter.methods
        return methods[number % len(methods)]

    @when("start", lambda driver: not driver.running)
    @rule(ranks=st.integers(1, 3), method=small, room=st.sampled_from([64, 64, 1, 2]), patient=st.booleans())
    def start(self, ranks: int, method: int, room: int, patient: bool) -> None:
        """A start that nothing disturbs."""
        bounded = 64 if Can.ROOM in self.driver.adapter.lacks else room
        self.do("start", ranks=ranks, method=self._method(method), room=bounded, patient=int(patient))

    @when("flawed", lambda driver: not driver.running)
    @rule(
        ranks=st.integers(1, 3),
        method=small,
        who=small,
        phase=st.sampled_from(["init_device", "load_model"]),
        deed=st.sampled_from(["raise", "exit"]),
    )
    def flawed(self, ranks: int, method: int, who: int, phase: str, deed: str) -> None:
        """A start in which a rank raises or ends."""
        self.do("start", ranks=ranks, method=self._method(method), flaw=phase, who=who % ranks, deed=deed)

    @when("held", lambda driver: not driver.running)
    @rule(
        ranks=st.integers(1, 3),
        method=small,
        who=small,
        point=st.sampled_from((*POINTS, *LATE_POINTS)),
        kill=st.booleans(),
    )
    def held(self, ranks: int, method: int, who: int, point: str, kill: bool) -> None:
        """A start in which a rank is held, and then killed or released."""
        then = "kill" if kill and point in POINTS else "release"
        who %= ranks
        self.do("start", ranks=ranks, method=self._method(method), who=who, point=point, then=then)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _ask(self, deed: int, who: int, size: int, reply: int, merged: bool, brief: bool) -> dict[str, Value]:
        lacks = self.driver.adapter.lacks
        ranks = len(self.driver.ranks)
        what = self.deeds[deed % len(self.deeds)]
        if _DEED_NEEDS.get(what) in lacks:
            what = "echo"
        options: dict[str, Value] = {
            "deed": "" if what == "echo" else what,
            "who": -1 if who == 0 or what in ("echo", "argument") else (who - 1) % ranks,
            "size": self.sizes[size % len(self.sizes)] or -1,
            "reply": -1 if reply == 0 else (reply - 1) % ranks,
            "merged": 1 if merged and Can.MERGE not in lacks else -1,
            "brief": 1 if brief and what in ("echo", "gate") and Can.TIMEOUT not in lacks else -1,
        }
        return options

    @when("call", Driver.can_call)
    @rule(
        deed=st.integers(0, 8), who=small, size=small, reply=small, merged=st.booleans(), brief=st.booleans()
    )
    def call(self, deed: int, who: int, size: int, reply: int, merged: bool, brief: bool) -> None:
        """A blocking call."""
        self.do("call", **self._ask(deed, who, size, reply, merged, brief))

    @when("future", Driver.can_call)
    @rule(
        deed=st.integers(0, 8), who=small, size=small, reply=small, merged=st.booleans(), brief=st.booleans()
    )
    def future(self, deed: int, who: int, size: int, reply: int, merged: bool, brief: bool) -> None:
        """A call that returns a future."""
        self.do("future", **self._ask(deed, who, size, reply, merged, brief))

    def _one(self, number: int) -> int:
        tokens = self.driver.open_calls()
        return tokens[number % len(tokens)]

    @when("result", Driver.open_calls)
    @rule(call=small, brief=st.booleans())
    def result(self, call: int, brief: bool) -> None:
        """A future's result, in any order."""
        self.do("result", call=self._one(call), brief=1 if brief else -1)

    @when("wait", Driver.open_calls)
    @rule(first=st.booleans())
    def wait(self, first: bool) -> None:
        """Wait for every future, or one."""
        self.do("wait", first=1 if first else -1)

    @when("each", Driver.open_calls)
    @rule()
    def each(self) -> None:
        """Every future as it completes."""
        self.do("each")

    @when("cancel", Driver.open_calls)
    @rule(call=small)
    def cancel(self, call: int) -> None:
        """Cancel a call."""
        self.do("cancel", call=self._one(call))

    @when("drop", Driver.open_calls)
    @rule(call=small)
    def drop(self, call: int) -> None:
        """Forget a future."""
        self.do("drop", call=self._one(call))

    @when("watch", Driver.open_calls)
    @rule(call=small)
    def watch(self, call: int) -> None:
        """A callback on a future."""
        self.do("watch", call=self._one(call))

    @when("open", lambda driver: driver.running and driver.gated())
    @rule(call=small)
    def open(self, call: int) -> None:
        """Open a gate."""
        gated = self.driver.gated()
        self.do("open", call=gated[call % len(gated)])

    @when("swarm", lambda driver: driver.all_free)
    @rule(threads=st.integers(2, 4), calls=st.integers(1, 8), size=small)
    def swarm(self, threads: int, calls: int, size: int) -> None:
        """Several threads at once."""
        self.do("swarm", threads=threads, calls=calls, size=self.sizes[size % len(self.sizes)] or -1)

    # --- signals and holds ------------------------------------------------------------------------------------------

    @when("kill", lambda driver: driver.running)
    @rule(rank=small)
    def kill(self, rank: int) -> None:
        """SIGKILL."""
        self.do("kill", rank=rank % len(self.driver.ranks))

    @when("pause", lambda driver: driver.running and not driver.may_fail)
    @rule(rank=small)
    def pause(self, rank: int) -> None:
        """SIGSTOP."""
        self.do("pause", rank=rank % len(self.driver.ranks))

    @when("resume", lambda driver: driver.running and any(rank.stopped for rank in driver.ranks))
    @rule(rank=small)
    def resume(self, rank: int) -> None:
        """SIGCONT."""
        stopped = [one.number for one in self.driver.ranks if one.stopped]
        self.do("resume", rank=stopped[rank % len(stopped)])

    @when("hold", lambda driver: driver.running and _holdable(driver))
    @rule(rank=small, event=st.sampled_from(HOLDS))
    def hold(self, rank: int, event: str) -> None:
        """Hold a rank at a step of the next call."""
        ranks = _holdable(self.driver)
        self.do("hold", rank=ranks[rank % len(ranks)], event=event)

    @when("release", lambda driver: driver.running and _releasable(driver))
    @rule(rank=small)
    def release(self, rank: int) -> None:
        """Release a rank that is held."""
        ranks = _releasable(self.driver)
        self.do("release", rank=ranks[rank % len(ranks)])

    # --- failure and end --------------------------------------------------------------------------------------------

    @when("listen", lambda driver: driver.running and len(driver.listening) < 3)
    @rule(then=st.sampled_from(["", "stop"]))
    def listen(self, then: str) -> None:
        """Register a failure callback."""
        self.do("listen", then=then)

    @when("stop", lambda driver: driver.running)
    @rule(threads=st.integers(1, 2))
    def stop(self, threads: int) -> None:
        """Stop, perhaps from two threads."""
        self.do("stop", threads=threads)

    @when("orphan", lambda driver: not driver.running)
    @rule(ranks=st.integers(1, 3), method=small)
    def orphan(self, ranks: int, method: int) -> None:
        """Kill the process of an executor."""
        self.do("orphan", ranks=ranks, method=self._method(method))


def _holdable(driver: Driver) -> list[int]:
    """Ranks that can be held: none is there, and nothing may have failed."""
    return [] if driver.may_fail else [rank.number for rank in driver.ranks if rank.hold is None]


def _releasable(driver: Driver) -> list[int]:
    """Ranks that are at their hold for certain."""
    return [rank.number for rank in driver.ranks if rank.hold is not None and rank.must().held]
