"""`python -m aura`: the same program as the console script `aura`."""

from __future__ import annotations

import sys

from aura.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
