"""The suite of `specs.stateful` on real executors.

Theory of operation. `specs` knows no runtime; here the two meet. `ours` is the adapter of `MultiprocExecutor`, `hand`
the worker that it is given, `hold` the pause that holds ranks at their steps, and `host` a program to be killed;
`pools` is the adapter of the standard library's `ProcessPoolExecutor`.
"""
