"""Queue readiness order: who waits for which queue, and why no order of arrival can deadlock.

Theory of operation:

1. A queue has one writer and some readers. A reader says JOINED on the queue's own channel (a second channel is not
   ordered with the first, vllm#15906); when every reader has joined, the writer says OPEN to each. Nothing is written
   before OPEN, so nothing can be lost to a slow joiner.
2. There is a broadcast queue (the executor writes, every rank reads) and a reply queue a rank (the rank writes, the
   executor reads). In the reference system each side waits for one queue after the other, and a comment warns that it
   "will deadlock if re-ordered".
3. Here each side first joins whatever it can join, and then waits for *everything at once*: no wait stands before a
   JOINED or an OPEN that somebody else needs. There is no order left to get wrong.
4. A reader or writer that is gone, a cancelled start, or a deadline ends every wait (vllm#58059).
"""

from __future__ import annotations

from .core import Cluster, Effect, Event, Kind, State, Table, each, every, on, some, stay


class QueueDo(Effect):
    """Effects of queue readiness."""

    SEND_JOINED = "send_joined", "Tell the writer, on the queue's own channel, that this reader listens."
    SEND_OPEN = "send_open", "Tell this reader that every reader has joined."


# --- the aggregate: all seats of a writer, or all the executor's readers --------------------------------------------


class Gate(State):
    """Whether everybody needed has arrived."""

    GATHERING = "Somebody has not arrived yet."
    OPEN = "Everybody has arrived; messages may flow."
    CLOSED = "Somebody is gone, or the queue was given up; no message will flow any more."


class GateOn(Event):
    """What can happen to a gate."""

    ALL_IN = "all_in", Kind.MESSAGE, "The last one arrived."
    LOST = "lost", Kind.DEATH, "One of them is gone."
    CLOSE = "close", Kind.CANCEL, "The queue is given up."
    DEADLINE = "deadline", Kind.DEADLINE, "The time for the whole start is over."


GATE = Table(
    name="gate",
    purpose="Opens a queue, or all the executor's reply queues, when everybody needed has arrived.",
    states=Gate,
    events=GateOn,
    effects=QueueDo,
    initial=Gate.GATHERING,
    final=frozenset({Gate.CLOSED}),
    rows=(
        on(GateOn.ALL_IN, Gate.GATHERING, Gate.OPEN),
        on(GateOn.LOST, [Gate.GATHERING, Gate.OPEN], Gate.CLOSED),
        on(GateOn.CLOSE, [Gate.GATHERING, Gate.OPEN], Gate.CLOSED),
        on(GateOn.DEADLINE, Gate.GATHERING, Gate.CLOSED),
        *stay(Gate.OPEN, GateOn.DEADLINE),
        *stay(Gate.CLOSED, GateOn.CLOSE),  # a worker that is asked twice
    ),
    waits={Gate.GATHERING: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL, Kind.DEADLINE})},
)


# --- the writer's side, one seat a reader ---------------------------------------------------------------------------


class Seat(State):
    """What a writer knows of one of its readers."""

    EXPECTED = "The reader has not joined."
    JOINED = "The reader listens."
    OPEN = "The reader was told that the queue is open."
    CLOSED = "The queue was given up on this side."
    GONE = "The reader's process is gone."


class SeatOn(Event):
    """What can happen to a seat."""

    JOINED = "joined", Kind.MESSAGE, "The reader said that it listens."
    OPEN = "open", Kind.COUPLED, "Every reader has joined."
    DIED = "died", Kind.DEATH, "The reader's process is gone."
    CLOSE = "close", Kind.CANCEL, "The queue is given up."


SEAT = Table(
    name="seat",
    purpose="What a queue's writer knows of one reader.",
    states=Seat,
    events=SeatOn,
    effects=QueueDo,
    initial=Seat.EXPECTED,
    final=frozenset({Seat.CLOSED, Seat.GONE}),
    rows=(
        on(SeatOn.JOINED, Seat.EXPECTED, Seat.JOINED),
        on(SeatOn.OPEN, Seat.JOINED, Seat.OPEN, after=[QueueDo.SEND_OPEN]),
        on(SeatOn.DIED, [Seat.EXPECTED, Seat.JOINED, Seat.OPEN], Seat.GONE),
        on(SeatOn.CLOSE, [Seat.EXPECTED, Seat.JOINED, Seat.OPEN], Seat.CLOSED),
        # A JOINED that was on its way when this side gave up.
        *stay([Seat.CLOSED, Seat.GONE], SeatOn.JOINED, SeatOn.DIED),
    ),
    waits={
        Seat.EXPECTED: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL}),
        Seat.JOINED: frozenset({Kind.COUPLED, Kind.DEATH, Kind.CANCEL}),
    },
    because="The deadline is the gate's and comes as CLOSE; a joined seat waits for the other seats, not its reader.",
)

WRITER_COUPLING = (
    every(SEAT, Seat.JOINED, Seat.OPEN, then=GateOn.ALL_IN),
    some(SEAT, Seat.GONE, then=GateOn.LOST),
    each(GATE, Gate.OPEN, then=SeatOn.OPEN),
    each(GATE, Gate.CLOSED, then=SeatOn.CLOSE),
)


# --- the reader's side ----------------------------------------------------------------------------------------------


class Reader(State):
    """A queue as one of its readers sees it."""

    UNKNOWN = "The queue's handle is not known yet."
    JOINED = "The writer was told that this reader listens."
    OPEN = "The writer said that the queue is open."
    CLOSED = "The queue was given up on this side."
    GONE = "The writer's process is gone."


class ReaderOn(Event):
    """What can happen to a reader."""

    HANDLE = "handle", Kind.MESSAGE, "The queue's handle is known."
    OPENED = "opened", Kind.MESSAGE, "The writer said OPEN."
    DIED = "died", Kind.DEATH, "The writer's process is gone."
    CLOSE = "close", Kind.CANCEL, "The queue is given up."


READER = Table(
    name="reader",
    purpose="A queue as one of its readers sees it.",
    states=Reader,
    events=ReaderOn,
    effects=QueueDo,
    initial=Reader.UNKNOWN,
    final=frozenset({Reader.CLOSED, Reader.GONE}),
    rows=(
        on(ReaderOn.HANDLE, Reader.UNKNOWN, Reader.JOINED, after=[QueueDo.SEND_JOINED]),
        on(ReaderOn.OPENED, Reader.JOINED, Reader.OPEN),
        on(ReaderOn.DIED, [Reader.UNKNOWN, Reader.JOINED, Reader.OPEN], Reader.GONE),
        on(ReaderOn.CLOSE, [Reader.UNKNOWN, Reader.JOINED, Reader.OPEN], Reader.CLOSED),
        # An OPEN that was on its way when this side gave up.
        *stay([Reader.CLOSED, Reader.GONE], ReaderOn.OPENED, ReaderOn.DIED, ReaderOn.CLOSE),
    ),
    waits={
        state: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL}) for state in (Reader.UNKNOWN, Reader.JOINED)
    },
    because="The deadline is the gate's, and comes as CLOSE.",
)

READERS_COUPLING = (
    every(READER, Reader.OPEN, then=GateOn.ALL_IN),
    some(READER, Reader.GONE, then=GateOn.LOST),
    each(GATE, Gate.CLOSED, then=ReaderOn.CLOSE),
)


# Executor: the broadcast queue's writer, and its readers on every reply queue.
BROADCAST_CLUSTER = Cluster("broadcast", GATE, SEAT, WRITER_COUPLING)
REPLIES_CLUSTER = Cluster("replies", GATE, READER, READERS_COUPLING)
# Worker: its reader on the broadcast queue, and its reply queue's writer with the executor in the only seat.
INTAKE_CLUSTER = Cluster("intake", READER)
OUTLET_CLUSTER = Cluster("outlet", GATE, SEAT, WRITER_COUPLING)
