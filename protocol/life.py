"""The whole life of the executor: how the four protocols act on each other.

Theory of operation:

1. The executor is STARTING until every rank is READY, JOINING until every queue is open, then SERVING.
2. The first fault, in whatever protocol, makes it FAILING; a stop that was asked for makes it STOPPING. Both lead
   through the one shutdown escalation to an end, FAILED or DOWN. What comes second changes nothing: the first cause
   stays the cause.
3. `EXECUTOR_COUPLING` says the rest: which state of which protocol brings about which event of which other.
"""

from __future__ import annotations

from .core import Cluster, Effect, Event, Kind, State, Table, on, stay, when
from .futures import CallOn
from .queues import Gate, GateOn
from .ready import Boot, Start, StartOn
from .shutdown import LeaveOn, ListenerOn, Stop, StopOn


class LifeDo(Effect):
    """Effects of the executor's life."""

    ANNOUNCE_UP = "announce_up", "Let the constructor return: calls are accepted."
    ANNOUNCE_FAILURE = "announce_failure", "Record the first cause; from here on every call fails with it."
    ANNOUNCE_END = "announce_end", "Let whoever waits for the end go on."


class Life(State):
    """The executor as a whole."""

    STARTING = "Ranks are on their way to READY."
    JOINING = "Every rank is READY; the queues are being opened."
    SERVING = "Calls are accepted."
    STOPPING = "A stop was asked for; the ranks are being ended."
    FAILING = "Something failed; the ranks are being ended, and the first cause is known."
    DOWN = "The executor stopped because it was asked to."
    FAILED = "The executor stopped because something failed."


class LifeOn(Event):
    """What can happen to the executor as a whole."""

    RANKS_READY = "ranks_ready", Kind.COUPLED, "Every rank is READY."
    QUEUES_OPEN = "queues_open", Kind.COUPLED, "The broadcast queue and every reply queue are open."
    SUBMIT = "submit", Kind.WORK, "A caller submits a call."
    FAULT = "fault", Kind.COUPLED, "A start failed, a rank died, or a peer broke the protocol."
    STOP = "stop", Kind.CANCEL, "Somebody asked for a stop."
    END = "end", Kind.COUPLED, "Every process is reaped, or reported as a survivor."


LIFE = Table(
    name="life",
    purpose="The executor as a whole: starting, joining, serving, and one end.",
    states=Life,
    events=LifeOn,
    effects=LifeDo,
    initial=Life.STARTING,
    final=frozenset({Life.DOWN, Life.FAILED}),
    rows=(
        on(LifeOn.RANKS_READY, Life.STARTING, Life.JOINING),
        on(LifeOn.QUEUES_OPEN, Life.JOINING, Life.SERVING, after=[LifeDo.ANNOUNCE_UP]),
        on(LifeOn.SUBMIT, Life.SERVING, None),
        on(
            LifeOn.FAULT,
            [Life.STARTING, Life.JOINING, Life.SERVING],
            Life.FAILING,
            after=[LifeDo.ANNOUNCE_FAILURE],
        ),
        on(LifeOn.STOP, [Life.STARTING, Life.JOINING, Life.SERVING], Life.STOPPING),
        on(LifeOn.END, Life.STOPPING, Life.DOWN, after=[LifeDo.ANNOUNCE_END]),
        on(LifeOn.END, Life.FAILING, Life.FAILED, after=[LifeDo.ANNOUNCE_END]),
        *stay([Life.STOPPING, Life.FAILING, Life.DOWN, Life.FAILED], LifeOn.FAULT, LifeOn.STOP),
    ),
)

LIFE_CLUSTER = Cluster("life", LIFE)

_ENDING = (Life.STOPPING, Life.FAILING)

EXECUTOR_COUPLING = (
    when(("start", Start.UP), then=("life", LifeOn.RANKS_READY)),
    when(("broadcast", Gate.OPEN), ("replies", Gate.OPEN), then=("life", LifeOn.QUEUES_OPEN)),
    when(("start", Start.FAILED), then=("life", LifeOn.FAULT)),
    when(("broadcast", Gate.CLOSED), then=("life", LifeOn.FAULT)),
    when(("replies", Gate.CLOSED), then=("life", LifeOn.FAULT)),
    when(("life", _ENDING), then=("stop", StopOn.STOP)),
    when(("life", _ENDING), then=("start", StartOn.CANCEL)),
    when(("life", _ENDING), then=("broadcast", GateOn.CLOSE)),
    when(("life", _ENDING), then=("replies", GateOn.CLOSE)),
    when(("life", _ENDING), then=("call", CallOn.CLOSE)),  # each call that is open
    when(("life", (Life.FAILING, Life.FAILED)), then=("listener", ListenerOn.FAILURE)),  # each listener
    when(("life", (Life.STOPPING, Life.DOWN)), then=("listener", ListenerOn.RELEASE)),
    when(("stop", (Stop.DOWN, Stop.SURVIVORS)), then=("life", LifeOn.END)),
)

# A worker that reported a failed phase has nothing left to do.
WORKER_COUPLING = (when(("boot", Boot.FAILED), then=("leave", LeaveOn.BROKEN)),)
