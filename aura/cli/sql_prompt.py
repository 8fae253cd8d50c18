"""The prompt of `aura sql`: lines to statements, with history and completion. It runs nothing itself.

Imported only for a person at a terminal: its library loads asyncio, which no other offline command pays for.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

from aura.cli import streams
from aura.cli.errors import error_text
from aura.cli.table import format_rows
from aura.errors import AuraError
from aura.runtime.sql import Questions, Value, View, is_complete, split_statements

Answer = Callable[[str, Mapping[str, Value]], None]

KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", "JOIN", "LEFT JOIN", "USING", "ON", "AS"),
    *("AND", "OR", "NOT", "IN", "IS NULL", "BETWEEN", "LIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT"),
    *("DESC", "WITH", "OVER", "PARTITION BY", "UNION ALL", "EXISTS", "EXPLAIN QUERY PLAN", "count(*)", "sum(", "avg("),
    *("min(", "max(", "round(", "coalesce(", "substr(", "date(", "strftime(", "json_extract("),
)
COMMANDS: Mapping[str, str] = {
    ".help": "what can be typed here",
    ".views": "the public views and their columns",
    ".schema NAME": "columns of a view or table",
    ".quit": "leave; so does Ctrl-D",
}
_GREETING = "Ask in SQL; a statement ends with ; and nothing can be written. .help says more.\n"
_AFTER_FROM = re.compile(r"\b(from|join)\s+\w*$", re.IGNORECASE)


def converse(
    questions: Questions,
    answer: Answer,
    values: Mapping[str, Value],
    *,
    history: History | None = None,
    keyboard: Input | None = None,
    screen: Output | None = None,
) -> None:
    """Answer statements until the person leaves. An error ends one statement, Ctrl-C what is typed or what runs.

    `keyboard` and `screen` are the terminal's by default, `history` is the person's file.
    """
    session: PromptSession[str] = PromptSession(
        message="aura> ",
        prompt_continuation="  ... ",
        multiline=True,
        key_bindings=_bindings(),
        completer=SqlCompleter(questions.views),
        complete_while_typing=False,
        history=history or open_history(),
        input=keyboard,
        output=screen,
    )
    streams.write_stdout(_GREETING)
    while True:
        try:
            text = session.prompt().strip()
            if text.rstrip(";") in (".quit", ".exit"):
                return
            _serve(questions, answer, values, text)
        except KeyboardInterrupt:
            streams.write_stderr("stopped\n")
        except EOFError:
            return
        except AuraError as error:
            streams.write_stderr(error_text(error))


def open_history() -> History:
    """Return the person's history of statements, in a file that only they can read; in memory where there is none."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    path = Path(state) / "aura" / "sql_history"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def is_finished(text: str) -> bool:
    """Tell whether Enter sends `text`: a whole statement, a dot command, or nothing."""
    stripped = text.strip()
    return not stripped or stripped.startswith(".") or is_complete(stripped)


class SqlCompleter(Completer):
    """Completes views, the columns of the views that are named, keywords, and dot commands."""

    def __init__(self, views: tuple[View, ...]) -> None:
        self._views = views

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may stand at the cursor."""
        before = document.text_before_cursor
        word = re.findall(r"\.?\w*$" if _is_command(before) else r"\w*$", before)[0]
        for candidate in dict.fromkeys(self._candidates(before, document.text)):
            if candidate.lower().startswith(word.lower()):
                yield Completion(candidate, start_position=-len(word))

    def _candidates(self, before: str, text: str) -> Iterator[str]:
        names = [view.name for view in self._views]
        if _is_command(before):
            yield from names if before.lstrip().startswith(".schema ") else [name.split()[0] for name in COMMANDS]
            return
        if _AFTER_FROM.search(before):
            yield from names
            return
        words = set(re.findall(r"\w+", text.lower()))
        used = [view for view in self._views if view.name in words] or self._views
        for view in used:
            yield from view.columns
        yield from names
        yield from KEYWORDS


def _is_command(before: str) -> bool:
    return before.lstrip().startswith(".")


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _serve(questions: Questions, answer: Answer, values: Mapping[str, Value], text: str) -> None:
    words = text.rstrip(";").split()
    match words:
        case [".help"]:
            streams.write_stdout(format_rows(list(COMMANDS.items())))
        case [".views"]:
            streams.write_stdout(format_rows([(view.name, ", ".join(view.columns)) for view in questions.views]))
        case [".schema", name]:
            answer("SELECT name, type FROM pragma_table_info(:name)", {"name": name})
        case [first, *_] if first.startswith("."):
            streams.write_stderr(f"there is no {first}; .help lists what there is\n")
        case _:
            for statement in split_statements(text):
                began = time.monotonic()
                answer(statement, values)
                streams.write_stderr(f"({(time.monotonic() - began) * 1000:.0f} ms)\n")
