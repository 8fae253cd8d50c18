"""What a turn shows to those who watch live: what it waits for, and pieces of the answer. Nothing here is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aura import events as e
from aura.engine.lane import Lane
from aura.engine.providers.base import OnDelta, ProviderError


class Waiting:
    """Says what a turn waits for, to those who watch live; "" when it waits no longer (engine.md, spinner)."""

    def __init__(self, lane: Lane, model: str) -> None:
        self._lane = lane
        self._model = model
        self._is_shown = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it while the block waits for the first piece of an answer."""
        self._show(f"waiting for {self._model}")
        try:
            yield
        finally:
            self.hide()

    def for_retry(self, number: int, error: ProviderError, delay_ms: int) -> None:
        """Show why the model is asked again, and when."""
        self._show(f"{error.kind}: try {number} in {delay_ms / 1000:.1f} s")

    def hide(self) -> None:
        """Show nothing any more."""
        if self._is_shown:
            self._is_shown = False
            self._lane.transient(e.Spinner(""))

    def _show(self, text: str) -> None:
        self._is_shown = True
        self._lane.transient(e.Spinner(text))


def show_deltas(lane: Lane, message_id: str, waiting: Waiting) -> OnDelta:
    """Return what shows each piece of a model's answer; the first one ends the waiting."""
    offsets = {False: 0, True: 0}

    def on_delta(text: str, thinking: bool) -> None:
        waiting.hide()
        lane.transient(e.Delta(message_id, offsets[thinking], text, thinking))
        offsets[thinking] += len(text)

    return on_delta
