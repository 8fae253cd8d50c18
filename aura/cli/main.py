"""The program's entry point. It only sees to it that whatever happens ends in an exit code, even while it loads."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

EXIT_INTERRUPTED = 130  # 128 + SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (the process's own by default) and return its exit code (interfaces.md section 3)."""
    args = list(sys.argv[1:] if argv is None else argv)
    # Modules make much and drop little: looking for garbage while they load costs a tenth of the start, and finds none.
    # `LazyCommand.load` turns it on again.
    gc.disable()
    try:
        from aura.cli.errors import guarded
        from aura.cli.root import invoke

        return guarded(lambda: invoke(args), args)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
