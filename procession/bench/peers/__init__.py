"""The peers that `procession bench` knows, whether they are installed or not.

Theory of operation. Every peer does the same work (`work`) behind its own transport. Those that are not installed stay
in the list, with the reason: a comparison that silently drops an opponent is none.
"""

from __future__ import annotations

import importlib.util
import sys

from ..peer import Entry, Peer

SPIN = 50e-6  # seconds
OURS = "procession"
OURS_SPINNING = "procession, spin"
RECORDING = "procession, recording"
BARE = "bare"
BARE_SPINNING = "bare, spin"


def _ours(spin: float = 0.0, recording: bool = False) -> Peer:
    from .ours import Ours

    return Ours(spin, recording)


def _bare(spin: float = 0.0) -> Peer:
    from .bare import Bare

    return Bare(spin)


def _pipe() -> Peer:
    from .pipe import Pipes

    return Pipes()


def _zeromq() -> Peer:
    from .zeromq import ZeroMQ

    return ZeroMQ()


def _process_pool() -> Peer:
    from .pools import process_pool

    return process_pool()


def _loky() -> Peer:
    from .pools import loky

    return loky()


def _vllm() -> Peer:
    from .vllm import Vllm

    return Vllm()


def _missing(module: str, advice: str) -> str | None:
    return None if importlib.util.find_spec(module) else f"not installed ({advice})"


def entries() -> list[Entry]:
    """All of them, ours first."""
    from .bare import LARGEST

    extra = "pip install 'procession[bench]'"
    spin = f"{SPIN * 1e6:.0f} µs of yielding spin"
    return [
        Entry(OURS, "MultiprocExecutor, spin 0", _ours),
        Entry(OURS_SPINNING, f"MultiprocExecutor, {spin}", lambda: _ours(SPIN)),
        Entry(
            RECORDING, "MultiprocExecutor, spin 0, recorder on", lambda: _ours(recording=True), stepping=True
        ),
        Entry(BARE, "the floor: SEQPACKET socket pairs, pickle, poll; up to 32 KiB", _bare, largest=LARGEST),
        Entry(BARE_SPINNING, f"the floor with {spin}", lambda: _bare(SPIN), largest=LARGEST),
        Entry("pipe", "multiprocessing.Pipe, one a rank, answers read in rank order", _pipe),
        Entry("zeromq", "ZeroMQ PAIR sockets over ipc", _zeromq, _missing("zmq", extra)),
        Entry("process pool", "concurrent.futures.ProcessPoolExecutor, one task a rank", _process_pool),
        Entry("loky", "loky.ProcessPoolExecutor, one task a rank", _loky, _missing("loky", extra)),
        Entry(
            "vllm",
            "vLLM's MultiprocExecutor with an empty worker",
            _vllm,
            _missing("vllm", "pip install vllm"),
            restless=True,
        ),
    ]


def close() -> None:
    """End what loky (a process) and pyzmq (a thread) keep for as long as their program runs, if they were used."""
    tracker = sys.modules.get("loky.backend.resource_tracker")
    # Inherited from multiprocessing's, where it is for tests; there is no public way.
    stop = getattr(getattr(tracker, "_resource_tracker", None), "_stop", None)
    if stop is not None:
        stop()
    garbage = sys.modules.get("zmq.utils.garbage")
    if garbage is not None:
        garbage.gc.stop()
