"""How a table is written, checked, stepped and coupled. The protocols themselves are one folder up."""

from .cluster import Cluster, Step
from .coupling import Coupled, each, every, some, when
from .errors import IllegalEventError, LocalProtocolError, ProtocolError, RemoteProtocolError, TableError
from .table import Guard, Table, on, stay
from .vocabulary import Effect, Event, Identity, Kind, State

__all__ = [
    "Cluster",
    "Coupled",
    "Effect",
    "Event",
    "Guard",
    "Identity",
    "IllegalEventError",
    "Kind",
    "LocalProtocolError",
    "ProtocolError",
    "RemoteProtocolError",
    "State",
    "Step",
    "Table",
    "TableError",
    "each",
    "every",
    "on",
    "some",
    "stay",
    "when",
]
