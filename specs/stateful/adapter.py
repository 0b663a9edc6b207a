"""What an executor must offer to be driven, and the words in which it is asked and answers.

Theory of operation. An adapter translates: an `Ask` is a call to every rank, a `Plan` a start, and an exception becomes
an `Outcome`. All of them are plain data made of small numbers. What an executor does not offer it declares in `lacks`;
no program asks it for that, and the report says so. `Lacking` lacks everything: an adapter that inherits from it
writes what there is.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol


class Can(Enum):
    """What an executor may offer; its value says what that is."""

    KILL = "its ranks can be killed, and it says that one died"
    PAUSE = "its ranks can be stopped and continued by signals"
    HOLD = "its ranks can be held at a pause point"
    TRACE = "it records every step of every process"
    TIMEOUT = "a call has a deadline of its own, and a late answer disturbs nobody"
    CANCEL = "a call that was sent can be cancelled"
    MERGE = "a call's answers can be merged by an aggregator"
    ROOM = "it bounds how many calls are in flight"
    LISTEN = "failure callbacks"
    FLAW = "a start that fails says which rank failed it, and leaves nothing"
    ARGUMENT = "an argument that cannot be sent fails its call alone"
    ANSWER = "an answer that cannot be read fails its call alone"
    EXIT = "a rank that ends in a call fails every open call"
    RANK = "an error says which rank it is about"
    STOP_STUCK = "it stops in bounded time though a rank is stuck or stopped"
    ORPHAN = "its ranks end when its own process is killed"


class Deed(Enum):
    """What one rank, or every rank, does in a call; the others answer at once."""

    ECHO = "answers"
    RAISE = "raises"
    UNPICKLABLE = "returns what cannot be pickled"
    UNREADABLE = "returns what does not unpickle"
    EXIT = "ends its process"
    GATE = "answers when the gate is opened"
    ARGUMENT = "nothing: the call has an argument that cannot be pickled"


class Kind(Enum):
    """How a call or a start came out."""

    ANSWER = "answered"
    RAISED = "a rank raised"
    DIED = "a rank died"
    TIMED_OUT = "its deadline passed"
    CANCELLED = "cancelled"
    CLOSED = "the executor was closed"
    PAYLOAD = "what was sent cannot be pickled or read"
    OTHER = "something else"


class Outcome(NamedTuple):
    """How it came out, and whose doing it was, if that is known."""

    kind: Kind
    rank: int | None = None

    def __str__(self) -> str:
        return self.kind.value + ("" if self.rank is None else f" (rank {self.rank})")

    def fits(self, other: Outcome) -> bool:
        """Whether they may be the same; a rank that is not told fits any."""
        return self.kind is other.kind and (None in (self.rank, other.rank) or self.rank == other.rank)


_BAD_ANSWERS = frozenset({Deed.UNPICKLABLE, Deed.UNREADABLE})
BRIEF = 0.25  # seconds: enough to send a call on any machine; an answer within it is allowed, too


@dataclass(frozen=True)
class Ask:
    """One call to every rank. `token` is its own; `who` does `deed`, None: every rank; `size` in bytes, both ways."""

    token: int
    deed: Deed = Deed.ECHO
    who: int | None = None
    size: int = 0
    reply: int | None = None  # the one rank whose answer is wanted
    merged: bool = False  # through an aggregator that gets all answers
    brief: bool = False  # with a deadline of BRIEF seconds
    gate: str = ""  # the path of the gate's pipe

    def does(self, rank: int) -> Deed:
        """What that rank does. An answer that nobody wants is not sent, so it may be of any kind."""
        if self.who not in (None, rank):
            return Deed.ECHO
        return Deed.ECHO if self.deed in _BAD_ANSWERS and not self.wants(rank) else self.deed

    def wants(self, rank: int) -> bool:
        """Whether the caller gets that rank's answer."""
        return self.merged or self.reply in (None, rank)

    def __str__(self) -> str:
        whose = "every rank" if self.who is None else f"rank {self.who}"
        words = [f"call {self.token}: {whose} {self.deed.value}"]
        words += [f"{self.size} bytes"] if self.size else []
        words += [f"reply rank {self.reply}"] if self.reply is not None else []
        words += ["merged"] if self.merged else []
        words += ["brief"] if self.brief else []
        return ", ".join(words)


@dataclass(frozen=True)
class Flaw:
    """In `phase` of its start ("init_device" or "load_model"), `rank` raises, or ends its process."""

    phase: str
    rank: int
    deed: Deed


@dataclass(frozen=True)
class Plan:
    """A start. `patient`: ranks that are asked to leave get all the time they need, and must leave by themselves."""

    ranks: int
    method: str
    room: int = 64
    patient: bool = False
    flaw: Flaw | None = None
    hold: tuple[int, str] | None = None
    """A rank, and the step of its start before whose effects it is held: "boot.boot device_up"."""


class Adapter(Protocol):
    """An executor that can be driven. One adapter serves one program, which may start it again and again."""

    name: str
    lacks: frozenset[Can]
    methods: tuple[str, ...]
    """The start methods it knows, the fastest first."""

    def start(self, plan: Plan) -> None:
        """Returns when calls may be made. Raises what `outcome` understands."""

    def call(self, ask: Ask) -> Any:
        """Have `work.perform(rank, ask, data)` run on every rank, and return the answers: a list by rank, or one."""

    def future(self, ask: Ask) -> concurrent.futures.Future[Any]:
        """The same, at once, as a future of the standard library's kind."""

    def sent(self) -> int:
        """How many calls were sent to the ranks, since the start."""

    def stop(self) -> None:
        """Stop, and return when it has. From any thread, any number of times, also when nothing runs."""

    def outcome(self, error: BaseException) -> Outcome:
        """What an exception of any of these means."""

    def kill(self, rank: int) -> None:
        """SIGKILL, by an identity that cannot hit another process; nothing if the rank is gone."""

    def pause(self, rank: int) -> None:
        """SIGSTOP. The same."""

    def resume(self, rank: int) -> None:
        """SIGCONT. The same."""

    def hold(self, rank: int, point: str, call: int) -> None:
        """From here on the rank is held before the effects of that step, of that call (0: of any), once."""

    def held(self, rank: int, seconds: float) -> bool:
        """Whether it comes there within `seconds`."""

    def release(self, rank: int) -> None:
        """A rank that is held goes on."""

    def listen(self, callback: Callable[[], object]) -> None:
        """Register a failure callback."""

    def failed(self) -> bool:
        """Whether something failed, beyond one call or start."""

    def exits(self) -> dict[int, int | None]:
        """Exit statuses by rank, of the last executor."""

    def orphan(self, ranks: int, method: str, seconds: float) -> list[str]:
        """Start it in a process of its own and kill that; what is still there after `seconds`."""

    def states(self) -> list[str]:
        """Where each machine or process is, in words; for reports."""

    def stacks(self) -> list[str]:
        """Where each rank's threads are, in words; for reports of a hang."""

    def trace(self) -> list[str]:
        """The lines that the last executor recorded."""

    def leftovers(self) -> list[str]:
        """What there is and was not when the adapter was made, as sentences."""

    def clear(self) -> None:
        """End everything by force; it may not work any more."""


class Lacking:
    """An adapter that offers nothing beyond calls: inherit from it, and write what there is."""

    name = "?"
    lacks = frozenset(Can)
    methods: tuple[str, ...] = ("forkserver",)

    def _lacking(self) -> Any:
        raise NotImplementedError(f"{self.name} declares that it lacks this")

    def kill(self, rank: int) -> None:  # noqa: ARG002 - as in each of these, the protocol's own words
        """Not offered."""
        self._lacking()

    def pause(self, rank: int) -> None:  # noqa: ARG002
        """Not offered."""
        self._lacking()

    def resume(self, rank: int) -> None:  # noqa: ARG002
        """Not offered."""
        self._lacking()

    def hold(self, rank: int, point: str, call: int) -> None:  # noqa: ARG002
        """Not offered."""
        self._lacking()

    def held(self, rank: int, seconds: float) -> bool:  # noqa: ARG002
        """Not offered."""
        return bool(self._lacking())

    def release(self, rank: int) -> None:  # noqa: ARG002
        """Not offered."""
        self._lacking()

    def listen(self, callback: Callable[[], object]) -> None:  # noqa: ARG002
        """Not offered."""
        self._lacking()

    def failed(self) -> bool:
        """It does not say so."""
        return False

    def exits(self) -> dict[int, int | None]:
        """It does not say."""
        return {}

    def orphan(self, ranks: int, method: str, seconds: float) -> list[str]:  # noqa: ARG002
        """Not offered."""
        return list(self._lacking())

    def states(self) -> list[str]:
        """It does not say."""
        return []

    def stacks(self) -> list[str]:
        """It does not say."""
        return []

    def trace(self) -> list[str]:
        """It records nothing."""
        return []

    def leftovers(self) -> list[str]:
        """It does not look."""
        return []

    def clear(self) -> None:
        """Nothing is ended."""
