"""Futures draining: each call is resolved once, from its own replies, by whoever waits for it.

Theory of operation:

1. A call goes to every rank, and every rank answers it: with a result if it owes one, with a bare acknowledgement if
   it does not, with a failure if the method raised. So a rank that owes no result can still fail the call
   (vllm#23985).
2. A reply names its epoch, rank and call. It is offered to the calls that its rank still owes, oldest first, and
   taken by the one it names; if none is named, it is stale and dropped. A position in a queue is no identity: with
   positions, every call after a failure gets the previous answer.
3. A call is RESOLVED when every rank has answered. It FAILS at the first failure, or death, or close, without waiting
   for the others: the others may be waiting for the one that failed (vllm#53597).
4. A call that its caller gave up (EXPIRED, CANCELLED) or that failed stays in the books until its last reply has come
   and was dropped. It disturbs no later call.
5. The threads that wait for calls take the replies off the queues themselves. One DRAINS on behalf of all, the others
   are PARKED; when the drainer leaves, the parked ones look again. Two never read at once, and all never wait at once.
"""

from __future__ import annotations

from .core import Cluster, Effect, Event, Identity, Kind, State, Table, every, on, some, stay
from .ready import of_this_epoch, of_this_rank


def of_this_call(own: Identity, message: Identity) -> bool:
    """The message names the call that the machine stands for."""
    return own.call == message.call


class FuturesDo(Effect):
    """Effects of futures draining."""

    PASS_ON = "pass_on", "Offer the reply to the next call that its rank owes."
    RESOLVE = "resolve", "Hand the results to the call's future."
    FAIL = "fail", "Hand the first cause to the call's future."
    WAKE_PARKED = "wake_parked", "Wake the parked callers: nobody drains now."
    RUN_METHOD = "run_method", "Run the call's method on the worker."
    SEND_REPLY = "send_reply", "Write the result, or the acknowledgement, to the reply queue."
    SEND_FAILURE = "send_failure", "Write the failure, with its traceback, to the reply queue."


# --- executor side, one machine a call and rank ---------------------------------------------------------------------


class Reply(State):
    """What one rank owes to one call."""

    OWED = "The rank has not answered the call."
    RETURNED = "The rank's method returned."
    RAISED = "The rank's method raised, or its answer could not be read."
    LOST = "The rank is gone, and its answer with it."


class ReplyOn(Event):
    """What can happen to an owed reply."""

    RETURNED = "returned", Kind.MESSAGE, "A result or an acknowledgement came from the rank."
    RAISED = "raised", Kind.MESSAGE, "A failure came from the rank, or an answer that does not decode."
    DIED = "died", Kind.DEATH, "The rank's process is gone."


REPLY = Table(
    name="reply",
    purpose="What one rank owes to one call.",
    states=Reply,
    events=ReplyOn,
    effects=FuturesDo,
    initial=Reply.OWED,
    final=frozenset({Reply.RETURNED, Reply.RAISED, Reply.LOST}),
    rows=(
        *(
            row
            for trigger, dest in ((ReplyOn.RETURNED, Reply.RETURNED), (ReplyOn.RAISED, Reply.RAISED))
            for row in (
                on(trigger, Reply.OWED, dest, conditions=[of_this_epoch, of_this_rank, of_this_call]),
                on(trigger, Reply.OWED, None, unless=[of_this_epoch], after=[FuturesDo.PASS_ON]),
                on(
                    trigger,
                    Reply.OWED,
                    None,
                    conditions=[of_this_epoch],
                    unless=[of_this_rank],
                    after=[FuturesDo.PASS_ON],
                ),
                on(
                    trigger,
                    Reply.OWED,
                    None,
                    conditions=[of_this_epoch, of_this_rank],
                    unless=[of_this_call],
                    after=[FuturesDo.PASS_ON],
                ),
            )
        ),
        on(ReplyOn.DIED, Reply.OWED, Reply.LOST),
        *stay([Reply.RETURNED, Reply.RAISED], ReplyOn.DIED),
    ),
    waits={Reply.OWED: frozenset({Kind.MESSAGE, Kind.DEATH})},
    because="Giving up is the call's: a reply stays owed after its call was cancelled or its deadline passed.",
)


# --- executor side, one machine a call ------------------------------------------------------------------------------


class Call(State):
    """One call, all its ranks together."""

    OPEN = "The call was sent; at least one rank owes its answer and none has failed."
    RESOLVED = "Every rank has answered; the results are handed over."
    FAILED = "A rank failed or is gone, or the executor closed; the first cause is handed over."
    EXPIRED = "The deadline passed first; late replies are dropped."
    CANCELLED = "The caller gave the call up; late replies are dropped."


class CallOn(Event):
    """What can happen to a call."""

    ALL_REPLIED = "all_replied", Kind.MESSAGE, "The last answer came."
    RANK_RAISED = "rank_raised", Kind.MESSAGE, "A rank answered with a failure."
    RANK_LOST = "rank_lost", Kind.DEATH, "A rank that owes its answer is gone."
    DEADLINE = "deadline", Kind.DEADLINE, "The call's absolute deadline passed."
    CANCEL = "cancel", Kind.CANCEL, "The caller gave up."
    CLOSE = "close", Kind.CANCEL, "The executor closed."


_SETTLED = [Call.RESOLVED, Call.FAILED, Call.EXPIRED, Call.CANCELLED]

CALL = Table(
    name="call",
    purpose="One call: resolved once, from its own replies, or failed by the first cause.",
    states=Call,
    events=CallOn,
    effects=FuturesDo,
    initial=Call.OPEN,
    final=frozenset(_SETTLED),
    rows=(
        on(CallOn.ALL_REPLIED, Call.OPEN, Call.RESOLVED, after=[FuturesDo.RESOLVE]),
        on(CallOn.RANK_RAISED, Call.OPEN, Call.FAILED, after=[FuturesDo.FAIL]),
        on(CallOn.RANK_LOST, Call.OPEN, Call.FAILED, after=[FuturesDo.FAIL]),
        on(CallOn.DEADLINE, Call.OPEN, Call.EXPIRED, after=[FuturesDo.FAIL]),
        on(CallOn.CANCEL, Call.OPEN, Call.CANCELLED, after=[FuturesDo.FAIL]),
        on(CallOn.CLOSE, Call.OPEN, Call.FAILED, after=[FuturesDo.FAIL]),
        # Given up after it was settled, while replies are owed: what came first stands.
        *stay([Call.FAILED, Call.EXPIRED, Call.CANCELLED], CallOn.DEADLINE, CallOn.CANCEL),
    ),
    waits={Call.OPEN: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL, Kind.DEADLINE})},
)

CALL_COUPLING = (
    some(REPLY, Reply.RAISED, then=CallOn.RANK_RAISED),
    some(REPLY, Reply.LOST, then=CallOn.RANK_LOST),
    every(REPLY, Reply.RETURNED, then=CallOn.ALL_REPLIED),
)

CALL_CLUSTER = Cluster("call", CALL, REPLY, CALL_COUPLING)


# --- executor side, one machine a waiting thread --------------------------------------------------------------------


class Caller(State):
    """A thread that waits for one call."""

    LOOKING = "The thread has looked at nothing yet, or was told to look again."
    DRAINING = "The thread reads the reply queues, on behalf of every caller."
    PARKED = "Another thread drains; this one sleeps until its call is settled or the drainer leaves."
    ANSWERED = "The thread's call is settled."
    GAVE_UP = "The thread stopped waiting before its call was settled."


class CallerOn(Event):
    """What can happen to a waiting thread."""

    DRAIN = "drain", Kind.WORK, "The call is open and nobody drains: this thread does."
    PARK = "park", Kind.WORK, "The call is open and somebody drains."
    LOOK = "look", Kind.MESSAGE, "The drainer left: look again."
    SETTLED = "settled", Kind.MESSAGE, "The thread's call is settled."
    GIVE_UP = "give_up", Kind.CANCEL, "The thread was interrupted."
    DEADLINE = "deadline", Kind.DEADLINE, "The thread's own time for waiting is over."


CALLER = Table(
    name="caller",
    purpose="A thread that waits for a call: it drains, or is parked while another one drains.",
    states=Caller,
    events=CallerOn,
    effects=FuturesDo,
    initial=Caller.LOOKING,
    final=frozenset({Caller.ANSWERED, Caller.GAVE_UP}),
    rows=(
        on(CallerOn.DRAIN, Caller.LOOKING, Caller.DRAINING),
        on(CallerOn.PARK, Caller.LOOKING, Caller.PARKED),
        on(CallerOn.LOOK, Caller.PARKED, Caller.LOOKING),
        on(CallerOn.SETTLED, [Caller.LOOKING, Caller.PARKED], Caller.ANSWERED),
        on(CallerOn.SETTLED, Caller.DRAINING, Caller.ANSWERED, after=[FuturesDo.WAKE_PARKED]),
        on(CallerOn.GIVE_UP, [Caller.LOOKING, Caller.PARKED], Caller.GAVE_UP),
        on(CallerOn.GIVE_UP, Caller.DRAINING, Caller.GAVE_UP, after=[FuturesDo.WAKE_PARKED]),
        on(CallerOn.DEADLINE, [Caller.LOOKING, Caller.PARKED], Caller.GAVE_UP),
        on(CallerOn.DEADLINE, Caller.DRAINING, Caller.GAVE_UP, after=[FuturesDo.WAKE_PARKED]),
    ),
    waits={
        state: frozenset({Kind.MESSAGE, Kind.CANCEL, Kind.DEADLINE})
        for state in (Caller.DRAINING, Caller.PARKED)
    },
    because="A rank's death settles the call, and so reaches the caller as SETTLED.",
)


# --- worker side ----------------------------------------------------------------------------------------------------


class Serve(State):
    """A worker between READY and its end."""

    CLOSED = "The queues are not open yet."
    IDLE = "Every call so far is answered; the worker waits for the next."
    RUNNING = "The call's method runs."
    REPLYING = "The answer is being written; a full queue makes this wait."
    STOPPED = "The worker takes no further call."


class ServeOn(Event):
    """What can happen to a serving worker."""

    BEGIN = "begin", Kind.COUPLED, "Both queues are open."
    CALL = "call", Kind.MESSAGE, "A call came from the broadcast queue."
    RETURNED = "returned", Kind.WORK, "The method returned."
    RAISED = "raised", Kind.WORK, "The method raised."
    SENT = "sent", Kind.MESSAGE, "The reply queue took the answer."
    STOP = "stop", Kind.CANCEL, "The executor closed the control channel."
    ORPHANED = "orphaned", Kind.DEATH, "The executor's process is gone."


SERVE = Table(
    name="serve",
    purpose="A worker between READY and its end: one call at a time, each answered once.",
    states=Serve,
    events=ServeOn,
    effects=FuturesDo,
    initial=Serve.CLOSED,
    final=frozenset({Serve.STOPPED}),
    rows=(
        on(ServeOn.BEGIN, Serve.CLOSED, Serve.IDLE),
        on(ServeOn.CALL, Serve.IDLE, Serve.RUNNING, after=[FuturesDo.RUN_METHOD]),
        on(ServeOn.RETURNED, Serve.RUNNING, Serve.REPLYING, after=[FuturesDo.SEND_REPLY]),
        on(ServeOn.RAISED, Serve.RUNNING, Serve.REPLYING, after=[FuturesDo.SEND_FAILURE]),
        on(ServeOn.SENT, Serve.REPLYING, Serve.IDLE),
        on(ServeOn.STOP, [Serve.CLOSED, Serve.IDLE, Serve.REPLYING], Serve.STOPPED),
        # In RUNNING, too: the worker's watch sees the executor's death while a method runs. A stop waits for its end.
        on(ServeOn.ORPHANED, [Serve.CLOSED, Serve.IDLE, Serve.RUNNING, Serve.REPLYING], Serve.STOPPED),
        *stay(Serve.STOPPED, ServeOn.STOP, ServeOn.ORPHANED),
    ),
    waits={
        Serve.IDLE: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL}),
        Serve.REPLYING: frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL}),
    },
    because="A worker has no clock of its own: the executor decides how long is too long, and closes.",
)

CALLER_CLUSTER = Cluster("caller", CALLER)
SERVE_CLUSTER = Cluster("serve", SERVE)
