"""Traces of real runs: read, held against the model, and drawn."""

from .draw import sequence_diagram
from .format import Header, Line, TraceError, read
from .replay import Replay, validate
from .verdict import TraceVerdict
from .write import written

__all__ = [
    "Header",
    "Line",
    "Replay",
    "TraceError",
    "TraceVerdict",
    "read",
    "sequence_diagram",
    "validate",
    "written",
]
