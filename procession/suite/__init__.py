"""The suite of `specs.stateful` on real executors: adapters, planted faults, and reports.

Theory of operation. `specs` knows no runtime; here the two meet. `ours` is the adapter of `MultiprocExecutor`, `pools`
those of process pools; `conform` runs properties on any adapter and reports; `faults` are small patches of the running
code, each of which must be found.
"""
