"""AMX and its neighbours: what the processor offers, what to compute in, and what really ran.

Theory of operation. Four questions that are easily mistaken for one another, one file each:

- `facts`: what do processor and kernel *offer*? Read without torch and without changing anything.
- `kernel.permit`: may *this process* use tiles? The request changes the process; a worker makes it early.
- `choose`: which data type should a model compute in, and why? A pure function of the facts.
- `ran`: which instruction set did a matrix product *really use*? Only the libraries' own report counts; the
  processor's name proves nothing, and a hypervisor may hide what the name promises.

Importing this package does not import torch.
"""

from .choose import Choice, choose
from .facts import CpuFacts, read_facts
from .kernel import permit
from .ran import Ran, probe, probe_apart

__all__ = ["Choice", "CpuFacts", "Ran", "choose", "permit", "probe", "probe_apart", "read_facts"]
