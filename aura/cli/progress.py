"""A bar on standard error while much is worked through, where that is a terminal. It counts and decides nothing."""

from __future__ import annotations

import sys
import time

from aura import limits
from aura.cli import streams

_CLEAR_LINE = "\r\x1b[K"
_COLUMNS = 30


class Progress:
    """A bar of `length` units; none when that is 0 or nobody would see it."""

    def __init__(self, length: int) -> None:
        self._length = length if sys.stderr is not None and sys.stderr.isatty() else 0
        self._position = 0
        self._drawn_s = 0.0
        self._is_shown = False

    def advance(self, count: int) -> None:
        """Move on by `count` units. The bar is drawn a few times a second at most."""
        self._position = min(self._position + count, self._length)
        now = time.monotonic()
        if self._length == 0 or now - self._drawn_s < limits.PROGRESS_INTERVAL_MS / 1000:
            return
        self._drawn_s = now
        self._is_shown = True
        done = _COLUMNS * self._position // self._length
        bar = "#" * done + "-" * (_COLUMNS - done)
        streams.write_stderr(f"{_CLEAR_LINE}[{bar}] {100 * self._position // self._length}%")

    def hide(self) -> None:
        """Take the bar off its line, so that something else can be written there."""
        if self._is_shown:
            self._is_shown = False
            streams.write_stderr(_CLEAR_LINE)
