"""The executor's state, under one lock, and what its effects mean here.

Theory of operation:

1. The state is the pure protocol's; it changes only in `take`, under the lock. A step is written down first, then its
   effects are done. Effects under the lock are short and never wait; foreign code (callbacks, aggregators) is kept
   for `run_later`, outside of it.
2. Two kinds of threads bring facts: the supervisor (processes, READY, queues, time) and callers (submit, replies,
   giving up). Callers read the reply queues themselves; `wait_for` is the whole of draining.
3. The cause that a fact brings is given to every call that the fact fails; the first cause that fails the executor
   is kept, and every later call fails with it.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..protocol.core import Identity, IllegalEventError, Step
from ..protocol.core.cluster import AGGREGATE, ClusterState
from ..protocol.executor import ExecutorProtocol, ExecutorState, Happened
from ..protocol.futures import Caller, CallerOn, CallOn, FuturesDo, Reply, ReplyOn
from ..protocol.life import Life, LifeDo
from ..protocol.shutdown import StopDo
from .channel import Message, Packet, Say, receive
from .codec import encode
from .config import ExecutorConfig
from .errors import (
    CallTimeoutError,
    ExecutorClosedError,
    ExecutorError,
    PayloadError,
    QueueClosedError,
    RemoteTraceback,
    WorkerError,
)
from .futures import CallFuture
from .ranks import Ranks
from .record import hook
from .wait import Flag, Waiter, left

EPOCH = 1
_STORY = 32  # steps that an error about an illegal event shows


class _Waiting:
    """A thread in `wait_for`."""

    __slots__ = ("call", "number", "state")

    def __init__(self, number: int, call: int, state: ClusterState) -> None:
        self.number = number
        self.call = call
        self.state = state


class Kernel:
    """State, lock, and effects of one executor."""

    def __init__(self, config: ExecutorConfig) -> None:
        self.config = config
        self.protocol = config.executor_protocol or ExecutorProtocol()
        self.state: ExecutorState = self.protocol.initial(config.world_size)
        self.cause: ExecutorError | None = None
        self.decided = threading.Event()  # up, or at its end
        self.up = threading.Event()
        self.ended = threading.Event()
        self.wake = Flag()  # the supervisor should look again
        self.blocked = Flag()  # set for good when blocked callers must not stay blocked
        self.stop_asked = False
        self.alarm: float | None = None
        self.ranks = Ranks(config)
        self.survivors: list[tuple[int, int]] = []
        self.exits: dict[int, int | None] = {}
        self.callbacks: list[Callable[[], object]] = []
        self.replies = Waiter()
        self.replies.watch(self.blocked.fd)
        recorder = config.recorder
        if recorder is not None:
            recorder.begin(config.world_size, EPOCH)
        self._hook = hook("executor", None if recorder is None else recorder.fd("executor"), config.pause)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._later: deque[Callable[[], None]] = deque()
        self._futures: dict[int, CallFuture] = {}
        self._outbox: list[deque[Packet]] = [deque() for _ in range(config.world_size)]
        self._numbers = itertools.count(1)
        self._waits = itertools.count()
        self._drainer: _Waiting | None = None
        self._parked: dict[int, _Waiting] = {}
        self._story: deque[tuple[int, Step]] = deque(maxlen=_STORY)
        self._fact_cause: BaseException | None = None

    # --- facts ------------------------------------------------------------------------------------------------------

    def fact(
        self,
        give: Callable[[ExecutorState], tuple[ExecutorState, Happened]],
        cause: BaseException | None = None,
    ) -> None:
        """Apply a fact; `cause` is what calls fail with because of it, and the executor, if it is the first.

        Raises `IllegalEventError`, with the story, if the protocol does not allow it; nothing has changed then.
        """
        with self._lock:
            self._take(give, cause)
        # The supervisor brings most facts, and foreign code must not hold it up.
        self.run_later(in_thread=True)

    def _take(
        self,
        give: Callable[[ExecutorState], tuple[ExecutorState, Happened]],
        cause: BaseException | None = None,
    ) -> Happened:
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
            self._step(call, step)
        self._fact_cause = None
        return happened

    def _step(self, call: int, step: Step) -> None:
        self._story.append((call, step))
        if self._hook is not None:
            reaped = StopDo.REAP in step.effects
            self._hook(call, step, self.exits.get(step.slot) if reaped else None)
        for effect in step.effects:
            self._perform(effect, call, step)

    # --- effects ----------------------------------------------------------------------------------------------------

    def _perform(self, effect: str, call: int, step: Step) -> None:
        if effect is FuturesDo.RESOLVE:
            future = self._futures.pop(call, None)
            if future is not None:
                future.settled = True
                self._later.append(future.finish)
                self._wake_owner()
        elif effect is FuturesDo.FAIL:
            future = self._futures.pop(call, None)
            if future is not None:
                future.settled = True
                error = self._fact_cause or self.why_closed()
                self._later.append(lambda: future.give_up(error))
                self._wake_owner()
        elif effect is FuturesDo.WAKE_PARKED:
            self._wake_parked()
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
            self._changed.notify_all()
        elif effect in (StopDo.ARM_GRACE, StopDo.ARM_TERM, StopDo.ARM_KILL):
            self.alarm = time.monotonic() + self._stage_seconds(effect)
        elif effect is StopDo.DISARM:
            self.alarm = None
        elif effect is StopDo.REPORT_SURVIVOR:
            self.survivors.append((step.slot, self.ranks.process(step.slot).pid))
        elif effect is StopDo.CALL_BACK:
            self._later.append(_quietly(self.callbacks[step.slot]))
        else:
            self.ranks.perform(effect, step.slot)

    def _stage_seconds(self, effect: str) -> float:
        policy = self.config.shutdown
        if effect is StopDo.ARM_GRACE:
            return policy.grace_after_failure if self.state.life[0] is Life.FAILING else policy.grace
        return policy.term if effect is StopDo.ARM_TERM else policy.kill

    def run_later(self, in_thread: bool = False) -> None:
        """Run what the effects left to be done outside the lock; in a thread of its own if it may take long."""
        if not self._later:
            return
        if in_thread:
            threading.Thread(target=self.run_later, name="procession-callbacks", daemon=True).start()
            return
        while True:
            try:
                work = self._later.popleft()
            except IndexError:
                return
            work()

    # --- calls ------------------------------------------------------------------------------------------------------

    def submit(
        self,
        method: str,
        request: tuple[object, ...],
        deadline: float | None,
        timeout: float | None,
        reply_rank: int | None,
        aggregate: Callable[[list[Any]], Any] | None,
    ) -> CallFuture:
        """Send a call to every rank. Nothing was sent if this raises."""
        packet = Packet(Say.CALL, encode(request, f"the arguments of {method!r}"))
        future = CallFuture(self, method, self.config.world_size, reply_rank, aggregate, deadline, timeout)
        try:
            self._wait_for_room(future, timeout)
            with self._lock:
                if self.state.life[0] is not Life.SERVING:
                    raise self.why_closed()
                future.call = next(self._numbers)
                identity = Identity(EPOCH, -1, future.call)
                self._futures[future.call] = future
                self._take(lambda state: self.protocol.submit(state, identity))
                self._broadcast(packet.address(identity))
        except BaseException:
            packet.close()
            raise
        return future

    def _broadcast(self, packet: Packet) -> None:
        full = False
        for rank, waiting in enumerate(self._outbox):
            if waiting or not self._sent(rank, packet):
                waiting.append(packet)
                full = True
        if full:
            self.wake.set()  # the supervisor sends the rest as room comes
        else:
            packet.close()

    def _sent(self, rank: int, packet: Packet) -> bool:
        try:
            return packet.send(self.ranks.broadcast.sockets[rank])
        except (QueueClosedError, OSError):
            return True  # the rank is gone; its pidfd tells the supervisor, and that fails the call

    def flush(self, rank: int) -> None:
        """Send what waited for room in a rank's channel."""
        with self._lock:
            waiting = self._outbox[rank]
            while waiting and self._sent(rank, waiting[0]):
                sent = waiting.popleft()
                if not any(sent in other for other in self._outbox):
                    sent.close()

    def unsent(self, rank: int) -> bool:
        """Whether something waits for room in a rank's channel."""
        return bool(self._outbox[rank])

    def _wait_for_room(self, future: CallFuture, timeout: float | None) -> None:
        limit = self.config.max_inflight_calls
        while len(self.state.calls) >= limit:
            oldest, _ = self.state.calls[0]
            if not self._wait(oldest.call, future.deadline, lambda: len(self.state.calls) < limit):
                owing = self._owing(oldest.call)
                raise CallTimeoutError(
                    f"{future.method!r} was not sent: {limit} calls are in flight, and within {timeout} s none of "
                    f"them was answered; rank {_names(owing)} still owes call {oldest.call}. Is it stuck? "
                    "More calls may be in flight with ExecutorConfig(max_inflight_calls=...).",
                    call=0,
                    method=future.method,
                    waiting_for=owing,
                )

    def cancel(self, future: CallFuture) -> bool:
        """Give a call up on its caller's behalf."""
        with self._lock:
            if future.settled:
                return False
            error = concurrent.futures.CancelledError()
            self._take(lambda state: self.protocol.give_up(state, future.call, CallOn.CANCEL), error)
        self.run_later()
        return True

    # --- draining ---------------------------------------------------------------------------------------------------

    def wait_for(self, future: CallFuture, until: float | None) -> bool:
        """Wait until the call is settled; False if `until` comes first. The call's own deadline settles it."""
        deadline = future.deadline
        first = until if deadline is None or (until is not None and until < deadline) else deadline
        if self._wait(future.call, first, lambda: future.settled):
            return True
        if first is not deadline or deadline is None or time.monotonic() < deadline:
            return False
        with self._lock:
            if not future.settled:
                error = self.late(future, future.timeout)
                self._take(lambda state: self.protocol.give_up(state, future.call, CallOn.DEADLINE), error)
        self.run_later()
        return True

    def _wait(self, call: int, deadline: float | None, met: Callable[[], bool]) -> bool:
        """Drain, or be parked, until `met()` or the deadline."""
        with self._lock:
            me = _Waiting(next(self._waits), call, self.protocol.caller.initial())
            try:
                while not met():
                    if me.state[0] is Caller.LOOKING:
                        if self._drainer is None:
                            self._caller(me, CallerOn.DRAIN)
                            self._drainer = me
                        else:
                            self._caller(me, CallerOn.PARK)
                            self._parked[me.number] = me
                    if me.state[0] is Caller.DRAINING:
                        in_time = self._drain(deadline)
                    else:
                        in_time = self._changed.wait(left(deadline)) or left(deadline) != 0.0
                    if not in_time and not met():
                        self._caller(me, CallerOn.DEADLINE)
                        return False
                self._caller(me, CallerOn.SETTLED)
            except BaseException:
                if me.state[0] not in (Caller.ANSWERED, Caller.GAVE_UP):
                    self._caller(me, CallerOn.GIVE_UP)
                raise
            finally:
                self._parked.pop(me.number, None)
        self.run_later()
        return True

    def _caller(self, waiting: _Waiting, event: CallerOn) -> None:
        if waiting is self._drainer and event in (CallerOn.SETTLED, CallerOn.DEADLINE, CallerOn.GIVE_UP):
            self._drainer = None
        waiting.state, steps = self.protocol.caller.apply(waiting.state, AGGREGATE, event)
        for step in steps:
            self._step(waiting.call, step._replace(slot=waiting.number))

    def _wake_parked(self) -> None:
        for waiting in self._parked.values():
            if waiting.state[0] is Caller.PARKED:
                self._caller(waiting, CallerOn.LOOK)
        self._parked.clear()
        self._changed.notify_all()

    def _wake_owner(self) -> None:
        if self._parked:
            self._changed.notify_all()

    def _drain(self, deadline: float | None) -> bool:
        """Read what has come, waiting if nothing has. The lock is held on entry and exit, and free between."""
        self._lock.release()
        try:
            self.run_later()
            arrived: list[tuple[int, Message | BaseException]] = []
            ready = self.replies.wait(deadline, self.config.spin)
            for fd in ready:
                if fd != self.blocked.fd:
                    self._read(fd, arrived)
        finally:
            self._lock.acquire()
        for rank, message in arrived:
            self._arrived(rank, message)
        return bool(ready)

    def _read(self, fd: int, arrived: list[tuple[int, Message | BaseException]]) -> None:
        rank = self.ranks.rank_of(fd)
        try:
            message = receive(self.ranks.inlet(rank))
        except QueueClosedError:
            self.replies.forget(fd)  # the rank is gone or going: its pidfd tells the supervisor
            return
        if message is not None:
            arrived.append((rank, message))

    def _arrived(self, rank: int, message: Message | BaseException) -> None:
        assert isinstance(message, Message)
        event, value, cause = self._decoded(rank, message)

        def give(state: ExecutorState) -> tuple[ExecutorState, Happened]:
            after, happened = self.protocol.reply(state, rank, event, message.identity)
            for call, step in happened:
                if step.slot == rank and step.dest is Reply.RETURNED:
                    future = self._futures.get(call)
                    if future is not None:
                        future.put(rank, value)
            return after, happened

        try:
            self._take(give, cause)
        except IllegalEventError as error:
            self._take(self.protocol.fault, ExecutorError(str(error)))

    def _decoded(self, rank: int, message: Message) -> tuple[ReplyOn, Any, BaseException | None]:
        call = message.identity.call
        future = self._futures.get(call)
        method = future.method if future is not None else "?"
        try:
            value = message.value()
        except Exception as error:  # noqa: BLE001 - a reply that does not unpickle fails its own call, whatever it raises
            cause: ExecutorError = PayloadError(
                f"the answer of rank {rank} to call {call} ({method!r}) cannot be unpickled "
                f"({type(error).__name__}: {error}); the rank goes on, only this call failed"
            )
            cause.__cause__ = error
            return ReplyOn.RAISED, None, cause
        if message.kind is Say.RETURNED:
            return ReplyOn.RETURNED, value, None
        name, failure = value
        cause = WorkerError(
            f"rank {rank} failed in call {call} ({name!r}): {failure.kind}: {failure.text}",
            rank=rank,
            phase="in a call",
            method=name,
            call=call,
        )
        cause.__cause__ = RemoteTraceback(failure.traceback)
        return ReplyOn.RAISED, None, cause

    # --- causes -----------------------------------------------------------------------------------------------------

    def why_closed(self) -> ExecutorError:
        """What a call fails with when the executor does not serve."""
        if self.cause is not None:
            return self.cause.fresh()
        return ExecutorClosedError(
            f"the executor is {self.state.life[0].name} ({self.state.life[0].meaning}); no call is answered any more"
        )

    def late(self, future: CallFuture, timeout: float | None) -> CallTimeoutError:
        """The error of a wait that took too long: it names who has answered and who has not."""
        owing = self._owing(future.call)
        answered = [rank for rank in range(self.config.world_size) if rank not in owing]
        return CallTimeoutError(
            f"call {future.call} ({future.method!r}) was not answered within {timeout} s, "
            f"{time.monotonic() - future.since:.3f} s after it was made; waiting for rank {_names(owing)}, "
            f"answered by rank {_names(answered)}. A late answer is dropped and disturbs no later call.",
            call=future.call,
            method=future.method,
            waiting_for=owing,
        )

    def _owing(self, call: int) -> tuple[int, ...]:
        for identity, state in self.state.calls:
            if identity.call == call:
                return tuple(rank for rank, reply in enumerate(state[1:]) if reply is Reply.OWED)
        return ()

    # --- listeners --------------------------------------------------------------------------------------------------

    def listen(self, callback: Callable[[], object]) -> None:
        """Register a failure callback; it is called at once if the executor has failed."""
        with self._lock:
            self.callbacks.append(callback)
            self._take(self.protocol.listen)
        self.run_later()

    def close(self) -> None:
        """Close every descriptor, once nobody waits any more. Every call is settled by now."""
        with self._lock:
            while self._drainer is not None:  # on its way out: `blocked` is set
                self._changed.wait(0.1)
            for waiting in self._outbox:
                for packet in waiting:
                    packet.close()
                waiting.clear()
            self.ranks.close()
            self.wake.close()
            self.blocked.close()
        if self.config.recorder is not None:
            self.config.recorder.finish()


def _quietly(callback: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        import logging

        try:
            callback()
        except Exception:
            logging.getLogger("procession").exception("a failure callback raised")

    return call


def _names(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks) or "(none)"
