"""Which files the agent has seen, so that it cannot overwrite what it never read (engine.md 6.7). It reads no file."""

from __future__ import annotations

import os
import threading
from pathlib import Path


class ReadTracker:
    """The set of files read or written in a session, by resolved path. Any thread. Not restored after a restart."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def record(self, path: Path) -> None:
        """Note that the agent knows `path`."""
        with self._lock:
            self._seen.add(_identity(path))

    def knows(self, path: Path) -> bool:
        """Tell whether the agent has read or written `path`."""
        with self._lock:
            return _identity(path) in self._seen


def _identity(path: Path) -> str:
    # Path.resolve raises for a loop of links on some Python versions; realpath never does.
    return os.path.realpath(path)
