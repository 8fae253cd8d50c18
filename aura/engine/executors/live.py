"""Shows a command's output while it runs: whole lines, joined to at most one event per interval (engine.md 6.5)."""

from __future__ import annotations

from collections.abc import Callable

from aura import limits


class LiveOutput:
    """Collects output and passes it on. What is superseded before its turn comes is dropped, oldest first.

    `now_ms` is any monotonic time. It belongs to one thread.
    """

    def __init__(self, show: Callable[[str], None], interval_ms: int = limits.OUTPUT_INTERVAL_MS) -> None:
        self._show = show
        self._interval_ms = interval_ms
        self._ready = b""
        self._parts: dict[str, bytes] = {}
        self._next_ms: int | None = None

    def feed(self, stream: str, chunk: bytes) -> None:
        """Add output of one stream. Lines of two streams are never mixed within a line."""
        text = (self._parts.get(stream, b"") + chunk)[-limits.OUTPUT_EVENT_MAX_BYTES :]
        lines, newline, rest = text.rpartition(b"\n")
        self._parts[stream] = rest
        self._ready = (self._ready + lines + newline)[-limits.OUTPUT_EVENT_MAX_BYTES :]

    def due_ms(self, now_ms: int) -> int | None:
        """Return in how many ms `tick` has something to show; None: not before more output comes."""
        if not self._ready:
            return None
        return max(0, (self._next_ms or now_ms) - now_ms)

    def tick(self, now_ms: int) -> None:
        """Show the lines collected so far, if the interval is over."""
        if self.due_ms(now_ms) == 0:
            self._next_ms = now_ms + self._interval_ms
            self._flush()

    def finish(self) -> None:
        """Show what is left, lines without an end included."""
        self._ready += b"".join(self._parts.values())
        self._parts.clear()
        if self._ready:
            self._flush()

    def _flush(self) -> None:
        text, self._ready = self._ready, b""
        self._show(text.decode("utf-8", "replace").removesuffix("\n"))
