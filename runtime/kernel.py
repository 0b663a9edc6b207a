"""The executor's state, under one lock, and what its effects mean here.

Theory of operation:

1. The state is the pure protocol's; it changes only in `take`, under the lock. A step is written down first, then its
   effects are done. Effects under the lock are short and never wait; foreign code (callbacks, aggregators) is kept
   for `run_later`, outside of it.
2. Two kinds of threads bring facts: the supervisor (processes, READY, queues, time) and callers (submit, replies,
   giving up; see `calls` and `draining`).
3. The cause that a fact brings is given to every call that the fact fails; the first cause that fails the executor
   is kept, and every later call fails with it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from ..protocol.core import IllegalEventError, Step
from ..protocol.executor import ExecutorProtocol, ExecutorState, Happened
from ..protocol.futures import FuturesDo
from ..protocol.life import Life, LifeDo
from ..protocol.shutdown import StopDo
from .calls import Calls
from .config import ExecutorConfig
from .errors import ExecutorClosedError, ExecutorError
from .interruptible import Latch, Thread
from .ranks import EPOCH, Ranks
from .record import hook
from .wait import Flag

Give = Callable[[ExecutorState], tuple[ExecutorState, Happened]]

_STORY = 32  # steps that an error about an illegal event shows
_CALLS_DO = frozenset({FuturesDo.RESOLVE, FuturesDo.FAIL, FuturesDo.WAKE_PARKED, FuturesDo.PASS_ON})
_ALARMS = frozenset({StopDo.ARM_GRACE, StopDo.ARM_TERM, StopDo.ARM_KILL})


class Kernel:
    """State, lock, and effects of one executor."""

    def __init__(self, config: ExecutorConfig) -> None:
        self.config = config
        self.protocol = config.executor_protocol or ExecutorProtocol()
        self.state: ExecutorState = self.protocol.initial(config.world_size)
        self.cause: ExecutorError | None = None
        self.decided = Latch()  # up, or at its end
        self.up = Latch()
        self.ended = Latch()
        self.wake = Flag()  # the supervisor should look again
        self.blocked = Flag()  # set for good when blocked callers must not stay blocked
        self.stop_asked = False
        self.broken: ExecutorError | None = None  # a fault for the supervisor to announce
        self.alarm: float | None = None
        self.survivors: list[tuple[int, int]] = []
        self.exits: dict[int, int | None] = {}
        self.callbacks: list[Callable[[], object]] = []
        self.lock = threading.RLock()  # it knows its owner: see `hold`
        self.changed = threading.Condition(self.lock)
        recorder = config.recorder
        if recorder is not None:
            recorder.begin(config.world_size, EPOCH)
        self._hook = hook("executor", None if recorder is None else recorder.fd("executor"), config.pause)
        self.recorded = self._hook is not None  # whether anybody looks at single steps
        self._later: deque[Callable[[], None]] = deque()
        self._foreign: deque[Callable[[], None]] = deque()
        self._story: deque[tuple[int, Step]] = deque(maxlen=_STORY)
        self._fact_cause: BaseException | None = None
        self.calls = Calls(self)
        self.ranks = Ranks(config)  # last: after it nothing can fail, and leave its channels behind

    # --- facts ------------------------------------------------------------------------------------------------------

    def fact(self, give: Give, cause: BaseException | None = None) -> None:
        """Apply a fact; `cause` is what calls fail with because of it, and the executor, if it is the first.

        Raises `IllegalEventError`, with the story, if the protocol does not allow it; nothing has changed then.
        """
        with self.lock:
            self.take(give, cause)
        self.run_later()

    def take(self, give: Give, cause: BaseException | None = None) -> None:
        """The same with the lock held; `run_later` is left to the caller."""
        try:
            state, happened = give(self.state)
        except IllegalEventError as error:
            story = [str(step) if not call else f"{step} (call {call})" for call, step in self._story]
            raise type(error)(
                error.machine, error.rank, error.state, error.event, error.allowed, story
            ) from None
        self.state = state
        self._fact_cause = cause
        for call, step in happened:
            self.step(call, step)
        self._fact_cause = None

    def step(self, call: int, step: Step) -> None:
        """A step was taken: write it down, then do what it says. The lock is held."""
        self._story.append((call, step))
        if self.recorded:
            assert self._hook is not None
            reaped = StopDo.REAP in step.effects
            self._hook(call, step, self.exits.get(step.slot) if reaped else None)
        for effect in step.effects:
            self._perform(effect, call, step)

    def interrupted(self, what: str, error: BaseException) -> None:
        """An exception, a Ctrl-C most likely, came in the middle of something that must not be left half done.

        Half a broadcast would leave ranks waiting for each other for ever, and a reply that was read and not counted
        its caller. Neither can be undone, so the executor fails, and says why. The supervisor announces it: no
        Ctrl-C reaches its thread.
        """
        if self.broken is None:
            text = (
                f"{type(error).__name__} came {what}, which cannot be left half done; the executor was ended"
            )
            self.broken = ExecutorError(text)
            self.wake.set()

    def hold(self) -> None:
        """Have the lock again after a sleep without it, even if a Ctrl-C comes while it is being taken.

        Only the lock knows whether it was taken before the exception came.
        """
        interruption: BaseException | None = None
        while not self.lock._is_owned():  # type: ignore[attr-defined]  # typeshed hides it; Condition relies on it
            try:
                self.lock.acquire()
            except BaseException as error:  # noqa: BLE001 - raised again below, when the lock is held
                interruption = error
        if interruption is not None:
            raise interruption

    # --- effects ----------------------------------------------------------------------------------------------------

    def _perform(self, effect: str, call: int, step: Step) -> None:
        if effect in _CALLS_DO:
            self.calls.perform(effect, call, self._fact_cause)
        elif effect is LifeDo.ANNOUNCE_UP:
            self.up.set()
            self.decided.set()
        elif effect is LifeDo.ANNOUNCE_FAILURE:
            given = self._fact_cause
            self.cause = given if isinstance(given, ExecutorError) else ExecutorError(str(given))
        elif effect is LifeDo.ANNOUNCE_END:
            self.decided.set()
        elif effect is StopDo.WAKE_BLOCKED:
            self.blocked.set()
            self.changed.notify_all()
        elif effect in _ALARMS:
            self.alarm = time.monotonic() + self._stage_seconds(effect)
            self.wake.set()  # the supervisor may be asleep with a later alarm, or none
        elif effect is StopDo.DISARM:
            self.alarm = None
        elif effect is StopDo.REPORT_SURVIVOR:
            self.survivors.append((step.slot, self.ranks.process(step.slot).pid))
        elif effect is StopDo.CALL_BACK:
            self.later(_quietly(self.callbacks[step.slot]), foreign=True)
        else:
            self.ranks.perform(effect, step.slot)

    def _stage_seconds(self, effect: str) -> float:
        policy = self.config.shutdown
        if effect is StopDo.ARM_GRACE:
            return policy.grace_after_failure if self.state.life[0] is Life.FAILING else policy.grace
        return policy.term if effect is StopDo.ARM_TERM else policy.kill

    def later(self, work: Callable[[], None], foreign: bool = False) -> None:
        """Keep work for when the lock is free. `foreign` work is a user's, and may do anything."""
        (self._foreign if foreign else self._later).append(work)

    def run_later(self) -> None:
        """Run what was kept. The lock is not held.

        Foreign code gets a thread of its own: it may take as long as it likes, or make calls, and wait for what this
        thread, or other foreign code, is about to do.
        """
        if self._foreign:
            for work in _taken(self._foreign):
                Thread(work, "procession-callback").start()
        if self._later:
            for work in _taken(self._later):
                work()

    # --- listeners and the end --------------------------------------------------------------------------------------

    def listen(self, callback: Callable[[], object]) -> None:
        """Register a failure callback; it is called at once if the executor has failed."""
        with self.lock:
            self.callbacks.append(callback)
            self.take(self.protocol.listen)
        self.run_later()

    def why_closed(self) -> ExecutorError:
        """What a call fails with when the executor does not serve."""
        if self.cause is not None:
            return self.cause.fresh()
        life = self.state.life[0]
        return ExecutorClosedError(
            f"the executor is {life.name} ({life.meaning}); no call is answered any more"
        )

    def close(self) -> None:
        """Close every descriptor, once nobody waits any more. Every call is settled by now."""
        with self.lock:
            self.calls.close()
            self.recorded, self._hook = (
                False,
                None,
            )  # what happens to a caller from here on is no step of the run
            self.ranks.close()
            self.wake.close()
            self.blocked.close()
            self.recorded = False  # the recorder's descriptors are closed next, and their numbers used again
        self.run_later()
        if self.config.recorder is not None:
            self.config.recorder.finish()


def _taken(queue: deque[Callable[[], None]]) -> Iterator[Callable[[], None]]:
    """What is in the queue, and what comes meanwhile; each once, whoever else takes from it."""
    while True:
        try:
            work = queue.popleft()
        except IndexError:
            return
        yield work


def _quietly(callback: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        try:
            callback()
        except BaseException:
            logging.getLogger("procession").exception("a failure callback raised")

    return call
