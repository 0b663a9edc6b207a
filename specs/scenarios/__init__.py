"""The scenario table: each thing that users met, the variant that shows it, and what is left out and why.

`GROUPS` has the rows by group, in order; `ROWS` has all of them.
"""

from __future__ import annotations

from .calls import FUTURES
from .internals import INTERNALS
from .row import Scenario
from .start import AGREEMENT, QUEUES, READY
from .stop import STOP

GROUPS: dict[str, tuple[Scenario, ...]] = {
    "READY handshake and start-up": READY,
    "Queue readiness and order of set-up": QUEUES,
    "Futures, replies, deadlines, aggregation": FUTURES,
    "Shutdown, monitors, signals, orphans": STOP,
    "Queue internals": INTERNALS,
    "Run and pause, agreed between engines": AGREEMENT,
}
ROWS: tuple[Scenario, ...] = tuple(row for rows in GROUPS.values() for row in rows)

__all__ = ["GROUPS", "ROWS", "Scenario"]
