"""Mutation of everything that is shipped: tables, coupling, facts and agenda; and who convicts each mutant."""

from .campaign import Campaign, run
from .defects import Defect, defects
from .fate import Fate, Outcome

__all__ = ["Campaign", "Defect", "Fate", "Outcome", "defects", "run"]
