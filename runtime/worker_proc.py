"""A worker's process: it steps the worker's machines, and does what they say.

Theory of operation:

1. `main` is the process. It closes inherited ends that are not its own, arms the watch on the executor, makes SIGINT
   the executor's business and SIGTERM an immediate end, and then runs `WorkerProc`.
2. Everything the worker decides is in the tables of `WorkerProtocol`; here facts become events, and effects become
   calls and packets.
3. It waits in one way: for a message, the end of the control channel (a stop), or the executor's death.
4. A thread that sleeps in the kernel watches the executor's pidfd, for the time in which the main thread is in a
   method or in native code: when the executor is gone, the process ends at once, whatever it was doing.
5. The process ends by `os._exit`: no destructor of a communication library may wait for peers that are gone.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import sys
import traceback
from dataclasses import dataclass
from typing import Any, NoReturn

from ..protocol.core import Event, Identity, Step
from ..protocol.core.cluster import AGGREGATE
from ..protocol.futures import FuturesDo, Serve, ServeOn
from ..protocol.queues import QueueDo, ReaderOn, SeatOn
from ..protocol.ready import BootOn, RankStartOn, ReadyDo
from ..protocol.shutdown import Leave, LeaveOn, StopDo
from ..protocol.worker import WorkerProtocol, WorkerState
from .amx.kernel import permit
from .arena import Arena, Returns
from .channel import IN_BAND, Message, Packet, Say, collect, give_back, pair, receive
from .codec import encode
from .config import check_worker_class
from .errors import QueueClosedError, RemoteFailure
from .process import PassedFd, close_foreign_ends, watch
from .record import Pause, hook
from .shared_lock import SharedLock
from .wait import WRITE, Waiter

_TEXT_LIMIT = 16_000  # characters of a traceback that travel; the packet of a control channel is bounded


# The keywords that the executor gives to every worker, beside the user's own.
GIVEN = ("rank", "local_rank", "is_driver_worker", "distributed_init_method", "shared_worker_lock")


@dataclass(frozen=True)
class Launch:
    """What a worker's process is given. `payload` is a cloudpickle of `Work`, read only once HELLO can be said."""

    epoch: int
    rank: int
    title: str
    is_driver: bool
    init_method: str
    threads: int
    control: socket.socket
    broadcast: socket.socket
    executor: PassedFd
    lock: PassedFd
    tape: PassedFd | None
    spin: float
    payload: bytes


@dataclass(frozen=True)
class Work:
    """The part of the configuration that a worker's process needs."""

    worker_cls: type[Any] | str
    keywords: dict[str, Any]
    pause: Pause | None
    protocol: WorkerProtocol | None


def main(launch: Launch) -> None:
    """The process of one rank; never returns."""
    _stand_alone(launch)
    code = 1
    try:
        WorkerProc(launch).run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - the last line of defence: whatever it is, it must be seen, and end here
        traceback.print_exc()
    _exit(code)


def _stand_alone(launch: Launch) -> None:
    """What must be so before a signal can come or the executor can die."""
    own = {launch.control.fileno(), launch.broadcast.fileno(), launch.executor.fd, launch.lock.fd}
    if launch.tape is not None:
        own.add(launch.tape.fd)
    close_foreign_ends(own)
    # A terminal sends SIGINT to the whole group: the executor decides what it means, and tells us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The default action ends a process in native code, too, and starts no clean-up that could need a peer.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    permit()  # AMX tiles, before anything computes; where there are none, the answer is no and nothing happens
    watch(launch.executor.fd)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    os.environ.setdefault("OMP_NUM_THREADS", str(launch.threads))
    with contextlib.suppress(ImportError):
        import setproctitle

        setproctitle.setproctitle(launch.title)


def _exit(code: int) -> NoReturn:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


class WorkerProc:
    """One rank: its machines, its channels and its worker."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.rank = launch.rank
        self.process = f"rank {launch.rank}"
        self.worker: Any = None
        self.reply: socket.socket | None = None
        self._their_reply: socket.socket | None = None
        self._failure: RemoteFailure | None = None
        self._answer: Packet | None = None
        self._arena = Arena(1)
        self._returns = Returns()
        self._broken: RemoteFailure | None = None
        self.work: Work | None = None
        try:
            self.work = pickle.loads(launch.payload)
        except Exception as error:  # noqa: BLE001 - a user's class may raise anything when it is imported
            self._broken = _failure(error)
        pause = self.work.pause if self.work else None
        self.protocol = (self.work.protocol if self.work else None) or WorkerProtocol()
        self.state = self.protocol.initial()
        self._hook = hook(self.process, launch.tape.fd if launch.tape else None, pause)
        self._waiter = Waiter()
        for fd in (launch.broadcast.fileno(), launch.control.fileno(), launch.executor.fd):
            self._waiter.watch(fd)

    # --- the life of a worker ---------------------------------------------------------------------------------------

    def run(self) -> None:
        """From BORN to GONE."""
        self._boot()
        while self.state.leave[0] is not Leave.GONE:
            due = self.protocol.due(self.state)
            if due is not None:
                self._give(*due)
                continue
            if self.state.leave[0] is Leave.LEAVING:
                self._give("leave", LeaveOn.CLEAN)
                continue
            self._listen()

    def _boot(self) -> None:
        for done in (BootOn.BORN, BootOn.DEVICE_UP, BootOn.WEIGHTS_UP, BootOn.QUEUES_UP):
            if self._told_to_stop():
                return
            self._failure = self._broken or self._attempt(done)
            if self._failure is not None:
                self._give("boot", BootOn.RAISED)
                return

    def _attempt(self, done: BootOn) -> RemoteFailure | None:
        """One phase is done, so the next one begins; what it raised, if it did."""
        try:
            self._give("boot", done)
        except _PhaseFailed as failed:
            return failed.failure
        return None

    def _told_to_stop(self) -> bool:
        """Between two phases: whether the executor closed the control channel, or is gone."""
        waiter = Waiter()
        waiter.watch(self.launch.control.fileno())
        waiter.watch(self.launch.executor.fd)
        ready = waiter.wait(0.0)
        if self.launch.executor.fd in ready:
            self._take(self.protocol.orphaned(self.state))
        elif ready:
            self._take(self.protocol.stop(self.state))
        return bool(ready)

    def _listen(self) -> None:
        """Wait for the next fact, and give it to the machines; death and stop come before any message."""
        give_back(self.launch.broadcast, self._returns)
        ready = self._waiter.wait(spin=self.launch.spin)
        if self.launch.executor.fd in ready:
            self._take(self.protocol.orphaned(self.state))
        elif self.launch.control.fileno() in ready:
            self._take(self.protocol.stop(self.state))
        elif self.launch.broadcast.fileno() in ready:
            self._heard(self.launch.broadcast, self._from_broadcast)
        elif self.reply is not None:
            self._heard(self.reply, self._from_reply)

    def _heard(self, sock: socket.socket, take: Any) -> None:
        try:
            message = receive(sock, self._returns)
        except QueueClosedError:
            # The executor ended the queue. What that means comes over the control channel, or by its death.
            self._waiter.forget(sock.fileno())
            return
        if message is not None:
            take(message)

    def _from_broadcast(self, message: Message) -> None:
        if message.kind is Say.OPEN:
            self._give("intake", ReaderOn.OPENED)
            return
        self._give("serve", ServeOn.CALL, message=message)
        identity = message.identity
        outcome = self._run_method(message)
        del message  # the arguments must not outlive the call (vllm#51979)
        self._reply(identity, outcome)

    def _from_reply(self, _: Message) -> None:
        self._give("outlet", SeatOn.JOINED, slot=0)
        assert self.reply is not None
        self._waiter.forget(self.reply.fileno())  # from here on this side only writes

    # --- calls ------------------------------------------------------------------------------------------------------

    def _run_method(self, message: Message) -> Packet:
        """Run the call; the packet that answers it, in whatever way it ended."""
        identity = message.identity._replace(rank=self.rank)
        method: Any = "?"
        try:
            method, args, kwargs, reply_rank = message.value()
            function = pickle.loads(method) if isinstance(method, bytes) else None
            method = getattr(function, "__qualname__", repr(function)) if function is not None else method
            result = (
                function(self.worker, *args, **kwargs) if function else self._named(method)(*args, **kwargs)
            )
            if reply_rank is not None and reply_rank != self.rank:
                result = None
            body = encode(result, f"what {method!r} returned on rank {self.rank}")
            if body.size > IN_BAND and self.reply is not None:
                collect(self.reply, self._arena)
            return Packet(Say.RETURNED, body, arena=self._arena).address(identity)
        except Exception as error:  # noqa: BLE001 - whatever a method raises is its caller's to know
            return Packet(Say.RAISED, encode((method, _failure(error)), "the failure")).address(identity)

    def _named(self, method: str) -> Any:
        found = getattr(self.worker, method, None)
        if callable(found):
            return found
        if method == "check_health" and found is None:
            return lambda: None  # a worker that comes this far has a loop that turns
        kind = type(self.worker)
        raise AttributeError(f"worker {kind.__module__}.{kind.__qualname__} has no method {method!r}")

    def _reply(self, identity: Identity, packet: Packet) -> None:
        self._answer = packet
        raised = packet.data[0] == Say.RAISED
        self._give("serve", ServeOn.RAISED if raised else ServeOn.RETURNED, call=identity.call)
        if self.state.serve[0] is Serve.REPLYING:  # else it was told to stop while it waited for room
            self._give("serve", ServeOn.SENT, call=identity.call)

    def _send(self, packet: Packet) -> None:
        """Write an answer: waits for room, or a stop, or the executor's death."""
        assert self.reply is not None
        waiter: Waiter | None = None
        try:
            while not self._sent(packet, waiter):
                if waiter is None:  # it is full: only now is there anything to wait for
                    waiter = Waiter()
                    waiter.watch(self.reply.fileno(), WRITE)
                    waiter.watch(self.launch.control.fileno())
                    waiter.watch(self.launch.executor.fd)
                ready = waiter.wait()
                if self.launch.executor.fd in ready:
                    return self._take(self.protocol.orphaned(self.state))
                if self.launch.control.fileno() in ready:
                    return self._take(self.protocol.stop(self.state))
        finally:
            packet.close()

    def _sent(self, packet: Packet, waiter: Waiter | None) -> bool:
        assert self.reply is not None
        try:
            return packet.send(self.reply)
        except QueueClosedError:
            if waiter is not None:  # the executor is ending, or has: its death or the stop will say so
                waiter.forget(self.reply.fileno())
            return False

    # --- steps and effects ------------------------------------------------------------------------------------------

    def _give(
        self, cluster: str, event: Event, slot: int = AGGREGATE, message: Message | None = None, call: int = 0
    ) -> None:
        if message is not None:
            call = message.identity.call
        self._take(self.protocol.give(self.state, cluster, event, slot), call)

    def _take(self, result: tuple[WorkerState, tuple[Step, ...]], call: int = 0) -> None:
        self.state, steps = result
        for step in steps:
            if self._hook is not None:
                self._hook(call, step)
            for effect in step.effects:
                self._perform(effect, step)

    def _perform(self, effect: str, step: Step) -> None:
        if effect in (ReadyDo.INIT_DEVICE, ReadyDo.LOAD_MODEL, ReadyDo.MAKE_QUEUES):
            self._phase(effect)
        elif effect is FuturesDo.SEND_REPLY or effect is FuturesDo.SEND_FAILURE:
            packet, self._answer = self._answer, None
            assert packet is not None
            self._send(packet)
        elif effect is ReadyDo.SEND_HELLO:
            self._say(RankStartOn.HELLO, {"pid": os.getpid()})
        elif effect is ReadyDo.SEND_PHASE:
            self._say(RankStartOn[step.dest.name])
        elif effect is ReadyDo.SEND_READY:
            assert self._their_reply is not None
            self._say(RankStartOn.READY, fds=(self._their_reply.fileno(),))
            self._their_reply.close()
        elif effect is ReadyDo.SEND_FAILED:
            self._say(RankStartOn.FAILED, self._failure)
        elif effect is QueueDo.SEND_JOINED:
            self._speak(self.launch.broadcast, Say.JOINED)
        elif effect is QueueDo.SEND_OPEN:
            assert self.reply is not None
            self._speak(self.reply, Say.OPEN)
        elif effect is StopDo.RUN_SHUTDOWN:
            self._shutdown()
        elif effect is StopDo.EXIT:
            raise SystemExit(0 if self._failure is None else 1)
        # RUN_METHOD is done by `_from_broadcast`, which has the message.

    def _phase(self, effect: str) -> None:
        try:
            if effect is ReadyDo.INIT_DEVICE:
                self._make_worker()
                self.worker.init_device()
            elif effect is ReadyDo.LOAD_MODEL:
                self.worker.load_model()
            else:
                self.reply, self._their_reply = pair()
                self._waiter.watch(self.reply.fileno())
        except Exception as error:
            raise _PhaseFailed(_failure(error)) from error

    def _make_worker(self) -> None:
        assert self.work is not None
        found = self.work.worker_cls
        if isinstance(found, str):
            module, _, name = found.partition(":")
            __import__(module)
            found = getattr(sys.modules[module], name)
            check_worker_class(found)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self.launch.threads)
        given = (
            self.rank,
            self.rank,
            self.launch.is_driver,
            self.launch.init_method,
            SharedLock(self.launch.lock.fd),
        )
        self.worker = found(**self.work.keywords, **dict(zip(GIVEN, given, strict=True)))

    def _shutdown(self) -> None:
        stop = getattr(self.worker, "shutdown", None)
        if callable(stop):
            try:
                stop()
            except Exception:  # noqa: BLE001 - it must not keep the process; it is printed for its author
                traceback.print_exc()

    def _say(self, event: RankStartOn, detail: object = None, fds: tuple[int, ...] = ()) -> None:
        identity = Identity(self.launch.epoch, self.rank)
        packet = Packet(Say.START, encode((event.value, detail), "the phase"), fds).address(identity)
        with contextlib.suppress(QueueClosedError):  # the executor's end is learnt by its pidfd
            packet.send(self.launch.control)
        packet.close()

    def _speak(self, sock: socket.socket, word: Say) -> None:
        with contextlib.suppress(QueueClosedError):
            Packet(word).address(Identity(self.launch.epoch, self.rank)).send(sock)


class _PhaseFailed(Exception):  # noqa: N818 - it carries a failure from an effect to the loop, and is never shown
    def __init__(self, failure: RemoteFailure) -> None:
        super().__init__(failure)
        self.failure = failure


def _failure(error: BaseException) -> RemoteFailure:
    text = "".join(traceback.format_exception(error))
    if len(text) > _TEXT_LIMIT:
        half = _TEXT_LIMIT // 2
        text = f"{text[:half]}\n[{len(text) - _TEXT_LIMIT} characters left out]\n{text[-half:]}"
    try:
        shown = str(error)[:_TEXT_LIMIT]
    except Exception as broken:  # noqa: BLE001 - an exception's own __str__ may raise
        shown = f"(its text cannot be had: {type(broken).__name__})"
    return RemoteFailure(type(error).__qualname__, shown, text)
