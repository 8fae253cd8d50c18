"""A text that remembers how it was written. It puts no variable anywhere: `interpolation` does."""

from __future__ import annotations

from collections.abc import Mapping


class Interpolated(str):
    """Text into which values of environment variables were put: it is the result, and it remembers what was written.

    Errors show what was written. `inserted` are the variables that were set, with their values.
    """

    written: str
    inserted: Mapping[str, str]

    def __new__(cls, value: str, written: str, inserted: Mapping[str, str]) -> Interpolated:
        """Make it of the result, the text as it was written, and the variables."""
        made = super().__new__(cls, value)
        made.written = written
        made.inserted = inserted
        return made

    def __repr__(self) -> str:
        return f"Interpolated({self.written!r})"
