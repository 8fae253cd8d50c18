"""The timers of one stream (gateway.md 3.8): how long the first chunk, and silence after it, may take.

Pure: it is told the time. What bounds the whole request is the run's own deadline, not a timer of a stream.
"""

from __future__ import annotations

from aura import events as e

_FIRST = "the model provider sent nothing for {} s"
_SILENT = "nothing happened for {} s"


class ChatTimers:
    """Two timers, in ms; 0 switches one off. Heartbeats never count."""

    def __init__(self, now_ms: int, *, first_chunk_ms: int = 0, inactivity_ms: int = 0) -> None:
        self._begun_ms = now_ms
        self._first_chunk_ms = first_chunk_ms
        self._inactivity_ms = inactivity_ms
        self._active_ms: int | None = None
        self._running: set[str] = set()

    def saw_live(self, item: e.Transient, now_ms: int) -> None:
        """Note a live item: what a model or a tool does is activity, what this program says of itself is not."""
        if not isinstance(item, e.Spinner):
            self._active_ms = now_ms

    def saw(self, event: e.Event, now_ms: int) -> None:
        """Note a durable event. While a tool runs, silence is not counted."""
        match event:
            case e.ToolStarted():
                self._running.add(event.call_id)
            case e.ToolFinished():
                self._running.discard(event.call_id)
            case e.RunStarted() | e.SessionInfo() | e.McpStatus():
                return
        self._active_ms = now_ms

    def left_ms(self, now_ms: int) -> int | None:
        """Return in how many ms a timer expires, None when none is running."""
        limit_ms, since_ms = self._current()
        return max(0, since_ms + limit_ms - now_ms) if limit_ms else None

    def reason(self) -> str:
        """Return what the current timer has to say when it expires."""
        limit_ms, _ = self._current()
        return (_FIRST if self._active_ms is None else _SILENT).format(f"{limit_ms / 1000:g}")

    def _current(self) -> tuple[int, int]:
        if self._active_ms is None:
            return self._first_chunk_ms, self._begun_ms
        return (0 if self._running else self._inactivity_ms), self._active_ms
