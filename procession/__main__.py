"""`python -m procession` is the command `procession`."""

import sys

from .cli import main

# Guarded, because spawn and forkserver children import the parent's main module under another name.
if __name__ == "__main__":
    sys.exit(main())
