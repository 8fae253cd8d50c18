"""How the demonstration looks: headings, remarks, one line per event, tables. It decides nothing and starts nothing.

It is the same on a terminal, in a pipe, without colour and in a narrow window; text of others is never read as markup.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aura_automation import Event
from aura_automation.errors import Json

INDENT = 2
TYPE_COLUMNS = 18
WORDS_MIN_COLUMNS = 24  # a window may be so narrow that wrapping must give way
STYLES = {
    "tool": "cyan",
    "message": "bold",
    "run": "magenta",
    "session": "green",
    "server": "magenta",
    "notice": "yellow",
}


class View:
    """Writes to standard output, problems to standard error. One thread."""

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # both are text files here
        self._out = Console(highlight=False, emoji=False, markup=False)
        self._err = Console(highlight=False, emoji=False, markup=False, stderr=True)

    def heading(self, text: str) -> None:
        """Begin a part."""
        self._out.print()
        self._out.print(Text(text, "bold"))

    def remark(self, text: str) -> None:
        """Say what happens and why it matters."""
        for line in self._wrapped(text, INDENT):
            self._out.print(Text(" " * INDENT + line, "dim"), soft_wrap=True)

    def fact(self, text: str) -> None:
        """Show something that may be copied: it is never cut or broken."""
        self._out.print(Text(" " * INDENT + text), soft_wrap=True)

    def verdict(self, text: str, *, good: bool) -> None:
        """Say how a check went."""
        mark = Text.assemble(" " * INDENT, ("✓ ", "bold green") if good else ("✗ ", "bold red"), text)
        self._out.print(mark, soft_wrap=True)

    def command(self, text: str) -> None:
        """Show a command or a query that can be repeated by hand."""
        self._out.print()
        for number, line in enumerate(text.split("\n")):
            self._out.print(Text(f"{' ' * INDENT}{'  ' if number else '$ '}{line}", "cyan"), soft_wrap=True)

    def output(self, text: str) -> None:
        """Show what a command printed."""
        for line in text.rstrip("\n").split("\n"):
            self.fact(line)

    def rows(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Show a table."""
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for name in head:
            numeric = all(isinstance(row[len(table.columns)], int | None) for row in rows)
            table.add_column(name, justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text("–" if value is None else str(value)) for value in row))
        self._out.print(Padding(table, (0, 0, 0, INDENT), expand=False))

    def fields(self, fields: Mapping[str, object]) -> None:
        """Show names and values."""
        width = max(map(len, fields))
        for name, value in fields.items():
            self._out.print(Text.assemble(f"{' ' * INDENT}", (f"{name:<{width}}  ", "dim"), str(value)), soft_wrap=True)

    def event(self, event: Event) -> None:
        """Show one durable event: on one line, except what people and models say, which is shown whole."""
        kind = event.type
        style = STYLES.get(kind.partition(".")[0], "dim")
        start = Text.assemble(f"{event.seq:>{INDENT + 2}}  ", (f"{kind:<{TYPE_COLUMNS}}  ", style))
        detail = _detail(kind, event.data)
        if not kind.startswith("message."):
            self._out.print(start + detail, no_wrap=True, overflow="ellipsis", crop=True)
            return
        for line in self._wrapped(detail.plain, len(start)):
            self._out.print(start + line, soft_wrap=True)
            start = Text(" " * len(start))

    def problem(self, message: str, hint: str | None) -> None:
        """Say on standard error what went wrong, and what can be done."""
        self._err.print(Text.assemble(("error: ", "bold red"), _one_line(message)), soft_wrap=True)
        if hint:
            self._err.print(Text.assemble(("hint: ", "bold"), _one_line(hint)), soft_wrap=True)

    def _wrapped(self, text: str, indent: int) -> list[str]:
        return textwrap.wrap(text, max(self._out.width - indent, WORDS_MIN_COLUMNS))


def _detail(kind: str, data: Mapping[str, Json]) -> Text:
    if kind == "tool.finished":
        style = "green" if data["status"] == "ok" else "red"
        text = str(data["error"] if data["status"] == "error" else data["result"])
        return Text.assemble(f"{data['name']} ", (f"{data['status']} ", style), _gist(str(data["name"]), text))
    return Text(_words(kind, data), "dim" if kind == "status" else "")


def _words(kind: str, data: Mapping[str, Json]) -> str:
    match kind:
        case "message.assistant":
            calls = data["tool_calls"]
            count = len(calls) if isinstance(calls, list) else 0
            return _one_line(str(data["content"])) or f"({count} tool {'call' if count == 1 else 'calls'})"
        case "message.user":
            return _one_line(str(data["content"]))
        case "tool.started":
            return f"{data['name']} {_argument(data['args'])}"
        case "session.persisted":
            return f"{data['reason']}: {data['messages']} messages, revision {str(data['revision'])[:12]}"
        case "status":
            window = f" of {data['tokens_max']}" if data["tokens_max"] else ""
            return f"model call {data['iteration']}, {data['tokens_used']}{window} tokens"
        case "server.started":
            return f"process {data['pid']}, version {data['version']}"
        case "notice":
            return _one_line(f"{data['level']}: {data['source']}: {data['message']}")
        case "run.started":
            return "the prompt is in the conversation"
        case _ if isinstance(run := data.get("run"), dict):
            return _run(run)
        case _:
            return json.dumps(dict(data), ensure_ascii=False)


def _run(run: Mapping[str, Json]) -> str:
    error = run["error"] or run["persist_error"]
    said = f": {error['code']}" if isinstance(error, dict) else ""
    return f"{run['request_id']} is {run['state']}" + (f", {run['outcome']}" if run["outcome"] else "") + said


def _argument(args: Json) -> str:
    if not isinstance(args, dict):
        return ""
    known = [args[name] for name in ("command", "file_path", "path") if name in args]
    return _one_line(str(known[0]) if known else json.dumps(args, ensure_ascii=False))


def _gist(tool: str, text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) <= 2 or tool == "Bash":
        return _one_line(" · ".join(lines[-2:]))
    return f"{len(lines)} lines"


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
