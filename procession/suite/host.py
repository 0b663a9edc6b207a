"""A program with an executor, to be killed: `python -m procession.suite.host RANKS METHOD`."""

from __future__ import annotations

import json
import sys

from ..runtime import ExecutorConfig, MultiprocExecutor
from ..runtime.fork_server import helper_pids
from .hand import Hand
from .ours import PRELOAD


def main(ranks: int, method: str) -> None:
    """Start, say who is there, and wait to be killed, or for the end of stdin."""
    config = ExecutorConfig(
        Hand,
        {"folder": "", "flaw": None},
        tensor_parallel_size=ranks,
        start_method=method,  # type: ignore[arg-type]  # checked by the configuration
        preload=PRELOAD,
        threads=1,
    )
    with MultiprocExecutor(config) as executor:
        pids = {f"rank {rank}": pid for rank, pid in executor.pids.items()}
        pids |= {f"helper {number}": pid for number, pid in enumerate(sorted(helper_pids()))}
        print(json.dumps(pids), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
