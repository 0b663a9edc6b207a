"""What processes at the end of a `MessageQueue` do in the tests."""

from __future__ import annotations

import os
from typing import Any

from procession.runtime import MessageQueue


def read(handle: Any, rank: int, count: int, report: Any) -> None:
    """Join, read `count` messages, report what came, and wait until told to leave."""
    queue = MessageQueue.create_from_handle(handle, rank)
    queue.wait_until_ready(20)
    report.send("ready")
    found = []
    for _ in range(count):
        try:
            got = queue.dequeue(20)
            if hasattr(got, "nbytes"):
                got[:] = rank + got[:1]  # writes into what it got
                got = (got.nbytes, int(got[0]), int(got[-1]))
            found.append(got)
        except Exception as error:  # noqa: BLE001 - the test sees what it was
            found.append((type(error).__name__, str(error)))
    report.send(found)
    report.recv()


def write_and_die(queue: MessageQueue) -> None:
    """The writer's process: one message, then no more."""
    queue.wait_until_ready(20)
    queue.enqueue("last words", 5)
    os._exit(9)
