"""Calls: sending them in one order to every rank, and settling their futures.

Theory of operation:

1. A call is encoded before anything else, so that what cannot be sent is its sender's error and nothing was sent.
2. Then it waits for room: a bounded number of calls may owe replies. This is the back-pressure, and it cannot
   deadlock, since whoever waits for room drains.
3. Under the lock it is entered in the books and written to every rank's channel. A channel that is full keeps nobody
   waiting: its packets go to the rank's outbox, and the supervisor sends them as room comes. So no call is ever sent
   to some ranks and not to others.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..protocol.core import Identity, IllegalEventError
from ..protocol.futures import CallOn, FuturesDo, Reply
from ..protocol.life import Life
from .channel import IN_BAND, Packet, Say
from .codec import encode
from .draining import Draining
from .errors import CallTimeoutError, QueueClosedError
from .futures import Aggregate, CallFuture, Pending
from .ranks import EPOCH

if TYPE_CHECKING:
    from .kernel import Kernel


class Calls:
    """The calls of one executor that are not settled, and what waits to be sent."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._open: dict[int, Pending] = {}
        self._outbox: list[deque[Packet]] = [deque() for _ in range(kernel.config.world_size)]
        self._numbers = itertools.count(1)
        self.draining = Draining(kernel, self)

    def pending(self, call: int) -> Pending | None:
        """A call that is not settled."""
        return self._open.get(call)

    def any_open(self) -> bool:
        """Whether any call is not settled."""
        return bool(self._open)

    def oldest(self) -> int | None:
        """The oldest call that owes replies, given up or not. The lock is held."""
        calls = self._kernel.state.calls
        return calls[0][0].call if calls else None

    # --- sending ----------------------------------------------------------------------------------------------------

    def submit(
        self,
        method: str,
        request: tuple[object, ...],
        deadline: float | None,
        timeout: float | None,
        reply_rank: int | None,
        aggregate: Aggregate | None,
        non_block: bool = False,
    ) -> Any:
        """Send a call to every rank, and fetch its answer, or return its future. Nothing was sent if this raises."""
        pending = Pending(method, self._kernel.config.world_size, reply_rank, aggregate, deadline, timeout)
        future = CallFuture(self, pending) if non_block else None
        self._send(pending, request)
        if future is None:
            self.wait_for(pending, None)
            return pending.answer()
        # Nobody is about to wait, and somebody may have to be told all the same.
        if self.draining.unattended():
            self.draining.tend()
        if deadline is not None:
            self._kernel.wake.set()  # the supervisor keeps the deadlines that nobody waits for
        return future

    def _send(self, pending: Pending, request: tuple[object, ...]) -> None:
        kernel = self._kernel
        body = encode(request, f"the arguments of {pending.method!r}")
        if body.size > IN_BAND:
            with kernel.lock:  # the supervisor may be reading the same channels, or have closed them
                if kernel.state.life[0] is Life.SERVING:
                    kernel.ranks.broadcast.collect()
        packet = Packet(Say.CALL, body, arena=kernel.ranks.broadcast.arena)
        try:
            while not self._entered(pending, packet):
                self._wait_for_room(pending)
        except BaseException:
            packet.close(sent=False)
            raise

    def _entered(self, pending: Pending, packet: Packet) -> bool:
        """Enter the call in the books and send it, unless there is no room."""
        with self._kernel.lock:
            if not self._room():
                return False
            self._enter(pending, packet)
        return True

    def _room(self) -> bool:
        """Whether a call can be entered, or refused: one that waits for room must not wait for the end."""
        state = self._kernel.state
        return len(state.calls) < self._kernel.config.max_inflight_calls or state.life[0] is not Life.SERVING

    def _enter(self, pending: Pending, packet: Packet) -> None:
        kernel = self._kernel
        pending.call = next(self._numbers)
        identity = Identity(EPOCH, -1, pending.call)
        try:
            kernel.take(lambda state: kernel.protocol.submit(state, identity))
        except IllegalEventError:
            raise kernel.why_closed() from None
        try:
            self._open[pending.call] = pending
            self._broadcast(packet.address(identity))
        except BaseException as error:
            kernel.interrupted(f"while call {pending.call} ({pending.method!r}) was being sent", error)
            raise

    def _broadcast(self, packet: Packet) -> None:
        self._kernel.ranks.give_back()
        full = False
        for rank, waiting in enumerate(self._outbox):
            if waiting or not self._sent(rank, packet):
                waiting.append(packet)
                full = True
        if full:
            self._kernel.wake.set()  # the supervisor sends the rest as room comes
        else:
            packet.close()

    def _sent(self, rank: int, packet: Packet) -> bool:
        try:
            return packet.send(self._kernel.ranks.broadcast.sockets[rank])
        except (QueueClosedError, OSError):
            return True  # the rank is gone; its pidfd tells the supervisor, and that fails the call

    def flush(self, rank: int) -> None:
        """Send what waited for room in a rank's channel."""
        with self._kernel.lock:
            waiting = self._outbox[rank]
            while waiting and self._sent(rank, waiting[0]):
                sent = waiting.popleft()
                if not any(sent in other for other in self._outbox):
                    sent.close()

    def unsent(self, rank: int) -> bool:
        """Whether something waits for room in a rank's channel."""
        return bool(self._outbox[rank])

    def _wait_for_room(self, pending: Pending) -> None:
        if self.draining.wait(None, pending.deadline, self._room):
            return
        with self._kernel.lock:
            in_flight, oldest = len(self._kernel.state.calls), self.oldest()
            owing = () if oldest is None else self.owing(oldest)
        raise CallTimeoutError(
            f"{pending.method!r} was not sent: {in_flight} calls are in flight, and within {pending.timeout} s "
            f"none of them was answered; rank {_names(owing)} still owes call {oldest}. Is it stuck? "
            "More calls may be in flight with ExecutorConfig(max_inflight_calls=...).",
            call=0,
            method=pending.method,
            waiting_for=owing,
        )

    # --- waiting and giving up --------------------------------------------------------------------------------------

    def wait_for(self, pending: Pending, until: float | None) -> bool:
        """Wait until the call is settled; False if `until` comes first. The call's own deadline settles it."""
        deadline = pending.deadline
        mine = until is not None and (deadline is None or until < deadline)
        if self.draining.wait(pending.call, until if mine else deadline, lambda: pending.settled):
            return True
        if mine:
            return False
        self._give_up(pending, CallOn.DEADLINE, self.late(pending, pending.timeout))
        return True

    def next_deadline(self) -> float | None:
        """The first deadline of the calls that somebody holds a future of: perhaps nobody waits for it."""
        with self._kernel.lock:
            held = [pending.deadline for pending in self._open.values() if pending.future is not None]
        return min((deadline for deadline in held if deadline is not None), default=None)

    def expire(self) -> None:
        """Let the deadlines that have passed take effect; what has come by now still counts."""
        self.draining.drain_once()
        now = time.monotonic()
        with self._kernel.lock:
            held = [pending for pending in self._open.values() if pending.future is not None]
        for pending in held:
            if pending.deadline is not None and pending.deadline <= now:
                self._give_up(pending, CallOn.DEADLINE, self.late(pending, pending.timeout))

    def unless_settled(self, pending: Pending, work: Callable[[], None]) -> bool:
        """Do `work` before the call can be settled; False, and nothing is done, if it is."""
        with self._kernel.lock:
            if pending.settled:
                return False
            work()
            return True

    def cancel(self, pending: Pending) -> bool:
        """Give a call up on its caller's behalf; False if it is settled."""
        return self._give_up(pending, CallOn.CANCEL, concurrent.futures.CancelledError())

    def _give_up(self, pending: Pending, event: CallOn, error: BaseException) -> bool:
        kernel = self._kernel
        with kernel.lock:
            given_up = not pending.settled
            if given_up:
                kernel.take(lambda state: kernel.protocol.give_up(state, pending.call, event), error)
        kernel.run_later()
        return given_up

    # --- settling ---------------------------------------------------------------------------------------------------

    def perform(self, effect: str, call: int, cause: BaseException | None) -> None:
        """Do one effect of futures draining. The lock is held."""
        if effect is FuturesDo.WAKE_PARKED:
            self.draining.wake_parked()
        elif effect is not FuturesDo.PASS_ON:
            pending = self._open.pop(call, None)
            if pending is not None:
                pending.settle(None if effect is FuturesDo.RESOLVE else cause or self._kernel.why_closed())
                if pending.future is not None:
                    self._kernel.later(pending.future.tell, pending.future.foreign)
                self.draining.wake_owner()

    def late(self, pending: Pending, timeout: float | None) -> CallTimeoutError:
        """The error of a wait that took too long: it names who has answered and who has not."""
        owing = self.owing(pending.call)
        answered = [rank for rank in range(self._kernel.config.world_size) if rank not in owing]
        return CallTimeoutError(
            f"call {pending.call} ({pending.method!r}) was not answered within {timeout} s, "
            f"{time.monotonic() - pending.since:.3f} s after it was made; waiting for rank {_names(owing)}, "
            f"answered by rank {_names(answered)}. A late answer is dropped and disturbs no later call.",
            call=pending.call,
            method=pending.method,
            waiting_for=owing,
        )

    def owing(self, call: int) -> tuple[int, ...]:
        """The ranks that owe the call their answer."""
        for identity, state in self._kernel.state.calls:
            if identity.call == call:
                return tuple(rank for rank, reply in enumerate(state[1:]) if reply is Reply.OWED)
        return ()

    def close(self) -> None:
        """Forget what was not sent, once nobody drains. The lock is held."""
        self.draining.wait_until_nobody_waits()
        for pending in self._open.values():  # an exception came in the middle of settling it
            pending.settle(self._kernel.why_closed())
            if pending.future is not None:
                self._kernel.later(pending.future.tell, pending.future.foreign)
        self._open.clear()
        self._kernel.changed.notify_all()
        for waiting in self._outbox:
            for packet in waiting:
                packet.close()
            waiting.clear()


def _names(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks) or "(none)"
