"""The one owner of the lifecycle: a thread that makes processes, hears them, escalates, reaps, and leaves last.

Theory of operation:

1. It waits for everything at once: every rank's pidfd and control channel, the queues' JOINED and OPEN, room for what
   could not be sent, the alarm of the stop, the deadline of the start, and a flag that others set to be heard.
2. What it sees becomes facts; what is to be done about them is in the tables.
3. It alone makes and reaps processes. A stop is a flag for it: so a finaliser, a signal handler or a callback can ask
   for one without taking a lock, joining or talking.
4. All that a rank said is read before its death is told: a rank that reports why it failed, and dies, failed for that
   reason (vllm#47422).
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from multiprocessing import resource_tracker

from ..protocol.core import Identity, IllegalEventError
from ..protocol.queues import Gate, Reader, ReaderOn, Seat, SeatOn
from ..protocol.ready import RankStart, RankStartOn, Start
from ..protocol.shutdown import RankStop, Stop
from .channel import Message, Say, receive
from .errors import (
    ExecutorError,
    QueueClosedError,
    RemoteFailure,
    RemoteTraceback,
    StartError,
    WorkerDiedError,
    WorkerError,
    how_it_ended,
)
from .fork_server import warm
from .interruptible import Thread
from .kernel import Kernel
from .ranks import EPOCH
from .wait import READ, WRITE, Waiter, deadline_in

_ALONE = 0.001  # seconds for which calls may be without a drainer before the supervisor looks after them


class Supervisor:
    """Owns the processes of one executor."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.thread = Thread(self._run, "procession-supervisor")
        self._ranks = kernel.ranks
        self._waiter = Waiter()
        self._waiter.watch(kernel.wake.fd)
        self._began = time.monotonic()
        self._deadline = deadline_in(kernel.config.start_timeout)
        self._phase_since = [self._began] * kernel.config.world_size
        self._pidfds: dict[int, int] = {}
        self._tend_at: float | None = None
        self._tending = False

    def start(self) -> None:
        """Begin; the executor's constructor waits for what comes of it."""
        if self.kernel.config.start_method != "fork":
            # What other methods need, and start in passing: it unblocks signals in the thread that starts it. That must
            # not be the supervisor's, whose processes begin with them blocked, and which takes no signal for anybody.
            resource_tracker.ensure_running()
        self.thread.start()

    def ask_stop(self) -> None:
        """Ask for a stop: no lock, no wait. The first one counts."""
        self.kernel.stop_asked = True
        self.kernel.wake.set()

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        # Whatever this thread makes begins with these blocked; the process's own threads take its signals.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        kernel = self.kernel
        try:
            if kernel.config.start_method == "forkserver":
                warm(kernel.config.preload)
            for rank in range(kernel.config.world_size):
                self._heed_stop()
                if kernel.state.stop[0] is not Stop.RUNNING:
                    break
                self._make(rank)
            while kernel.state.stop[0] not in (Stop.DOWN, Stop.SURVIVORS):  # no wait is without a bound
                self._turn()
        except BaseException as error:  # noqa: BLE001 - a defect of ours must not leave anybody waiting
            traceback.print_exc()
            self._last_resort(error)
        try:
            kernel.close()
        finally:
            kernel.decided.set()
            kernel.ended.set()

    def _turn(self) -> None:
        kernel = self.kernel
        self._watch_rooms()
        expiry = kernel.calls.next_deadline()
        times = (kernel.alarm, self._start_deadline(), self._tend(), expiry)
        limits = [limit for limit in times if limit is not None]
        ready = self._waiter.wait(min(limits, default=None))
        if kernel.wake.fd in ready:
            kernel.wake.clear()
        self._heed_stop()
        for rank in self._ranks.alive():
            self._hear(rank, ready)
        if self._tending and kernel.calls.draining.arrival_fd in ready:
            self._tend_calls()
        now = time.monotonic()
        if expiry is not None and now >= expiry:
            kernel.calls.expire()
        if kernel.alarm is not None and now >= kernel.alarm:
            kernel.fact(kernel.protocol.stop_alarm)
        deadline = self._start_deadline()
        if deadline is not None and now >= deadline:
            kernel.fact(kernel.protocol.start_deadline, self._too_late())
            self._deadline = None

    def _tend(self) -> float | None:
        """Watch the replies where callers have left calls alone for a while; until when not to, if that is known."""
        draining = self.kernel.calls.draining
        if not draining.tended or self._tending:
            return None
        now = time.monotonic()
        if self._tend_at is None:
            self._tend_at = now + _ALONE
        if now < self._tend_at:
            return self._tend_at
        self._tend_at = None
        draining.tended = False
        if draining.unattended():  # asked after the flag is down: whoever leaves a call later raises it again
            draining.tended = self._tending = True
            self._waiter.watch(draining.arrival_fd)
        return None

    def _tend_calls(self) -> None:
        draining = self.kernel.calls.draining
        self._waiter.forget(draining.arrival_fd)
        self._tending = False
        draining.drain_once()

    def _heed_stop(self) -> None:
        broken, self.kernel.broken = self.kernel.broken, None
        if broken is not None:
            self.kernel.fact(self.kernel.protocol.fault, broken)
        if self.kernel.stop_asked:
            self.kernel.stop_asked = False
            self.kernel.fact(self.kernel.protocol.ask_stop)

    def _start_deadline(self) -> float | None:
        state = self.kernel.state
        starting = state.start[0] is Start.STARTING or Gate.GATHERING in (
            state.broadcast[0],
            state.replies[0],
        )
        return self._deadline if starting else None

    def _watch_rooms(self) -> None:
        for rank in self._ranks.alive():
            sock = self._ranks.broadcast.sockets[rank]
            seat = self.kernel.state.broadcast[rank + 1]
            events = (READ if seat is Seat.EXPECTED else 0) | (WRITE if self.kernel.calls.unsent(rank) else 0)
            if events:
                self._waiter.watch(sock.fileno(), events)
            else:
                self._waiter.forget(sock.fileno())

    # --- making -----------------------------------------------------------------------------------------------------

    def _make(self, rank: int) -> None:
        kernel = self.kernel
        try:
            self._ranks.make(rank, EPOCH)
        except Exception as error:  # noqa: BLE001 - whatever keeps a process from being made fails the start
            text = f"the process of rank {rank} could not be made ({type(error).__name__}: {error})"
            cause = StartError(
                text + "; is there room for more processes (ulimit -u) and descriptors (ulimit -n)?"
            )
            cause.__cause__ = error
            kernel.fact(kernel.protocol.fault, cause)
            return
        self._phase(rank, "spawned")
        kernel.fact(lambda state: kernel.protocol.made(state, rank))
        process = self._ranks.process(rank)
        self._waiter.watch(self._ranks.controls[rank].fileno())
        if process.gone_already:
            self._died(rank)
        else:
            self._pidfds[rank] = process.pidfd
            self._waiter.watch(process.pidfd)

    # --- hearing ----------------------------------------------------------------------------------------------------

    def _hear(self, rank: int, ready: list[int]) -> None:
        control = self._ranks.controls[rank]
        pidfd = self._pidfds[rank]
        died = pidfd in ready
        if control.fileno() in ready or died:
            self._hear_control(rank)
        broadcast = self._ranks.broadcast.sockets[rank]
        if broadcast.fileno() in ready:
            self._hear_broadcast(rank)
        if self._ranks.has_inlet(rank) and self._ranks.inlet(rank).fileno() in ready:
            self._hear_open(rank)
        if died:
            self._waiter.forget(pidfd)
            del self._pidfds[rank]
            self._died(rank)

    def _hear_control(self, rank: int) -> None:
        control = self._ranks.controls[rank]
        while True:
            try:
                message = receive(control)
            except QueueClosedError:
                self._waiter.forget(control.fileno())
                return
            if message is None:
                return
            self._said(rank, message)

    def _said(self, rank: int, message: Message) -> None:
        kernel = self.kernel
        name, detail = message.value()
        event = RankStartOn[name.upper()]
        own, theirs = Identity(EPOCH, rank), message.identity
        cause = self._failure(rank, detail) if event is RankStartOn.FAILED else None
        if not self._allowed(
            lambda: kernel.fact(
                lambda state: kernel.protocol.give(state, "start", rank, event, own, theirs), cause
            )
        ):
            _close(message.fds)
            return
        accepted = kernel.state.start[rank + 1] is RankStart.READY
        if event is RankStartOn.READY and accepted and message.fds and not self._ranks.has_inlet(rank):
            self._ranks.adopt_inlet(rank, message.fds[0])
            self._waiter.watch(message.fds[0])
            if kernel.state.replies[rank + 1] is Reader.UNKNOWN:
                kernel.fact(lambda state: kernel.protocol.give(state, "replies", rank, ReaderOn.HANDLE))
        else:
            _close(message.fds)
        self._phase(rank, "device" if event is RankStartOn.HELLO else event.value)

    def _hear_broadcast(self, rank: int) -> None:
        kernel = self.kernel
        sock = self._ranks.broadcast.sockets[rank]
        try:
            message = receive(sock)
        except QueueClosedError:
            self._waiter.forget(sock.fileno())
            return
        if message is None:
            kernel.calls.flush(rank)
        elif message.kind is Say.RELEASED:
            self._ranks.broadcast.arena.released(message.identity.call)
        elif message.kind is Say.JOINED:
            self._allowed(
                lambda: kernel.fact(
                    lambda state: kernel.protocol.give(state, "broadcast", rank, SeatOn.JOINED)
                )
            )

    def _hear_open(self, rank: int) -> None:
        kernel = self.kernel
        sock = self._ranks.inlet(rank)
        self._waiter.forget(sock.fileno())  # what comes after OPEN is the callers' to read
        try:
            message = receive(sock)
        except QueueClosedError:
            return
        if message is None:
            self._waiter.watch(sock.fileno())
        elif message.kind is Say.OPEN:
            kernel.calls.draining.watch(sock.fileno())
            self._allowed(
                lambda: kernel.fact(
                    lambda state: kernel.protocol.give(state, "replies", rank, ReaderOn.OPENED)
                )
            )

    def _allowed(self, give: object) -> bool:
        """Give a fact that a peer's message brought; what the protocol does not allow fails the executor."""
        assert callable(give)
        try:
            give()
        except IllegalEventError as error:
            kernel = self.kernel
            kernel.fact(kernel.protocol.fault, ExecutorError(str(error)))
            return False
        return True

    def _died(self, rank: int) -> None:
        kernel = self.kernel
        status = self._ranks.process(rank).status()
        kernel.exits[rank] = status
        asked = kernel.state.stop[rank + 1] is not RankStop.ALIVE
        phase = self._doing(rank)
        text = (
            f"rank {rank} (pid {self._ranks.process(rank).pid}) ended with {how_it_ended(status)} {phase}; "
            "nobody had asked it to"
        )
        cause = WorkerDiedError(text, rank=rank, phase=phase, exit_status=status)
        kernel.fact(lambda state: kernel.protocol.died(state, rank), None if asked else cause)
        self._phase(rank, "gone")

    # --- words ------------------------------------------------------------------------------------------------------

    def _doing(self, rank: int) -> str:
        state = self.kernel.state
        start = state.start[rank + 1]
        if start is not RankStart.READY:
            since = time.monotonic() - self._phase_since[rank]
            return f"while its start was in {start.name} ({start.meaning}), {since:.3f} s after it came there"
        if state.replies[rank + 1] is not Reader.OPEN or state.broadcast[rank + 1] is not Seat.OPEN:
            return "between READY and the opening of its queues"
        calls = [identity.call for identity, call in state.calls if call[rank + 1].name == "OWED"]
        return f"while it owed call {calls[0]}" if calls else "while it was idle"

    def _failure(self, rank: int, failure: object) -> WorkerError:
        phase = self._doing(rank)
        assert isinstance(failure, RemoteFailure)
        error = WorkerError(
            f"rank {rank} failed {phase}: {failure.kind}: {failure.text}", rank=rank, phase=phase
        )
        error.__cause__ = RemoteTraceback(failure.traceback)
        return error

    def _too_late(self) -> StartError:
        state = self.kernel.state
        now = time.monotonic()
        late = []
        for rank, start in enumerate(state.start[1:]):
            open_ = state.broadcast[rank + 1] is Seat.OPEN and state.replies[rank + 1] is Reader.OPEN
            if start is not RankStart.READY:
                late.append(
                    f"rank {rank} is in {start.name} ({start.meaning}) since {now - self._phase_since[rank]:.1f} s"
                )
            elif (
                not open_ and state.start[0] is Start.UP
            ):  # else it is READY and waits for those that are not
                late.append(f"rank {rank} is READY and its queues are not open")
        return StartError(
            f"the start took more than {self.kernel.config.start_timeout} s and was given up: {'; '.join(late)}. "
            "Raise start_timeout if that is only slow."
        )

    def _phase(self, rank: int, phase: str) -> None:
        now = time.monotonic()
        self._phase_since[rank] = now
        tell = self.kernel.config.on_phase
        if tell is not None:
            try:
                tell(rank, phase, now - self._began)
            except Exception:  # noqa: BLE001 - a progress display must not end a start
                traceback.print_exc()

    def _last_resort(self, error: BaseException) -> None:
        """Something is wrong in this very file: end every process, and fail everybody who waits."""
        kernel = self.kernel
        for rank in self._ranks.alive():
            self._ranks.process(rank).signal(signal.SIGKILL)
        for rank in self._ranks.alive():
            self._ranks.process(rank).reap()
        try:
            kernel.fact(
                kernel.protocol.fault,
                ExecutorError(f"the supervisor failed: {type(error).__name__}: {error}"),
            )
        except IllegalEventError:
            traceback.print_exc()
        kernel.blocked.set()


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)
