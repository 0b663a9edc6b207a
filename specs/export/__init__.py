"""The models for other engines: Murphi for rumur, Promela for spin, made from the tables that run.

Theory of operation:

1. A model becomes one *program* (program.py): variables (variables.py), actions (actions.py), and text in a small part
   of Python (small.py, tree.py). What the tables say is written into it from `Table`, `Cluster`, `Coupled` and `When`
   objects (tables.py, wording.py, guards.py, effects.py); nothing of a table stands in the glue.
2. The *glue* (glue/) is the world around the tables, with the same atomicity as `World`, and what must hold, said a
   second time over flat variables. It is written once, for all engines.
3. The program is *printed* as Murphi (murphi.py) and as Promela (promela.py), or *run* by Python (twin.py).
4. `compare` (agree.py) judges a model with our explorer, rumur and spin (engines.py) and says where they differ.

Who adds a property to specs/properties restates its predicate in glue/holds*.py, under its name; until then the other
engines have not established it, and `procession agree` says so. Who adds a rule or an offence to specs/world adds it to
the glue; tests/specs/export/test_twin.py shows where the two sides differ.

What equal counts and verdicts rest on: the reader of the small language and the glue are shared by both exports, so an
error there would be in both. To go unnoticed it would have to be in `World` as well, which knows neither.
"""

from .agree import FULL, QUICK, Comparison, Finding, compare
from .murphi import murphi
from .program import Exported, exported
from .promela import promela
from .tree import ExportError

__all__ = [
    "FULL",
    "QUICK",
    "Comparison",
    "ExportError",
    "Exported",
    "Finding",
    "compare",
    "exported",
    "murphi",
    "promela",
]
