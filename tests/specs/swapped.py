"""One table with two of its rows swapped; the checker convicts it, and the running executor (tests/runtime) shows it.

What follows the last answer, and what follows a failure, have changed places: a call that every rank answered fails,
and one to which a rank raised is resolved.
"""

from __future__ import annotations

from procession.protocol.executor import ExecutorProtocol
from procession.protocol.futures import CALL
from procession.specs.mutants import row_of, swapped

SWAPPED_CALL = swapped(
    CALL, row_of(CALL, "all_replied", "OPEN", "RESOLVED"), row_of(CALL, "rank_raised", "OPEN", "FAILED")
)
SWAPPED_EXECUTOR = ExecutorProtocol().but(SWAPPED_CALL)
