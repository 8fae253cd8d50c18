"""The line that `aura search` shows while it fills the index: in a terminal only, and gone however the command ends."""

from __future__ import annotations

import io
import sys

import pytest

from aura.cli.search import _Progress


class Screen(io.TextIOWrapper):
    """Standard error as a terminal, or as a pipe."""

    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


def test_nothing_stays_of_the_line_after_ctrl_c(monkeypatch):
    screen = Screen(terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    with pytest.raises(KeyboardInterrupt), _Progress() as progress:
        progress.show(1500)
        raise KeyboardInterrupt
    assert screen.text() == "\r\x1b[Kindexing new messages: 1,500 left\r\x1b[K"


def test_a_pipe_gets_no_progress(monkeypatch):
    screen = Screen(terminal=False)
    monkeypatch.setattr(sys, "stderr", screen)
    with _Progress() as progress:
        progress.show(1500)
    assert screen.text() == ""
