"""`python -m procession.runtime.amx DTYPE`: the process in which `probe_apart` probes; prints one line of JSON."""

import sys

from .ran import probe

if __name__ == "__main__":
    print(probe(sys.argv[1] if len(sys.argv) > 1 else "float32").to_json())
