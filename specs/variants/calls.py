"""Futures draining: replies that reach the wrong call, failures that reach none, and callers that are left behind.

Theory of operation: see `variant`. The reference system pairs a reply with a call by its position in a queue, reads
ranks in order, and lets only the reply rank speak. Each of these is one change here. Positions alone would still work
if a call that is over stayed in the books until its last reply had come; so two variants also forget it at once.
"""

from __future__ import annotations

from ...protocol.core import Cluster, some
from ...protocol.core.table import Table
from ...protocol.executor import ExecutorProtocol
from ...protocol.futures import (
    CALL,
    CALL_COUPLING,
    CALLER,
    REPLY,
    SERVE,
    Caller,
    CallerOn,
    CallOn,
    FuturesDo,
    Reply,
    Serve,
    ServeOn,
    of_this_call,
)
from ..models import AHEAD, FUTURES
from ..world import Budgets
from .edit import changed, swapped, uncoupled, unguarded
from .glue import (
    EndBeforeCause,
    ForgetsAbandoned,
    ForgetsFailed,
    LosesWhatItCannotDecode,
    NobodyWatches,
    OthersKeepFailuresBack,
    OthersNeverAnswer,
    RepliesInRankOrder,
)
from .in_world import in_world
from .variant import Variant

_UNTAGGED = unguarded(REPLY, of_this_call)
_AGGREGATED = (some(REPLY, Reply.RETURNED, then=CallOn.ALL_REPLIED), *CALL_COUPLING[:2])


def _caller(table: Table) -> ExecutorProtocol:
    return ExecutorProtocol().but(table)


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    good = ExecutorProtocol()
    return [
        in_world(
            "untagged-replies",
            "A reply belongs to the call at the head of the queue. When rank 0 raises, the call is over and rank 1's "
            "reply to it is taken by the next one, and so on for ever.",
            ("redis/redis-py#2624",),
            AHEAD,
            "a call takes only its own replies",
            9,
            ranks=2,
            budgets=Budgets(raises=1),
            executor=ForgetsFailed().but(_UNTAGGED),
            table=_UNTAGGED,
        ),
        in_world(
            "late-reply-taken-by-next",
            "A call that timed out or was cancelled leaves its reply in the queue, and the next call takes it.",
            ("redis/redis-py#2665", "dask/distributed#6673"),
            AHEAD,
            "a call takes only its own replies",
            7,
            ranks=1,
            budgets=Budgets(cancels=1),
            executor=ForgetsAbandoned().but(_UNTAGGED),
            table=_UNTAGGED,
        ),
        in_world(
            "replies-in-rank-order",
            "Replies are read rank by rank: rank 1's failure lies unread while rank 0, which waits for it, is awaited.",
            ("vllm-project/vllm#53597", "ray-project/ray#49711"),
            AHEAD,
            "a failure reaches its call",
            6,
            ranks=2,
            budgets=Budgets(raises=1, freezes=1),
            parts=RepliesInRankOrder,
            calls=(1,),
        ),
        in_world(
            "only-reply-rank-reports",
            "A rank that owes no reply reports no failure either: what it raises is logged on its side and dropped.",
            ("vllm-project/vllm#23985",),
            AHEAD,
            "caller 0 comes back",
            8,
            ranks=2,
            budgets=Budgets(raises=1),
            parts=OthersKeepFailuresBack,
            calls=(1,),
        ),
        in_world(
            "everybody-is-expected",
            "Every rank is counted on for a report, and only some ever make one: the count never comes to its end.",
            ("vllm-project/vllm#23917",),
            AHEAD,
            "caller 0 comes back",
            8,
            ranks=2,
            budgets=Budgets(raises=1),
            parts=OthersNeverAnswer,
            calls=(1,),
        ),
        in_world(
            "one-for-all",
            "One rank's report is taken for everybody's: the call is finished while others still work on it.",
            ("vllm-project/vllm#21048",),
            AHEAD,
            "a result is every rank's",
            5,
            ranks=2,
            budgets=Budgets(raises=1),
            executor=swapped(good, call=Cluster("call", CALL, REPLY, _AGGREGATED)),
            calls=(1,),
        ),
        in_world(
            "failure-said-as-result",
            "A worker whose method raised answers as if it had returned; the reason stays on its side.",
            ("AstroVela/vane#444", "sgl-project/sglang-omni#98"),
            AHEAD,
            "an answer says what happened",
            3,
            ranks=1,
            budgets=Budgets(raises=1),
            table=changed(SERVE, ServeOn.RAISED, Serve.RUNNING, Serve.REPLYING, FuturesDo.SEND_REPLY),
            calls=(1,),
        ),
        in_world(
            "end-before-cause",
            "A death first closes everything, which cancels the calls: their callers see 'cancelled', not the death.",
            ("vllm-project/vllm-omni#2440",),
            FUTURES,
            "the dead owe nothing",
            3,
            ranks=2,
            budgets=Budgets(crashes=1),
            executor=EndBeforeCause(),
            calls=(1,),
        ),
        in_world(
            "close-forgets-calls",
            "The end of the executor does not end what is outstanding: a future's owner waits for a closed channel.",
            ("ray-project/ray#46284",),
            AHEAD,
            "the end fails every open call",
            2,
            ranks=1,
            budgets=Budgets(stops=1),
            executor=uncoupled(good, "call", CallOn.CLOSE),
            calls=(1,),
        ),
        in_world(
            "nobody-watches",
            "A death is known only if the one that dies says so; after SIGKILL its future stays pending.",
            ("vllm-project/vllm#21443", "NVIDIA/TensorRT-LLM#16338"),
            AHEAD,
            "caller 0 comes back",
            3,
            ranks=1,
            budgets=Budgets(crashes=1),
            parts=NobodyWatches,
            calls=(1,),
        ),
        in_world(
            "undecodable-reply-lost",
            "A reply that does not decode breaks its reader: it is off the queue, and its call waits for it for ever.",
            ("python/cpython#79492", "python/cpython#103061"),
            AHEAD,
            "caller 0 comes back",
            6,
            ranks=1,
            budgets=Budgets(raises=1),
            parts=LosesWhatItCannotDecode,
            calls=(1,),
        ),
        in_world(
            "two-drain",
            "Nothing keeps two threads from reading the reply queues at once: each takes what the other waits for.",
            ("vllm-project/vllm#38644",),
            FUTURES,
            "one drains",
            4,
            ranks=1,
            budgets=Budgets(),
            executor=_caller(changed(CALLER, CallerOn.PARK, Caller.LOOKING, Caller.DRAINING)),
        ),
        in_world(
            "drainer-leaves-quietly",
            "The thread that reads for all has its answer and leaves; those that sleep are not told to read now.",
            (),
            FUTURES,
            "nobody is left parked",
            12,
            ranks=1,
            budgets=Budgets(),
            executor=_caller(changed(CALLER, CallerOn.SETTLED, Caller.DRAINING, Caller.ANSWERED)),
        ),
    ]
