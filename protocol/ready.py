"""READY handshake: from a process that was just made to a rank that serves, or to the first cause why not.

Theory of operation:

1. The executor makes N processes. Each says HELLO, then what phase it is in (device, weights, queues), then READY.
   READY carries the handle of the rank's reply queue, so the queue is made after the device stands.
2. The executor waits on all ranks at once: no rank's silence can hide another rank's death (sglang#20287).
3. A rank's start ends in one of four ways: READY; FAILED (it said so, with its traceback); DEAD (the kernel said so:
   a process that dies hard sends nothing, vllm#11737); CANCELLED (somebody gave up: deadline, stop, or another rank).
4. A message of another epoch or rank is dropped and changes nothing, whenever it comes: a stale process can neither
   make a rank READY nor fail the start.
5. The aggregate is UP when every rank is READY and FAILED as soon as one is not going to be.
"""

from __future__ import annotations

from .core import Cluster, Effect, Event, Identity, Kind, State, Table, each, every, on, some, stay


def of_this_epoch(own: Identity, message: Identity) -> bool:
    """The message comes from the group as it is now, not from an earlier one."""
    return own.epoch == message.epoch


def of_this_rank(own: Identity, message: Identity) -> bool:
    """The message names the rank whose channel it came on."""
    return own.rank == message.rank


class ReadyDo(Effect):
    """Effects of the READY handshake."""

    DROP_STALE = "drop_stale", "Forget the message: it belongs to another epoch or rank."
    SEND_HELLO = "send_hello", "Tell the executor that this rank runs."
    SEND_PHASE = "send_phase", "Tell the executor which phase begins."
    SEND_READY = "send_ready", "Tell the executor that this rank is ready, with its reply queue's handle."
    SEND_FAILED = "send_failed", "Tell the executor what went wrong, with the traceback."
    INIT_DEVICE = "init_device", "Call the worker's init_device."
    LOAD_MODEL = "load_model", "Call the worker's load_model."
    MAKE_QUEUES = "make_queues", "Make the reply queue."


# --- executor side, one machine a rank ------------------------------------------------------------------------------


class RankStart(State):
    """What the executor knows of one rank's start."""

    ABSENT = "No process has been made for the rank yet."
    SPAWNED = "The process was made; nothing has been heard from it."
    DEVICE = "The rank said HELLO and brings up its device."
    WEIGHTS = "The rank's device stands and it loads its shard of the model."
    QUEUES = "The rank's weights are loaded and it makes its reply queue."
    READY = "The rank is ready and its reply queue's handle is known."
    FAILED = "The rank said that a phase failed, and how."
    DEAD = "The rank's process ended before it was ready."
    CANCELLED = "The start was given up before the rank was ready."


class RankStartOn(Event):
    """What can happen to a rank's start."""

    SPAWNED = "spawned", Kind.WORK, "The process was made."
    HELLO = "hello", Kind.MESSAGE, "The rank runs and names itself."
    WEIGHTS = "weights", Kind.MESSAGE, "The rank's device stands; its weights are next."
    QUEUES = "queues", Kind.MESSAGE, "The rank's weights are loaded; its reply queue is next."
    READY = "ready", Kind.MESSAGE, "The rank is ready."
    FAILED = "failed", Kind.MESSAGE, "The rank reports what went wrong."
    DIED = "died", Kind.DEATH, "The rank's process is gone."
    CANCEL = "cancel", Kind.CANCEL, "The start is given up."


_S, _O, _D = RankStart, RankStartOn, ReadyDo
_STARTING = [_S.SPAWNED, _S.DEVICE, _S.WEIGHTS, _S.QUEUES]
_ENDED = [_S.READY, _S.FAILED, _S.DEAD, _S.CANCELLED]
_MESSAGES = [_O.HELLO, _O.WEIGHTS, _O.QUEUES, _O.READY, _O.FAILED]

RANK_START = Table(
    name="rank_start",
    purpose="What the executor knows of one rank on its way to READY.",
    states=RankStart,
    events=RankStartOn,
    effects=ReadyDo,
    initial=_S.ABSENT,
    final=frozenset(_ENDED),
    rows=(
        on(_O.SPAWNED, _S.ABSENT, _S.SPAWNED),
        on(_O.HELLO, _S.SPAWNED, _S.DEVICE, conditions=[of_this_epoch, of_this_rank]),
        on(_O.WEIGHTS, _S.DEVICE, _S.WEIGHTS, conditions=[of_this_epoch, of_this_rank]),
        on(_O.QUEUES, _S.WEIGHTS, _S.QUEUES, conditions=[of_this_epoch, of_this_rank]),
        on(_O.READY, _S.QUEUES, _S.READY, conditions=[of_this_epoch, of_this_rank]),
        on(_O.FAILED, _STARTING, _S.FAILED, conditions=[of_this_epoch, of_this_rank]),
        # Any word, at any time, from a stale process: by epoch or by rank. A rank's own word out of turn is refused.
        *(
            row
            for trigger in _MESSAGES
            for row in (
                on(trigger, [*_STARTING, _S.READY], None, unless=[of_this_epoch], after=[_D.DROP_STALE]),
                on(
                    trigger,
                    [*_STARTING, _S.READY],
                    None,
                    conditions=[of_this_epoch],
                    unless=[of_this_rank],
                    after=[_D.DROP_STALE],
                ),
            )
        ),
        on(_O.DIED, _STARTING, _S.DEAD),
        on(_O.CANCEL, [_S.ABSENT, *_STARTING], _S.CANCELLED),
        # What was on its way when the start was decided.
        *stay([_S.CANCELLED, _S.FAILED, _S.DEAD], *_MESSAGES),
        *stay([_S.READY, _S.FAILED, _S.CANCELLED], _O.DIED),
    ),
    waits={state: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL}) for state in _STARTING},
    because="There is one deadline, the group's; it reaches a rank as CANCEL.",
)


# --- executor side, all ranks together ------------------------------------------------------------------------------


class Start(State):
    """The start of the whole group."""

    STARTING = "At least one rank is on its way to READY and none is lost."
    UP = "Every rank is READY."
    FAILED = "The start is given up: a rank failed or died, the time is over, or somebody asked for a stop."


class StartOn(Event):
    """What can happen to the start of the group."""

    ALL_READY = "all_ready", Kind.MESSAGE, "The last rank became READY."
    RANK_FAILED = "rank_failed", Kind.MESSAGE, "A rank reported what went wrong."
    RANK_DIED = "rank_died", Kind.DEATH, "A rank's process is gone."
    DEADLINE = "deadline", Kind.DEADLINE, "The time for the whole start is over."
    CANCEL = "cancel", Kind.CANCEL, "The start is given up."


START = Table(
    name="start",
    purpose="Decides the start of the group: up, or failed with the first cause.",
    states=Start,
    events=StartOn,
    effects=ReadyDo,
    initial=Start.STARTING,
    final=frozenset({Start.UP, Start.FAILED}),
    rows=(
        on(StartOn.ALL_READY, Start.STARTING, Start.UP),
        on(StartOn.RANK_FAILED, Start.STARTING, Start.FAILED),
        on(StartOn.RANK_DIED, Start.STARTING, Start.FAILED),
        on(StartOn.DEADLINE, Start.STARTING, Start.FAILED),
        on(StartOn.CANCEL, Start.STARTING, Start.FAILED),
        *stay(Start.UP, StartOn.DEADLINE),
    ),
    waits={Start.STARTING: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL, Kind.DEADLINE})},
)

START_COUPLING = (
    every(RANK_START, RankStart.READY, then=StartOn.ALL_READY),
    some(RANK_START, RankStart.FAILED, then=StartOn.RANK_FAILED),
    some(RANK_START, RankStart.DEAD, then=StartOn.RANK_DIED),
    each(START, Start.FAILED, then=RankStartOn.CANCEL),
)

START_CLUSTER = Cluster("start", START, RANK_START, START_COUPLING)


# --- worker side ----------------------------------------------------------------------------------------------------


class Boot(State):
    """A worker's own way to READY."""

    BORN = "The process runs and watches the executor; it has said nothing."
    DEVICE = "HELLO is said; the worker's init_device runs."
    WEIGHTS = "The device stands; the worker's load_model runs."
    QUEUES = "The weights are loaded; the reply queue is being made."
    READY = "READY is said."
    FAILED = "A phase raised; FAILED is said, with the traceback, and the process leaves."
    STOPPED = "The executor closed the control channel, or is gone, before READY."


class BootOn(Event):
    """What can happen to a worker on its way to READY."""

    BORN = "born", Kind.WORK, "The process watches the executor and has its arguments."
    DEVICE_UP = "device_up", Kind.WORK, "The worker's init_device came to its end."
    WEIGHTS_UP = "weights_up", Kind.WORK, "The worker's load_model came to its end."
    QUEUES_UP = "queues_up", Kind.WORK, "The reply queue stands."
    RAISED = "raised", Kind.WORK, "The phase raised an exception."
    STOP = "stop", Kind.CANCEL, "The executor closed the control channel."
    ORPHANED = "orphaned", Kind.DEATH, "The executor's process is gone."


_B, _W = Boot, BootOn

BOOT = Table(
    name="boot",
    purpose="A worker's own way to READY; each phase is said before it begins.",
    states=Boot,
    events=BootOn,
    effects=ReadyDo,
    initial=_B.BORN,
    final=frozenset({_B.READY, _B.FAILED, _B.STOPPED}),
    rows=(
        on(_W.BORN, _B.BORN, _B.DEVICE, after=[_D.SEND_HELLO, _D.INIT_DEVICE]),
        on(_W.DEVICE_UP, _B.DEVICE, _B.WEIGHTS, after=[_D.SEND_PHASE, _D.LOAD_MODEL]),
        on(_W.WEIGHTS_UP, _B.WEIGHTS, _B.QUEUES, after=[_D.SEND_PHASE, _D.MAKE_QUEUES]),
        on(_W.QUEUES_UP, _B.QUEUES, _B.READY, after=[_D.SEND_READY]),
        on(_W.RAISED, [_B.BORN, _B.DEVICE, _B.WEIGHTS, _B.QUEUES], _B.FAILED, after=[_D.SEND_FAILED]),
        on(_W.STOP, [_B.BORN, _B.DEVICE, _B.WEIGHTS, _B.QUEUES], _B.STOPPED),
        on(_W.ORPHANED, [_B.BORN, _B.DEVICE, _B.WEIGHTS, _B.QUEUES], _B.STOPPED),
        *stay([_B.READY, _B.FAILED, _B.STOPPED], _W.STOP, _W.ORPHANED),
    ),
)

BOOT_CLUSTER = Cluster("boot", BOOT)
