"""Group 3: futures, replies, deadlines, aggregation."""

from __future__ import annotations

from .row import left, shown

FUTURES = (
    shown(
        "B46",
        "vllm-project/vllm#41357",
        "An expired deadline becomes a negative timeout, which waits for ever.",
        "negative-deadline",
    ),
    shown(
        "B47",
        "vllm-project/vllm#29390",
        "Timeouts add up over ranks, and over the drain of older calls.",
        "limit-a-rank",
    ),
    shown(
        "B49",
        "vllm-project/vllm#38644",
        "Two copies of the drain loop; a future noted after its call was sent.",
        "append-after-send",
        "two-drain",
    ),
    shown(
        "B50",
        "vllm-project/vllm#53597",
        "Rank 1's failure is unread while rank 0 waits for rank 1.",
        "replies-in-rank-order",
    ),
    shown(
        "B52",
        "HYGON-AI/vllm-plugin-das#25",
        "The output thread waits for the device without end, and sends nothing.",
        "output-without-limit",
    ),
    left(
        "B53",
        "vllm-project/vllm#54422",
        "The output thread keeps the last output alive while it is idle.",
        "what a local variable keeps alive",
    ),
    shown(
        "B55",
        "vllm-project/vllm#17965",
        "A call times out, and nobody can say which rank was late.",
        "replies-counted",
    ),
    shown(
        "B56",
        "vllm-project/vllm#56251",
        "The monitor clears the queue between a call's check and its write.",
        "check-then-enqueue",
    ),
    shown(
        "B58",
        "python/cpython#94440",
        "A cancel takes the last work away, and the manager is not woken.",
        "change-without-a-ring",
    ),
    shown(
        "B59",
        "python/cpython#105829",
        "The wake-up pipe is full, and its reader needs the writer's lock.",
        "a-byte-a-wake",
    ),
    left(
        "B61",
        "joblib/loky#437",
        "A worker exits in the middle of pickling its result.",
        "an exit is a death wherever it comes; what the interpreter does meanwhile is tried on real processes",
    ),
    shown(
        "B62",
        "dask/distributed#6673",
        "The late end of a first run is taken for the second run's.",
        "late-reply-taken-by-next",
    ),
    shown(
        "B64",
        "ray-project/ray#46284",
        "A result is waited for after the group was torn down.",
        "close-forgets-calls",
    ),
    shown(
        "B65",
        "ray-project/ray#49711",
        "Inputs are read in order; a failed one waits behind a silent one.",
        "replies-in-rank-order",
    ),
    shown(
        "B67",
        "ray-project/ray#49781",
        "Dropping a later reference throws an earlier one's result away.",
        "drop-takes-earlier",
    ),
    shown(
        "B68",
        "ray-project/ray#47097",
        "More calls in flight than there are places; nobody reads.",
        "in-flight-without-bound",
    ),
    shown(
        "B70", "vllm-project/vllm#56976", "A shutdown while a call is being serialised.", "check-then-enqueue"
    ),
    shown(
        "B71",
        "vllm-project/vllm#21048",
        "One worker's word is taken for all: a request counts as finished early.",
        "one-for-all",
    ),
    shown(
        "B73",
        "vllm-project/vllm#23917",
        "More reports are expected than will ever be made.",
        "everybody-is-expected",
    ),
    shown(
        "B74",
        "vllm-project/vllm#28768",
        "A step of two calls drops what the middle stages owe.",
        "side-output-lost",
    ),
    left(
        "B76",
        "tenstorrent/vllm#387",
        "Asynchronous scheduling with data parallelism stops in silence.",
        "no mechanism is known to model",
    ),
    shown(
        "B77",
        "python/cpython#79492",
        "A reply that does not unpickle ends the thread that reads replies.",
        "undecodable-reply-lost",
    ),
    shown(
        "B79",
        "vllm-project/vllm#23985",
        "A rank that owes no reply cannot report its failure.",
        "only-reply-rank-reports",
    ),
    shown(
        "B80",
        "redis/redis-py#2624",
        "After a cancel every command reads the answer before its own.",
        "late-reply-taken-by-next",
        "untagged-replies",
    ),
    left(
        "B82",
        "vllm-project/vllm#51979",
        "A worker keeps its last call's arguments alive while it waits.",
        "what a local variable keeps alive",
    ),
    left(
        "B83",
        "python/cpython#115634",
        "A token outlives the idle worker that it stands for.",
        "a pool that replaces workers; here the ranks are fixed",
    ),
    shown(
        "B85",
        "vllm-project/vllm#18558",
        "The call's limit is shorter than the collective's, so no rank is named.",
        "outer-before-inner",
    ),
    shown(
        "B86",
        "AstroVela/vane#444",
        "The caller is told of a missing result, not of the error behind it.",
        "failure-said-as-result",
    ),
)
