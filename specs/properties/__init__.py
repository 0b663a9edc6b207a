"""What must hold, by protocol: each property has a name, one sentence, and a twin that shows it is not vacuous.

Theory of operation. Each module gives a function from a world to its properties, because some (each rank, each thread)
come once a member. No predicate looks at a phase between HELLO and READY: `World(eager=True)` counts on it.
"""

from .calls import calls
from .life import life
from .queues import queues, room
from .start import handshake, start
from .stop import listeners, orphans, stop

__all__ = ["calls", "handshake", "life", "listeners", "orphans", "queues", "room", "start", "stop"]
