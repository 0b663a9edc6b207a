"""The control protocol of a multiprocess inference executor, as tables that are checked, and that run."""

__version__ = "0.1.0"
