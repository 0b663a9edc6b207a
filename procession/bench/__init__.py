"""Measure our executor beside its peers: see `procession bench` and docs/performance.md.

Theory of operation:

1. A *peer* is anything that can start N processes, call them all, and be stopped: `peer.Peer`. Adapters are in `peers`.
2. All peers are alive at once and idle; a *burst* is a short run of calls on one of them. Bursts of the same cell (what
   is measured, with how many ranks, which payload) follow each other in shuffled order, so that a noisy machine hits
   all alike, and a ratio is made of two bursts that are seconds apart (`rounds`).
3. A figure is the median over rounds, with its range; a ratio is made round by round (`figures`). Absolute times of a
   shared machine say little.
4. Everything is bounded: each call by a timeout, each burst by a guard that kills the peer's processes, each process by
   an alarm of its own. What is left behind in the end is looked for, and said.
"""
