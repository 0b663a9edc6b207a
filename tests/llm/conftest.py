"""Lets both pytest and the processes that tests start import `tests.llm.llm_ranks`."""

import sys
from pathlib import Path

# pytest's importlib mode adds nothing to the path; child processes get the path as it is here. At its end, so that
# the repository's folders never stand in front of an installed package.
sys.path.append(str(Path(__file__).parents[2]))
