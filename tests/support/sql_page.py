"""Reads docs/sql.md: its views and its questions. `python -m tests.support.sql_page` writes what is made from them:
the answers on the page itself, and docs/datasette.yaml."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from aura.cli.sql import parse_parameter
from aura.cli.sql_view import table_text
from aura.runtime.sql import Head, Questions, Row, Rows, Value, opened
from tests.support.sql_store import make_sql_store

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "sql.md"
DATASETTE = CHECKOUT / "docs" / "datasette.yaml"

TABLES = (
    *("session", "prompt", "chain", "message", "revision", "run", "request", "event", "input", "tool_call", "usage"),
    *("journal_anchor", "removal"),
    *("message_search", "message_search_config", "message_search_data", "message_search_docsize"),
    *("message_search_idx", "message_search_mark"),
)

_VIEW = re.compile(r"^### (v_\w+)\n\n(.+?)\n\n\| column \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
_COLUMN = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
_QUESTION = re.compile(
    r"^### (\d+)\. ([^\n]+)\n\n(?:With `-p ([^`\n]+)`:\n\n)?"
    r"```sql\n((?s:.+?))```\n(?:\n```text\n((?s:.+?))```\n)?",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class DescribedView:
    """A view as the page describes it: column to meaning, in the page's order."""

    name: str
    description: str
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """One question, its statement, the parameter of its example, and the answer that the page shows."""

    number: int
    title: str
    parameters: Mapping[str, Value]
    sql: str
    answer: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a store said."""

    columns: tuple[str, ...]
    rows: Sequence[Row]


def read_views(text: str | None = None) -> list[DescribedView]:
    """Return the views that the page describes."""
    return [
        DescribedView(name, description, dict(_COLUMN.findall(table)))
        for name, description, table in _VIEW.findall(PAGE.read_text() if text is None else text)
    ]


def read_questions(text: str | None = None) -> list[Question]:
    """Return the questions of the page, in order."""
    return [
        Question(int(number), title, dict([parse_parameter(parameter)]) if parameter else {}, sql, answer)
        for number, title, parameter, sql, answer in _QUESTION.findall(PAGE.read_text() if text is None else text)
    ]


def ask(questions: Questions, sql: str, parameters: Mapping[str, Value]) -> Answer:
    """Ask a statement as `aura sql` does."""
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    for part in questions.ask(sql, parameters, timeout_ms=30_000, row_limit=None):
        match part:
            case Head():
                columns = part.columns
            case Rows():
                rows += part.rows
    return Answer(columns, rows)


def filled(text: str, questions: Questions) -> str:
    """Return the page with the answers that the store gives."""

    def fill(match: re.Match[str]) -> str:
        (question,) = read_questions(match[0])
        answer = ask(questions, question.sql, question.parameters)
        given = f"With `-p {match[3]}`:\n\n" if match[3] else ""
        table = table_text(answer.columns, answer.rows, None)
        return f"### {match[1]}. {match[2]}\n\n{given}```sql\n{match[4]}```\n\n```text\n{table}```\n"

    return _QUESTION.sub(fill, text)


def datasette_metadata(text: str | None = None) -> str:
    """Return the text of docs/datasette.yaml."""
    tables: dict[str, object] = {name: {"hidden": True} for name in TABLES}
    for view in read_views(text):
        columns = {name: meaning.replace("`", "") for name, meaning in view.columns.items()}
        tables[view.name] = {"description": view.description, "columns": columns}
    queries = {
        f"q{question.number:02}": {"title": question.title, "sql": question.sql} for question in read_questions(text)
    }
    database = {
        "description": "Sessions, runs and events of aura. Times are UTC.",
        "tables": tables,
        "queries": queries,
    }
    head = "# Made from docs/sql.md by `python -m tests.support.sql_page`. For the database's own name, aura.db.\n"
    fields = {"title": "aura", "databases": {"aura": database}}
    return head + yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=110)


def main() -> None:
    """Write the answers on the page, and docs/datasette.yaml."""
    with tempfile.TemporaryDirectory() as directory:
        make_sql_store(Path(directory))
        with opened(Path(directory)) as questions:
            PAGE.write_text(filled(PAGE.read_text(), questions))
    DATASETTE.write_text(datasette_metadata())


if __name__ == "__main__":
    main()
