"""Known-bad variants: the reference system's own rules, and others', each convicted with a counterexample.

`VARIANTS` has all of them by name; `BUNDLES` names those that one version of the reference system has together.
"""

from __future__ import annotations

from . import (
    bell,
    calls,
    clock,
    collectives,
    counts,
    locks,
    messages,
    names,
    order,
    pipes,
    processes,
    queues,
    races,
    ready,
    ring,
    room,
    stop,
    waves,
)
from .variant import LINT, Conviction, Trial, Variant, convict, judged

_MODULES = (
    ready,
    queues,
    order,
    calls,
    counts,
    clock,
    races,
    stop,
    processes,
    pipes,
    messages,
    ring,
    bell,
    room,
    locks,
    names,
    collectives,
    waves,
)
VARIANTS: dict[str, Variant] = {variant.name: variant for module in _MODULES for variant in module.variants()}

_BOTH = (
    "no-start-deadline",
    "readiness-blind-to-death",
    "readiness-blind-to-cancel",
    "untagged-replies",
    "late-reply-taken-by-next",
    "replies-in-rank-order",
    "only-reply-rank-reports",
    "two-drain",
    "negative-deadline",
    "stop-entered-twice",
    "check-then-enqueue",
    "callback-kept-too-late",
    "callback-after-the-end",
    "last-listener-only",
    "inherited-ends",
    "parent-unwatched-while-busy",
    "raise-keeps-the-slot",
    "dead-reader-blocks-writer",
)
BUNDLES: dict[str, tuple[str, ...]] = {
    "vllm-0.11.2": (*_BOTH, "sigterm-without-grace", "monitor-before-queue"),
    "vllm-0.15.1": _BOTH,
}
"""What each version of the reference system does; each rule is tried alone, against the shipped tables otherwise."""

__all__ = ["BUNDLES", "LINT", "VARIANTS", "Conviction", "Trial", "Variant", "convict", "judged"]
