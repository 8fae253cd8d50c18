"""Colors for a terminal, none for anything else. It decides where; what is colored is up to each command."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

_RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Paint:
    """Colors lines of text that holds no control character, if `on`."""

    on: bool

    def added(self, text: str) -> str:
        """Return `text` in green."""
        return self._colored(text, "32")

    def dropped(self, text: str) -> str:
        """Return `text` in red."""
        return self._colored(text, "31")

    def head(self, text: str) -> str:
        """Return `text` in bold."""
        return self._colored(text, "1")

    def place(self, text: str) -> str:
        """Return `text` in cyan."""
        return self._colored(text, "36")

    def _colored(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.on and text else text


def stdout_paint() -> Paint:
    """Return colors if standard output is a terminal that has some, and `NO_COLOR` is not set."""
    return Paint(is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def is_terminal() -> bool:
    """Tell whether somebody reads standard output in a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()
