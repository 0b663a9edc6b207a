"""Queue internals: ring, notification, shared memory, sockets."""

from __future__ import annotations

from .row import left, shown

_CPU = "processor time: measured, not modelled"
_TRACKER = "the interpreter's resource tracker"

INTERNALS = (
    shown(
        "B164",
        "vllm-project/vllm#5801",
        "A full ring makes both sides skip to another slot.",
        "skips-the-busy-slot",
    ),
    shown(
        "B166",
        "vllm-project/vllm#45224",
        "A reader raises inside its slot and keeps it.",
        "raise-keeps-the-slot",
    ),
    shown(
        "B167",
        "vllm-project/vllm#45644",
        "The writer waits for a dead reader's flag.",
        "dead-reader-blocks-writer",
    ),
    left(
        "B169",
        "vllm-project/vllm#56251",
        "A fence that is a lock of one process orders nothing between two.",
        "a native memory model",
    ),
    left(
        "B170",
        "vllm-project/vllm#40303",
        "A spin loop's helper call breaks under a native compiler.",
        "native code",
    ),
    left("B172", "vllm-project/vllm#19036", "Idle readers burn a core each.", _CPU),
    left("B173", "vllm-project/vllm#52814", "The spin window never ends under load.", _CPU),
    left("B175", "vllm-project/vllm#8933", "Segments are reported as leaked at shutdown.", _TRACKER),
    shown("B176", "python/cpython#82300", "A segment is removed under those who use it.", "attacher-removes"),
    shown(
        "B178",
        "vllm-project/vllm#53859",
        "A side channel that nobody reads stops the engine's loop.",
        "publish-blocks-the-loop",
    ),
    shown(
        "B179",
        "vllm-project/vllm#44414",
        "A buffer is used again before its reader is done with it.",
        "overwrites-unread",
    ),
    shown(
        "B181",
        "vllm-project/vllm-omni#5595",
        "A worker's wait never looks at the flag that says its parent is gone.",
        "parent-unwatched-while-idle",
    ),
    left(
        "B182", "vllm-project/vllm#45649", "A spinning reader starves the threads of its own process.", _CPU
    ),
    left("B184", "joblib/loky#369", "Semaphores count as leaked after a collection.", _TRACKER),
    shown(
        "B185", "zeromq/pyzmq#1003", "The end waits for messages that nobody will take.", "linger-for-ever"
    ),
    left(
        "B187",
        "vllm-project/vllm#24580",
        "A half-made ring's finaliser hides the real error.",
        "an object's own construction",
    ),
    left(
        "B188",
        "vllm-project/vllm#27313",
        "One line stands for an idle, a slow, a stuck and a dead peer.",
        "the words of a notice",
    ),
    shown(
        "B190",
        "vllm-project/vllm#34169",
        "A segment of another group, or of an earlier run, is joined.",
        "name-without-epoch",
    ),
    left(
        "B191",
        "LMCache/LMCache#3529",
        "A socket's path is longer than the system allows.",
        "packaging: the length of a path",
    ),
    shown(
        "B193",
        "blehnen/DotNetWorkQueue#331",
        "The last notification is lost, and nothing follows it.",
        "lost-ring-unbounded-park",
    ),
    shown(
        "B194",
        "orioledb/orioledb#1197",
        "A sender waits for room in a queue whose reader is gone.",
        "dead-reader-blocks-writer",
    ),
    shown(
        "B196",
        "python/cpython#109593",
        "A collection re-enters a lock that its thread holds.",
        "lock-in-handler",
    ),
    left("B197", "vllm-project/vllm#21231", "A reader that waits by yielding spins for ever.", _CPU),
    shown(
        "B199",
        "NVIDIA/TensorRT-LLM#18297",
        "A log's consumer never came: a full queue, or an end that lingers.",
        "linger-for-ever",
        "publish-blocks-the-loop",
    ),
    shown(
        "B200",
        "NVIDIA/TensorRT-LLM#17988",
        "A socket is closed while a thread is inside a send.",
        "closed-under-a-sender",
    ),
)
