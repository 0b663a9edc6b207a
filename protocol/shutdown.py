"""Shutdown escalation: ask, wait, SIGTERM, wait, SIGKILL, reap; and who is told.

Theory of operation:

1. A stop has many triggers (the user, a rank's death, a failed start, a finaliser, the interpreter's end, a signal) and
   one path. The second trigger finds the path taken and only waits for its end (vllm#56282).
2. CLOSING: blocked callers are woken first, then each rank's control channel is closed: a worker sees its end, stops
   between two calls and leaves by itself. After `grace`, TERMINATING: SIGTERM. After `term`, KILLING: SIGKILL. After
   `kill`, whoever is still there is reported as a survivor: no wait is without a bound (pytorch#185414).
3. One owner reaps, so no exit status is lost to a second waiter (cpython#130895). A rank that is REAPED has no row that
   signals: a reused pid cannot be hit.
4. The first fault, and only the first, calls every listener once; who registers after it is called at once. A stop
   that was asked for calls nobody.
5. A worker that is asked to stop runs its own clean-up, which may need no peer; SIGTERM ends it where it stands.
"""

from __future__ import annotations

from .core import Cluster, Effect, Event, Kind, State, Table, each, every, on, stay


class StopDo(Effect):
    """Effects of the shutdown escalation."""

    WAKE_BLOCKED = "wake_blocked", "Wake every blocked caller: no reply will come any more."
    ARM_GRACE = "arm_grace", "Set the alarm to the policy's `grace`, in seconds."
    ARM_TERM = "arm_term", "Set the alarm to the policy's `term`, in seconds."
    ARM_KILL = "arm_kill", "Set the alarm to the policy's `kill`, in seconds."
    DISARM = "disarm", "Put the alarm off."
    CLOSE_CONTROL = "close_control", "End the rank's control channel: its worker is asked to stop."
    SEND_SIGTERM = "send_sigterm", "Send SIGTERM through the rank's pidfd."
    SEND_SIGKILL = "send_sigkill", "Send SIGKILL through the rank's pidfd."
    REAP = "reap", "Collect the exit status, once, and close the rank's descriptors."
    REPORT_SURVIVOR = "report_survivor", "Note the rank, its pid and that it could not be ended."
    CALL_BACK = "call_back", "Call the listener, outside every lock."
    RUN_SHUTDOWN = "run_shutdown", "Call the worker's own shutdown, if it has one."
    EXIT = "exit", "End the process."


# --- executor side, one machine a rank ------------------------------------------------------------------------------


class RankStop(State):
    """A rank's process, from the side that owns it."""

    ABSENT = "No process has been made for the rank."
    ALIVE = "The process runs and nobody asked it to stop."
    ASKED = "The process's control channel is closed."
    TERMINATED = "SIGTERM was sent."
    KILLED = "SIGKILL was sent."
    REAPED = "The process is gone and its exit status is known."
    SURVIVOR = "SIGKILL did not end the process within the bound; it is reported."


class RankStopOn(Event):
    """What can happen to a rank's process."""

    SPAWNED = "spawned", Kind.WORK, "The process was made."
    ASK = "ask", Kind.COUPLED, "The group stops."
    TERMINATE = "terminate", Kind.COUPLED, "The grace is over."
    KILL = "kill", Kind.COUPLED, "The time after SIGTERM is over."
    GIVE_UP = "give_up", Kind.COUPLED, "The time after SIGKILL is over."
    DIED = "died", Kind.DEATH, "The process is gone."


_S, _O, _D = RankStop, RankStopOn, StopDo

RANK_STOP = Table(
    name="rank_stop",
    purpose="One rank's process: asked, terminated, killed, reaped.",
    states=RankStop,
    events=RankStopOn,
    effects=StopDo,
    initial=_S.ABSENT,
    final=frozenset({_S.REAPED}),
    rows=(
        on(_O.SPAWNED, _S.ABSENT, _S.ALIVE),
        on(_O.ASK, _S.ALIVE, _S.ASKED, after=[_D.CLOSE_CONTROL]),
        on(_O.TERMINATE, _S.ASKED, _S.TERMINATED, after=[_D.SEND_SIGTERM]),
        on(_O.KILL, _S.TERMINATED, _S.KILLED, after=[_D.SEND_SIGKILL]),
        on(_O.GIVE_UP, _S.KILLED, _S.SURVIVOR, after=[_D.REPORT_SURVIVOR]),
        on(_O.DIED, [_S.ALIVE, _S.ASKED, _S.TERMINATED, _S.KILLED, _S.SURVIVOR], _S.REAPED, after=[_D.REAP]),
    ),
)


# --- executor side, all ranks together ------------------------------------------------------------------------------


class Stop(State):
    """The end of the whole group."""

    RUNNING = "No stop was asked for."
    CLOSING = "The ranks are asked; they have the policy's `grace` to leave by themselves."
    TERMINATING = "SIGTERM was sent to those left; they have the policy's `term`."
    KILLING = "SIGKILL was sent to those left; the kernel has the policy's `kill`."
    DOWN = "Every process is reaped."
    SURVIVORS = "At least one process could not be ended within the bound."


class StopOn(Event):
    """What can happen to the end of the group."""

    STOP = "stop", Kind.COUPLED, "Somebody asked, or something failed."
    ALARM = "alarm", Kind.DEADLINE, "The stage's time is over."
    ALL_GONE = "all_gone", Kind.DEATH, "The last process is reaped."


STOP = Table(
    name="stop",
    purpose="The end of the group, in stages, each with its time.",
    states=Stop,
    events=StopOn,
    effects=StopDo,
    initial=Stop.RUNNING,
    final=frozenset({Stop.DOWN}),
    rows=(
        on(StopOn.STOP, Stop.RUNNING, Stop.CLOSING, after=[_D.WAKE_BLOCKED, _D.ARM_GRACE]),
        on(StopOn.ALARM, Stop.CLOSING, Stop.TERMINATING, after=[_D.ARM_TERM]),
        on(StopOn.ALARM, Stop.TERMINATING, Stop.KILLING, after=[_D.ARM_KILL]),
        on(StopOn.ALARM, Stop.KILLING, Stop.SURVIVORS, after=[_D.DISARM]),
        on(
            StopOn.ALL_GONE,
            [Stop.CLOSING, Stop.TERMINATING, Stop.KILLING, Stop.SURVIVORS],
            Stop.DOWN,
            after=[_D.DISARM],
        ),
    ),
    waits={
        state: frozenset({Kind.DEATH, Kind.DEADLINE})
        for state in (Stop.CLOSING, Stop.TERMINATING, Stop.KILLING)
    },
    because="A stop cannot be cancelled, and needs no word from anybody: death and time are all it waits for.",
)

STOP_COUPLING = (
    every(RANK_STOP, RankStop.REAPED, RankStop.ABSENT, then=StopOn.ALL_GONE),
    each(STOP, Stop.CLOSING, then=RankStopOn.ASK),
    each(STOP, Stop.TERMINATING, then=RankStopOn.TERMINATE),
    each(STOP, Stop.KILLING, then=RankStopOn.KILL),
    each(STOP, Stop.SURVIVORS, then=RankStopOn.GIVE_UP),
)

STOP_CLUSTER = Cluster("stop", STOP, RANK_STOP, STOP_COUPLING)


# --- executor side, one machine a failure callback ------------------------------------------------------------------


class Listener(State):
    """A registered failure callback."""

    LISTENING = "Nothing has failed since it was registered."
    TOLD = "It was called, once."
    RELEASED = "The executor stopped without a failure; it will never be called."


class ListenerOn(Event):
    """What can happen to a listener."""

    FAILURE = (
        "failure",
        Kind.COUPLED,
        "The executor failed, or had failed before the listener was registered.",
    )
    RELEASE = "release", Kind.COUPLED, "The executor stopped because it was asked to."


LISTENER = Table(
    name="listener",
    purpose="A failure callback: called once, or released.",
    states=Listener,
    events=ListenerOn,
    effects=StopDo,
    initial=Listener.LISTENING,
    final=frozenset({Listener.TOLD, Listener.RELEASED}),
    rows=(
        on(ListenerOn.FAILURE, Listener.LISTENING, Listener.TOLD, after=[_D.CALL_BACK]),
        on(ListenerOn.RELEASE, Listener.LISTENING, Listener.RELEASED),
    ),
)


# --- worker side ----------------------------------------------------------------------------------------------------


class Leave(State):
    """A worker's own end."""

    STAYING = "Nobody asked the worker to stop."
    LEAVING = "The worker was asked; its own shutdown runs."
    GONE = "The process ends now."


class LeaveOn(Event):
    """What can happen to a worker's end."""

    ASKED = "asked", Kind.CANCEL, "The executor closed the control channel."
    CLEAN = "clean", Kind.WORK, "The worker's own shutdown came to its end, well or not."
    BROKEN = "broken", Kind.WORK, "A phase of the start raised; the executor was told."
    ORPHANED = "orphaned", Kind.DEATH, "The executor's process is gone."


LEAVE = Table(
    name="leave",
    purpose="A worker's own end: asked and clean, or orphaned and at once.",
    states=Leave,
    events=LeaveOn,
    effects=StopDo,
    initial=Leave.STAYING,
    final=frozenset({Leave.GONE}),
    rows=(
        on(LeaveOn.ASKED, Leave.STAYING, Leave.LEAVING, after=[_D.RUN_SHUTDOWN]),
        on(LeaveOn.CLEAN, Leave.LEAVING, Leave.GONE, after=[_D.EXIT]),
        on(LeaveOn.BROKEN, Leave.STAYING, Leave.GONE, after=[_D.EXIT]),
        on(LeaveOn.ORPHANED, [Leave.STAYING, Leave.LEAVING], Leave.GONE, after=[_D.EXIT]),
        *stay(Leave.LEAVING, LeaveOn.ASKED),
        *stay(Leave.GONE, LeaveOn.ASKED, LeaveOn.ORPHANED),
    ),
)

LISTENER_CLUSTER = Cluster("listener", LISTENER)
LEAVE_CLUSTER = Cluster("leave", LEAVE)
