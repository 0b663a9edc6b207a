"""What can be wrong: with a table, with us, with the peer.

An illegal event changes nothing. Who is to blame is decided where the event entered: an event that a peer's message
brought is the peer's fault, any other is ours. Both name machine, rank, state, event, what was allowed, and the
story: the last steps before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .vocabulary import Event, Kind, State


class TableError(Exception):
    """A table is not well formed; raised when it is imported."""

    def __init__(self, table: str, faults: Sequence[str]) -> None:
        super().__init__(table, tuple(faults))
        self.table = table
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return f"table {self.table!r} is not well formed:\n" + "\n".join(
            f"  - {fault}" for fault in self.faults
        )


class ProtocolError(Exception):
    """Something happened that the protocol does not allow."""


class IllegalEventError(ProtocolError):
    """An event came that the machine's state has no row for. Nothing was changed.

    Attributes: `machine`, `rank` (None: the machine is no rank's), `state`, `event`, `allowed` (events that the
    state has rows for), `story` (the last steps, oldest first, as text).
    """

    blame = "the protocol was broken"

    def __init__(
        self,
        machine: str,
        rank: int | None,
        state: State,
        event: Event,
        allowed: Sequence[Event],
        story: Sequence[str] = (),
    ) -> None:
        super().__init__(machine, rank, state, event, tuple(allowed), tuple(story))
        self.machine = machine
        self.rank = rank
        self.state = state
        self.event = event
        self.allowed = tuple(allowed)
        self.story = tuple(story)

    def __str__(self) -> str:
        whose = "" if self.rank is None else f" of rank {self.rank}"
        allowed = ", ".join(sorted(self.allowed)) or "nothing, the state is final"
        text = (
            f"{self.blame}: machine {self.machine!r}{whose} is in state {self.state.name} ({self.state.meaning}) "
            f"and met {self.event.value!r}; allowed there: {allowed}"
        )
        if self.story:
            text += "\nthe story so far:\n" + "\n".join(f"  {line}" for line in self.story)
        return text


class LocalProtocolError(IllegalEventError):
    """This side did something that the protocol does not allow."""

    blame = "you broke the protocol"


class RemoteProtocolError(IllegalEventError):
    """The peer sent something that the protocol does not allow."""

    blame = "the peer broke the protocol"


def illegal(
    machine: str, rank: int | None, state: State, event: Event, allowed: Sequence[Event]
) -> IllegalEventError:
    """The right class for an illegal event: the peer's fault if a message brought it, else ours."""
    blamed = RemoteProtocolError if event.kind is Kind.MESSAGE else LocalProtocolError
    return blamed(machine, rank, state, event, allowed)
