"""One line about the protocol, for whoever runs it: the model, the states explored, the verdict.

Theory of operation. The smallest model of the whole life (one rank, one call, a crash, a stop, the executor killed) is
searched in about a second, with every property. What was found for a pair of protocols is kept for this process.
"""

from __future__ import annotations

from typing import NamedTuple

from ..protocol.executor import ExecutorProtocol
from ..protocol.worker import WorkerProtocol
from .explore import Limits, check
from .models import LIFE


class Summary(NamedTuple):
    """What `summary` found; `verdict` is "holds", "violated" or "not established"."""

    model: str
    states: int
    properties: int
    verdict: str
    seconds: float


_known: dict[tuple[int, int, int], tuple[object, Summary]] = {}


def summary(
    executor: ExecutorProtocol | None = None,
    worker: WorkerProtocol | None = None,
    *,
    ranks: int = 1,
    seconds: float = 10.0,
) -> Summary:
    """Check the whole life at a small size; the search ends, as *not established*, after `seconds` seconds."""
    key = (id(executor), id(worker), ranks)
    if key not in _known:
        world = LIFE.world(ranks=ranks, executor=executor, worker=worker)
        asked = LIFE.properties(world)
        report = check(world, asked, Limits(seconds=seconds))
        found = Summary(LIFE.name, report.states, len(asked), str(report.verdict), report.seconds)
        _known[key] = ((executor, worker), found)  # the protocols are held, so that their ids stay theirs
    return _known[key][1]
