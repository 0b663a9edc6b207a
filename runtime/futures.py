"""One call that is not answered yet, and the future that a caller may hold for it.

A blocking call needs no future: its own thread fetches the replies and makes the answer, and pays for nothing else.
`CallFuture` is a real `concurrent.futures.Future` over the same `Pending`.
"""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import ExecutorError
from .interruptible import Condition
from .wait import deadline_in

if TYPE_CHECKING:
    from .calls import Calls

Aggregate = Callable[[list[Any]], Any]


class Pending:
    """One call. `settled` is set under the kernel's lock, and from then on nothing changes."""

    __slots__ = (
        "_error",
        "_reply_rank",
        "_values",
        "aggregate",
        "call",
        "deadline",
        "future",
        "method",
        "settled",
        "since",
        "timeout",
    )

    def __init__(
        self,
        method: str,
        ranks: int,
        reply_rank: int | None,
        aggregate: Aggregate | None,
        deadline: float | None,
        timeout: float | None,
    ) -> None:
        self.call = 0  # set when it is sent
        self.method = method
        self.deadline = deadline
        self.timeout = timeout
        self.since = time.monotonic()
        self.settled = False
        self.future: CallFuture | None = None
        self._reply_rank = reply_rank
        self.aggregate = aggregate
        self._values: list[Any] = [None] * ranks
        self._error: BaseException | None = None

    def put(self, rank: int, value: Any) -> None:
        """A rank's value arrived."""
        self._values[rank] = value

    def settle(self, error: BaseException | None) -> None:
        """Every rank has answered, or the call failed, expired or was cancelled. The kernel's lock is held."""
        self._error = error
        self.settled = True

    def answer(self) -> Any:
        """What the caller gets, or raises; once, and not under a lock: an aggregator is foreign code."""
        error = self._error
        if error is not None:
            self._values = []  # whoever keeps the exception keeps this frame, and what its names stand for
            # One cause may fail many calls, and each waiter raises an object of its own.
            raise error.fresh() if isinstance(error, ExecutorError) else error
        values, self._values = self._values, []
        if self.aggregate is not None:
            return self.aggregate(values)
        return values if self._reply_rank is None else values[self._reply_rank]


class CallFuture(concurrent.futures.Future[Any]):
    """The answer of one call: of one rank, of all ranks by rank, or of an aggregator over them.

    `result`, `exception` and `done` read the reply queues on behalf of every caller; no thread is handed anything.
    `add_done_callback`, `concurrent.futures.wait`, `as_completed` and `asyncio.wrap_future` work as with any future;
    callbacks run in a thread of ours, in no particular order.
    """

    def __init__(self, calls: Calls, pending: Pending) -> None:
        super().__init__()
        self._condition = Condition()  # the library's own may be left held by a Ctrl-C in `result`
        self._calls = calls
        self._pending = pending
        pending.future = self

    @property
    def call(self) -> int:
        """The call's number."""
        return self._pending.call

    @property
    def method(self) -> str:
        """The call's method."""
        return self._pending.method

    @property
    def foreign(self) -> bool:
        """Whether telling it runs foreign code: an aggregator or callbacks, which may make calls of their own."""
        return self._pending.aggregate is not None or bool(self._done_callbacks)  # type: ignore[attr-defined]  # there since 3.2

    def add_done_callback(self, fn: Callable[[concurrent.futures.Future[Any]], object]) -> None:
        """Have `fn` called with the future when it is done; here and now if it is.

        A call that is settled may be about to be told by the thread that drains. What is added then must not run
        there: a callback that makes a call would wait behind itself.
        """
        if not self._calls.unless_settled(
            self._pending, lambda: super(CallFuture, self).add_done_callback(fn)
        ):
            concurrent.futures.wait([self])
            super().add_done_callback(fn)

    def result(self, timeout: float | None = None) -> Any:
        """The answer. Waits at most `timeout` seconds; then `TimeoutError`, and the call goes on.

        Raises what the call failed with: `WorkerError`, `WorkerDiedError`, `CallTimeoutError` (its own deadline),
        `ExecutorClosedError`, or `concurrent.futures.CancelledError`.
        """
        self._fetch(timeout)
        try:
            return super().result()
        except ExecutorError as error:
            raise error.fresh() from error.__cause__

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the call failed with, or None. Waits as `result` does."""
        self._fetch(timeout)
        return super().exception()

    def done(self) -> bool:
        """Whether the call is settled; looks whether the replies have come, and does not wait."""
        if not self._pending.settled:
            self._calls.wait_for(self._pending, deadline_in(0.0))
        return super().done() or self._pending.settled

    def cancel(self) -> bool:
        """Give the call up: late replies are dropped, and disturb no later call. False if it is settled otherwise."""
        return self._calls.cancel(self._pending) or self.cancelled()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the future of call {self.call} ({self.method!r}) belongs to this process and cannot be pickled; "
            "send its result() instead"
        )

    def _fetch(self, timeout: float | None) -> None:
        if not self._pending.settled and not self._calls.wait_for(self._pending, deadline_in(timeout)):
            raise self._calls.late(self._pending, timeout)

    def tell(self) -> None:
        """The call is settled: tell whoever holds the future. Not under a lock."""
        try:
            answer = self._pending.answer()
        except concurrent.futures.CancelledError:
            super().cancel()
            self.set_running_or_notify_cancel()
        except BaseException as error:
            self.set_exception(
                error
            )  # whatever an aggregator raises is the caller's, who may be another thread
            if isinstance(error, KeyboardInterrupt):
                raise
        else:
            self.set_result(answer)
