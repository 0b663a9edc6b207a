"""The words a table is made of: states, events, effects, and the identity that every message carries.

Theory of operation:

1. A **state** is a name with one sentence: what is true while the machine is in it.
2. An **event** is a name, a kind and one sentence. The kind is what the waiting rule is checked against:
   a state that waits must leave on a message, on death, on cancel and on a deadline, never on a message alone.
3. An **effect** is a name with one sentence: something to be done by whoever steps the machine. It is data;
   no table calls anything.
4. An **identity** says which epoch, rank and call something belongs to. A position in a queue is no identity.

Events and effects are strings, so that a table can be handed to pytransitions unchanged.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class Kind(Enum):
    """What brings an event about; waits are checked against it."""

    MESSAGE = "A peer said something."
    DEATH = "A process is gone, as the kernel tells it."
    CANCEL = "Somebody on this side no longer wants it."
    DEADLINE = "A point in time has passed."
    WORK = "Work of this process itself came to its end."
    COUPLED = "Another machine reached a state that the coupling table names."


class State(Enum):
    """A state; its value is one sentence that is true while the machine is in it."""

    # Enum's own hash is a Python function; identity is the same relation, and five times cheaper a step.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    @property
    def meaning(self) -> str:
        """The sentence."""
        return str(self.value)


class Event(StrEnum):
    """An event; written `NAME = "name", Kind, "One sentence."`."""

    kind: Kind
    meaning: str

    def __new__(cls, name: str, kind: Kind, meaning: str) -> Event:
        """Make the member; its value is the bare name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.kind = kind
        member.meaning = meaning
        return member

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return str.__str__(self)


class Effect(StrEnum):
    """An effect; written `NAME = "name", "One sentence."`."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Effect:
        """Make the member; its value is the bare name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return str.__str__(self)


class Identity(NamedTuple):
    """Who a machine or a message is: `epoch` of the group, `rank`, and `call` (0: no call)."""

    epoch: int
    rank: int = -1
    call: int = 0
