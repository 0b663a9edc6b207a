"""Puts the rank harness where both pytest and the processes it starts can import it."""

import sys
from pathlib import Path

# pytest's importlib mode adds no test folder to the path; child processes get the path as it is here.
sys.path.insert(0, str(Path(__file__).parent))
