"""The words and the variables of the exported world, as `Rank`, `Ghost` and `Threads` have them, in flat variables.

Theory of operation. A variable is declared by its annotation in `W`: an enum, a truth value, a number, or a list of
one of these. `x_` variables are the executor's machines, `w_` variables a worker's, each named after its cluster, and
`_of` a cluster's members; a test holds them equal to the clusters that there are. Variables of `Scratch` live within
one action: every action begins and ends with them at zero, so that they distinguish no states.
"""

from __future__ import annotations

from enum import Enum, auto

from ....protocol.core import Event, State
from ....protocol.futures import Call, Caller, Reply, Serve
from ....protocol.life import Life
from ....protocol.queues import Gate, Reader, Seat
from ....protocol.ready import Boot, RankStart, RankStartOn, Start
from ....protocol.shutdown import Leave, Listener, RankStop, Stop
from ...world import Line, Status

# What one model's export sets.
RANKS = 0
CALLS = 0
"""Calls that all threads make together; they are numbered from 1, and arrays by call leave 0 unused."""
THREADS = 0
AHEAD = 1
LISTENERS = 0
EAGER = False
WORDS = 6
"""Places in a control channel. Should more be needed, `overflow` says so, and the export establishes nothing."""
LATE = False
"""The ruder environment of specs/world/late.py."""
BOUNDED = False
"""A reply queue has room for one answer."""
MOVES = 40
"""Moves of one action that are remembered, to see whether one comes twice."""
PLACES = 0
"""Places in a queue: one for OPEN and one a call."""
# Budgets before anything happened.
WHOLE_CRASHES = 0
WHOLE_RAISES = 0
WHOLE_STALE = 0
WHOLE_STOPS = 0
WHOLE_FAULTS = 0
WHOLE_START_DEADLINES = 0
WHOLE_CALL_DEADLINES = 0
WHOLE_CANCELS = 0


class Machine(Enum):
    """Who gets an event."""

    LIFE = auto()
    START = auto()
    START_OF = auto()
    BROADCAST = auto()
    BROADCAST_OF = auto()
    REPLIES = auto()
    REPLIES_OF = auto()
    STOP = auto()
    STOP_OF = auto()
    CALL = auto()
    CALL_OF = auto()
    LISTENER = auto()
    CALLER = auto()
    BOOT = auto()
    INTAKE = auto()
    OUTLET = auto()
    OUTLET_OF = auto()
    SERVE = auto()
    LEAVE = auto()


class Fact(Enum):
    """What an action tells the machines."""

    NOTHING = auto()
    ONE = auto()
    RANK_MADE = auto()
    RANK_DIED = auto()
    START_DEADLINE = auto()
    STOP = auto()
    ORPHANED = auto()


class Work(Enum):
    """What a worker is doing; each but the first is the effect of that name."""

    NOTHING = auto()
    INIT_DEVICE = auto()
    LOAD_MODEL = auto()
    MAKE_QUEUES = auto()
    RUN_METHOD = auto()
    SEND_REPLY = auto()
    SEND_FAILURE = auto()
    RUN_SHUTDOWN = auto()


class Alarm(Enum):
    """The effect that armed the alarm."""

    OFF = auto()
    ARM_GRACE = auto()
    ARM_TERM = auto()
    ARM_KILL = auto()


class Sent(Enum):
    """The signal on its way."""

    NONE = auto()
    TERM = auto()
    KILL = auto()


class Only(Enum):
    """The quiet reading that comes before everything else."""

    NONE = auto()
    CONTROL = auto()
    JOINED = auto()
    OPENED = auto()
    SENT = auto()
    INTAKE = auto()


class Scratch:
    """Variables within one action."""

    fact: Fact
    machine: Machine
    slot: int
    number: int
    event: Event
    rank: int
    works: bool
    """The action is a worker's, not the executor's."""
    settles: bool
    same_epoch: bool
    same_rank: bool
    same_call: bool
    message: bool
    f_machine: Machine
    f_slot: int
    f_number: int
    f_event: Event
    done: int
    turns: int
    found: bool
    legal: bool
    source: State
    dest: State
    does: int
    passes: bool
    by_message: bool
    illegal: bool
    changed: bool
    about: int
    wakes: bool
    timed: bool
    """A point in time brought the action about."""
    exits: bool
    again: bool
    """A worker that takes its leave is asked to stop again, and goes on with what it was doing."""
    work_before: Work
    acts: bool
    """The executor acts, so that its steps are judged."""
    logged: int
    log_machine: list[Machine]
    log_slot: list[int]
    log_number: list[int]
    log_event: list[Event]
    """The moves of the action so far."""
    died: bool
    late: bool
    late_start: bool
    late_broadcast: bool
    late_replies: bool
    """A death, and a deadline, were told; and the machines that moved by it."""
    start_before: Start
    broadcast_before: Gate
    replies_before: Gate
    weighed: bool
    owes_raised: list[bool]
    owes_lost: list[bool]
    owes_result: list[bool]
    failed_raised: list[bool]
    failed_lost: list[bool]
    resolved: list[bool]
    """By call: how it is to end, and how it ended."""
    came_down: bool
    submits: bool
    waits: bool
    stray: bool
    offered: bool
    of_call: int
    said_all_ready: bool
    said_rank_failed: bool
    said_rank_died: bool
    said_start_failed: bool
    said_start_up: bool
    said_ending: bool
    said_all_gone: bool
    said_stop_over: bool
    said_stops: bool
    said_terminating: bool
    said_killing: bool
    said_survivors: bool
    said_failed: bool
    said_stopped: bool
    said_queues_open: bool
    said_seats_in: bool
    said_seat_lost: bool
    said_readers_in: bool
    said_reader_lost: bool
    said_broadcast_open: bool
    said_broadcast_closed: bool
    said_replies_closed: bool
    settled_now: list[bool]
    open_before: list[bool]


class W(Scratch):
    """The variables that make up a state."""

    # The executor's machines.
    x_life: Life
    x_start: Start
    x_start_of: list[RankStart]
    x_broadcast: Gate
    x_broadcast_of: list[Seat]
    x_replies: Gate
    x_replies_of: list[Reader]
    x_stop: Stop
    x_stop_of: list[RankStop]
    x_here: list[bool]
    """The call is in the books."""
    x_call: list[Call]
    x_call_of: list[Reply]
    """By call, then by rank."""
    x_listeners: int
    x_listener: list[Listener]
    # The threads.
    t_waits: list[bool]
    t_caller: list[Caller]
    t_woken: list[bool]
    t_out: list[int]
    """By thread, then the oldest first; 0 is none."""
    t_left: list[int]
    t_next: int
    # The record.
    gone: bool
    alarm: Alarm
    m_up: bool
    m_failure: bool
    m_end: bool
    m_woken: bool
    settled: list[bool]
    told: list[bool]
    survivors: list[bool]
    o_illegal: bool
    o_stale_taken: bool
    o_stale_harm: bool
    o_mixed: bool
    o_twice: bool
    o_out_of_order: bool
    o_unearned: bool
    o_told_twice: bool
    o_missaid: bool
    o_mistold: bool
    o_skipped: bool
    o_again: bool
    o_late_word: bool
    o_unfinished: bool
    o_left: bool
    o_unsaid: bool
    o_unheard: bool
    # Budgets left.
    b_crashes: int
    b_raises: int
    b_stale: int
    b_stubborn: int
    b_wedged: int
    b_freezes: int
    b_start_deadlines: int
    b_call_deadlines: int
    b_cancels: int
    b_give_ups: int
    b_stops: int
    b_faults: int
    b_parents: int
    b_listeners: int
    # The ranks.
    status: list[Status]
    w_boot: list[Boot]
    w_intake: list[Reader]
    w_outlet: list[Gate]
    w_outlet_of: list[Seat]
    w_serve: list[Serve]
    w_leave: list[Leave]
    work: list[Work]
    running: list[int]
    line: list[Line]
    signal: list[Sent]
    controls: list[int]
    """Words in the control channel."""
    control: list[RankStartOn]
    """By rank, then the oldest first."""
    calls: list[int]
    """Words in the broadcast queue, as the rank reads it."""
    call: list[int]
    """OPEN is 0, CALL n is n."""
    joins: list[int]
    replies: list[int]
    reply: list[int]
    """OPEN is 0, RETURNED n is 2n - 1, RAISED n is 2n."""
    joined: list[int]
    wronged: list[bool]
    # What follows from the rest.
    only: Only
    only_rank: int
    overflow: bool
