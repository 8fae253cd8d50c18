"""A message rendered for a terminal by rich. Only what prints to a terminal imports this module."""

from __future__ import annotations

import io
import shutil

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from aura.cli.message_view import call_texts, title_text
from aura.cli.table import clean_lines
from aura.runtime.history import Placed

_STYLES = {"user": "bold green", "assistant": "bold cyan", "tool": "yellow", "system": "magenta"}


class MarkdownView:
    """Renders messages to the width of the terminal, with the colors that it and `NO_COLOR` allow."""

    def __init__(self) -> None:
        self._buffer = io.StringIO()
        columns = shutil.get_terminal_size().columns
        self._console = Console(file=self._buffer, force_terminal=True, width=columns, markup=False, highlight=False)

    def text(self, placed: Placed, thinking: bool) -> str:
        """Return a message for the terminal; what it holds is shown without its control characters."""
        message = placed.message
        self._console.print(Rule(Text(title_text(placed), _STYLES[message.role]), align="left", style="dim"))
        if thinking and message.thinking:
            self._console.print(Padding(Text(_clean(message.thinking), "dim italic"), (0, 0, 1, 2)))
        if message.content:
            body = Text(_clean(message.content)) if message.role == "tool" else _markdown(message.content)
            self._console.print(Padding(body, (0, 0, 1, 0)))
        for call in call_texts(message):
            self._console.print(Text(f"call: {call}", "yellow"))
        if message.calls:
            self._console.print()
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text


def _markdown(text: str) -> Markdown:
    return Markdown(_clean(text), hyperlinks=False)  # a link shows where it leads


def _clean(text: str) -> str:
    return "\n".join(clean_lines(text))
