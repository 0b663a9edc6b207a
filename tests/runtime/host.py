"""A program with an executor, for tests that kill or interrupt it: `python -m tests.runtime.host '{"method": ...}'`."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from typing import Any

from procession.runtime import MultiprocExecutor, ShutdownPolicy, SignalAt
from tests.runtime.support import config, occupied
from tests.runtime.workers import Echo, Flawed


def say(word: str) -> None:
    """Tell the test how far it is."""
    print(word, flush=True)


class Stubborn(Echo):
    """Ignores SIGTERM, and never leaves by itself."""

    def init_device(self) -> None:
        self.ignore_sigterm()

    def shutdown(self) -> None:
        self.hang()


def main(options: dict[str, Any]) -> None:
    """Start, be busy with `work`, shut down; at `point`, send `signal` to itself."""
    worker: type[Echo] = Echo
    # An interrupted start waits for the grace: it is the policy's, and short here.
    settings: dict[str, Any] = {
        "start_method": options["method"],
        "shutdown": ShutdownPolicy(grace=0.4, term=0.4, kill=2),
    }
    if "point" in options:
        machine, event = options["point"]
        settings["pause"] = SignalAt("executor", machine, event, signal.Signals(options["signal"]))
    if "phase" in options:
        worker = Flawed
        settings["worker_kwargs"] = {"phase": options["phase"], "deed": "hang", "flawed": 1}
    if "stubborn" in options:
        worker = Stubborn
    settings["on_phase"] = lambda rank, phase, seconds: say(f"{phase} {rank}")
    ready = MultiprocExecutor(config(worker, 2, **settings))
    say("up")
    for n in range(2):
        assert ready.collective_rpc("echo", 10, (n,)) == [(0, n), (1, n)]
    if "work" in options:
        future = occupied(ready, options["work"])
        say("busy")
        future.result()
    if "idle" in options:
        say("idle")
        signal.pause()
    say("stopping")
    ready.shutdown()
    say(f"down {os.getpid()}")


if __name__ == "__mp_main__" and "PROCESSION_TEST_SLOW_MAIN" in os.environ:
    threading.Event().wait()  # a program whose import takes for ever, in the processes that it starts

if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # so that a test that finds it hanging can look
    main(json.loads(sys.argv[1]))
