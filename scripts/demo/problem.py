"""What ends the demonstration early: one line for the person who watches, and a hint. It renders nothing."""

from __future__ import annotations


class Problem(Exception):
    """The demonstration cannot go on, or did not do what it promised."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
