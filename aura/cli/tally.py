"""The end of a command over many things: the summary on standard error, and the failure that makes the exit code."""

from __future__ import annotations

from collections import Counter

from aura.cli import streams
from aura.errors import AuraError


class Tally:
    """Counts how things ended."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: AuraError | None = None

    def add(self, verdict: str, error: AuraError | None) -> None:
        """Count one thing by its verdict; the first error gives the command's code."""
        self._counts[verdict] += 1
        self._first = self._first or error

    def finish(self, things: str, as_json: bool) -> None:
        """Say the summary. Raises an error of the first failure's code when anything failed."""
        total = sum(self._counts.values())
        summary = ", ".join(f"{count} {verdict}" for verdict, count in self._counts.items()) or "nothing to do"
        if self._first is not None:
            failed = self._counts["failed"]
            raise type(self._first)(f"{failed} of {total} {things} failed ({summary})", hint="The lines say why.")
        if not as_json:
            streams.write_stderr(f"{summary}\n")
