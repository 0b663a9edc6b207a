"""Draining: a thread that waits for a call reads the replies itself, on behalf of every caller.

Theory of operation:

1. Each wait is one `caller` machine. It drains if nobody does, else it is parked; when the drainer leaves, the parked
   ones look again. The lock is free while the drainer sleeps.
2. The drainer sleeps on every reply queue and on one flag, which is set for good when the executor begins to end: a
   call that the supervisor failed wakes its waiter, whoever drains.
3. A reply is read and unpickled outside the lock, and offered to the calls that its rank owes under it.
4. Where nobody waits, somebody may have asked to be told (a callback, `concurrent.futures.wait`). The supervisor then
   drains, but only when calls have been without a drainer for a while: the blocking path pays nothing for it.
"""

from __future__ import annotations

import itertools
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.core import Identity, IllegalEventError
from ..protocol.core.cluster import AGGREGATE, ClusterState
from ..protocol.executor import ExecutorState, Happened
from ..protocol.futures import Caller, CallerOn, Reply, ReplyOn
from .channel import Message, Say, receive
from .errors import ExecutorError, PayloadError, QueueClosedError, RemoteTraceback, WorkerError
from .wait import Flag, Waiter, deadline_in, left

if TYPE_CHECKING:
    from .calls import Calls
    from .kernel import Kernel

_LEAVES = frozenset({CallerOn.SETTLED, CallerOn.DEADLINE, CallerOn.GIVE_UP})


class _Waiting:
    """A thread that waits. `asleep` is when an interruption does no harm."""

    __slots__ = ("asleep", "call", "number", "state")

    def __init__(self, number: int, call: int, state: ClusterState) -> None:
        self.number = number
        self.call = call
        self.state = state
        self.asleep = True


class _Answer(NamedTuple):
    rank: int
    identity: Identity
    event: ReplyOn
    value: Any
    cause: BaseException | None


class Draining:
    """Who waits, who drains, and the reply queues."""

    def __init__(self, kernel: Kernel, calls: Calls) -> None:
        self._kernel = kernel
        self._calls = calls
        self._replies = Waiter()
        self._replies.watch(kernel.blocked.fd)
        self._nudge = Flag()  # the drainer should look at its own call
        self._replies.watch(self._nudge.fd)
        self._epoll = select.epoll()
        self._inside = 0  # threads in `wait`
        self._closing = False
        self.tended = False  # whether the supervisor knows that calls may be without a drainer
        self._numbers = itertools.count()
        self._drainer: _Waiting | None = None
        self._parked: dict[int, _Waiting] = {}

    def watch(self, fd: int) -> None:
        """A reply queue is open: from here on callers read it."""
        self._replies.watch(fd)
        self._epoll.register(fd, select.EPOLLIN)

    # --- for the supervisor -----------------------------------------------------------------------------------------

    @property
    def arrival_fd(self) -> int:
        """Readable when a reply has come and was not read."""
        return self._epoll.fileno()

    def unattended(self) -> bool:
        """Whether calls are open and nobody drains."""
        return self._drainer is None and self._calls.any_open()

    def tend(self) -> None:
        """Calls may be without a drainer: tell the supervisor, unless it knows."""
        if not self.tended:
            self.tended = True
            self._kernel.wake.set()

    def drain_once(self) -> None:
        """Read what has come, on behalf of nobody in particular, unless somebody drains."""
        if self._drainer is None:
            self.wait(None, 0.0, lambda: not self._calls.any_open())

    # --- for callers ------------------------------------------------------------------------------------------------

    def wait(self, call: int | None, deadline: float | None, met: Callable[[], bool]) -> bool:
        """Drain, or be parked, until `met()`, which is asked under the lock; False if the deadline comes first.

        Who waits for no call in particular waits for the oldest that owes replies.
        """
        kernel = self._kernel
        with kernel.lock:
            if call is None:  # found under the same lock: a moment ago another may have been the oldest
                call = self._calls.oldest()
                if call is None or met():
                    return True
            me = _Waiting(next(self._numbers), call, kernel.protocol.caller.initial())
            self._inside += 1  # with nothing before the `try` at which an interruption could come
            try:
                in_time = self._until(me, deadline, met)
            except BaseException as error:
                kernel.hold()
                if not me.asleep:
                    kernel.interrupted("while a reply was being read", error)
                if me.state[0] not in (Caller.ANSWERED, Caller.GAVE_UP):
                    self._give(me, CallerOn.GIVE_UP)
                raise
            finally:
                self._inside -= 1
                self._parked.pop(me.number, None)
                if self._drainer is me:  # an exception came in the very middle of leaving
                    self._drainer = None
                    kernel.changed.notify_all()
                if self._closing:
                    kernel.changed.notify_all()
        kernel.run_later()
        return in_time

    def _until(self, me: _Waiting, deadline: float | None, met: Callable[[], bool]) -> bool:
        while not met():
            if me.state[0] is Caller.LOOKING:
                if self._drainer is None:
                    self._give(me, CallerOn.DRAIN)
                    self._drainer = me
                else:
                    self._give(me, CallerOn.PARK)
                    self._parked[me.number] = me
            if me.state[0] is Caller.DRAINING:
                in_time = self._drain(me, deadline)
            else:
                in_time = self._kernel.changed.wait(left(deadline)) or left(deadline) != 0.0
            if not in_time and not met():
                self._give(me, CallerOn.DEADLINE)
                return False
        # A wait for room ends when any call makes some, and the one that it named may be open still.
        self._give(me, CallerOn.GIVE_UP if self._calls.pending(me.call) else CallerOn.SETTLED)
        return True

    def _give(self, waiting: _Waiting, event: CallerOn) -> None:
        if waiting is self._drainer and event in _LEAVES:
            self._drainer = None
            if not self._parked and self._calls.any_open():
                self.tend()
        waiting.state, steps = self._kernel.protocol.caller.apply(waiting.state, AGGREGATE, event)
        kernel = self._kernel
        for step in steps:
            kernel.step(waiting.call, step._replace(slot=waiting.number) if kernel.recorded else step)

    def wake_parked(self) -> None:
        """The drainer left. The lock is held."""
        for waiting in self._parked.values():
            if waiting.state[0] is Caller.PARKED:
                self._give(waiting, CallerOn.LOOK)
        self._parked.clear()
        self._kernel.changed.notify_all()

    def wake_owner(self) -> None:
        """A call is settled, or out of the books; whoever waits for it should see. The lock is held."""
        if self._parked:
            self._kernel.changed.notify_all()
        if (
            self._drainer is not None and self._drainer.asleep
        ):  # somebody else settled it: a cancel, most likely
            self._nudge.set()

    def wait_until_nobody_waits(self) -> None:
        """Every call is settled and `blocked` is set, so whoever waits is on its way out. The lock is held."""
        self._closing = True
        patience = deadline_in(5.0)
        while self._inside and left(patience):
            self._kernel.changed.wait(0.1)
        self._epoll.close()
        self._nudge.close()

    # --- reading ----------------------------------------------------------------------------------------------------

    def _drain(self, me: _Waiting, deadline: float | None) -> bool:
        """Read what has come, waiting if nothing has. The lock is held on entry and exit, and free between."""
        kernel = self._kernel
        answers: list[_Answer] = []
        kernel.lock.release()
        try:
            kernel.run_later()
            ready = self._replies.wait(deadline, kernel.config.spin)
            me.asleep = False
            for fd in ready:
                if fd == self._nudge.fd:
                    self._nudge.clear()
                elif fd != kernel.blocked.fd:
                    self._read(fd, answers)
        finally:
            kernel.hold()
        for answer in answers:
            self._count(answer)
        me.asleep = True
        return bool(ready)

    def _read(self, fd: int, answers: list[_Answer]) -> None:
        ranks = self._kernel.ranks
        rank = ranks.rank_of(fd)
        try:
            message = receive(ranks.inlet(rank), ranks.returns[rank])
        except QueueClosedError:
            self._replies.forget(fd)  # the rank is gone or going: its pidfd tells the supervisor
            return
        if message is not None:
            answers.append(self._decoded(rank, message))

    def _decoded(self, rank: int, message: Message) -> _Answer:
        identity = message.identity
        try:
            value = message.value()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what does not unpickle fails its own call, whatever it raises
            pending = self._calls.pending(identity.call)
            garbled = PayloadError(
                f"the answer of rank {rank} to call {identity.call} ({'?' if pending is None else pending.method!r}) "
                f"cannot be unpickled ({type(error).__name__}: {error}); the rank goes on, only this call failed"
            )
            garbled.__cause__ = error
            return _Answer(rank, identity, ReplyOn.RAISED, None, garbled)
        if message.kind is Say.RETURNED:
            return _Answer(rank, identity, ReplyOn.RETURNED, value, None)
        method, failure = value
        cause = WorkerError(
            f"rank {rank} failed in call {identity.call} ({method!r}): {failure.kind}: {failure.text}",
            rank=rank,
            phase="in a call",
            method=method,
            call=identity.call,
        )
        cause.__cause__ = RemoteTraceback(failure.traceback)
        return _Answer(rank, identity, ReplyOn.RAISED, None, cause)

    def _count(self, answer: _Answer) -> None:
        kernel = self._kernel

        def give(state: ExecutorState) -> tuple[ExecutorState, Happened]:
            after, happened = kernel.protocol.reply(state, answer.rank, answer.event, answer.identity)
            for call, step in happened:
                pending = self._calls.pending(call)
                if pending is not None and step.slot == answer.rank and step.dest is Reply.RETURNED:
                    pending.put(answer.rank, answer.value)
            return after, happened

        before = len(kernel.state.calls)
        try:
            kernel.take(give, answer.cause)
        except IllegalEventError as error:
            kernel.take(kernel.protocol.fault, ExecutorError(str(error)))
        if len(kernel.state.calls) < before:
            self.wake_owner()  # a late reply of a call that was given up settles nobody, and makes room
