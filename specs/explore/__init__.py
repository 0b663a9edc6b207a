"""An explicit-state model checker for hashable states: search, liveness, symmetry, simulation, counterexamples.

The public names are those below. Start with `check`; a model is described in `model`, properties in `property`.
"""

from .check import check
from .counterexample import Counterexample, replay
from .graph import Graph
from .model import Label, Model, ModelError
from .path import Path, ReplayError, Step, walk
from .property import (
    Kind,
    Property,
    always,
    eventually,
    leads_to,
    never,
    no_deadlock,
    no_stall,
    recoverable,
    sometimes,
)
from .report import Explored, Outcome, Report, junit
from .search import Limits, Progress, Watch, search
from .simulate import random_walk, simulate
from .space import Edges, LiftError, Space
from .symmetry import gate
from .verdict import Judgement, Verdict, worst

__all__ = [
    "Counterexample",
    "Edges",
    "Explored",
    "Graph",
    "Judgement",
    "Kind",
    "Label",
    "LiftError",
    "Limits",
    "Model",
    "ModelError",
    "Outcome",
    "Path",
    "Progress",
    "Property",
    "ReplayError",
    "Report",
    "Space",
    "Step",
    "Verdict",
    "Watch",
    "always",
    "check",
    "eventually",
    "gate",
    "junit",
    "leads_to",
    "never",
    "no_deadlock",
    "no_stall",
    "random_walk",
    "recoverable",
    "replay",
    "search",
    "simulate",
    "sometimes",
    "walk",
    "worst",
]
