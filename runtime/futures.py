"""The future of one call: a real `concurrent.futures.Future` whose waiter fetches the replies itself."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import ExecutorError
from .wait import deadline_in

if TYPE_CHECKING:
    from .calls import Calls


class CallFuture(concurrent.futures.Future[Any]):
    """The answer of one call: of one rank, of all ranks by rank, or of an aggregator over them.

    `result`, `exception` and `done` read the reply queues on behalf of every caller; no thread is handed anything.
    `add_done_callback`, `concurrent.futures.wait`, `as_completed` and `asyncio.wrap_future` work as with any future;
    callbacks run in a thread of ours, in no particular order.
    """

    def __init__(
        self,
        calls: Calls,
        method: str,
        ranks: int,
        reply_rank: int | None,
        aggregate: Callable[[list[Any]], Any] | None,
        deadline: float | None,
        timeout: float | None,
    ) -> None:
        super().__init__()
        self.call = 0  # set when it is submitted
        self.method = method
        self.deadline = deadline
        self.timeout = timeout
        self.since = time.monotonic()
        self.settled = False  # known under the kernel's lock before the future itself is told
        self._calls = calls
        self._reply_rank = reply_rank
        self._aggregate = aggregate
        self._values: list[Any] = [None] * ranks

    # --- for whoever waits ------------------------------------------------------------------------------------------

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
        if not self.settled:
            self._calls.wait_for(self, deadline_in(0.0))
        return super().done() or self.settled

    def cancel(self) -> bool:
        """Give the call up: late replies are dropped, and disturb no later call. False if it is settled otherwise."""
        return self._calls.cancel(self) or self.cancelled()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the future of call {self.call} ({self.method!r}) belongs to this process and cannot be pickled; "
            "send its result() instead"
        )

    def _fetch(self, timeout: float | None) -> None:
        if not self.settled and not self._calls.wait_for(self, deadline_in(timeout)):
            raise self._calls.late(self, timeout)

    # --- for the kernel ---------------------------------------------------------------------------------------------

    def put(self, rank: int, value: Any) -> None:
        """A rank's value arrived."""
        self._values[rank] = value

    def finish(self) -> None:
        """Every rank has answered: hand over. Not under a lock: an aggregator is foreign code."""
        values, self._values = self._values, []
        try:
            if self._aggregate is not None:
                answer = self._aggregate(values)
            else:
                answer = values if self._reply_rank is None else values[self._reply_rank]
        except BaseException as error:
            self.set_exception(error)  # whatever the aggregator raises is the caller's, who may be another thread
            if isinstance(error, KeyboardInterrupt):
                raise
        else:
            self.set_result(answer)

    def give_up(self, error: BaseException) -> None:
        """The call failed, expired or was cancelled."""
        self._values = []
        if isinstance(error, concurrent.futures.CancelledError):
            super().cancel()
            self.set_running_or_notify_cancel()
        else:
            self.set_exception(error)
