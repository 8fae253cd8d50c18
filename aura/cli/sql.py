"""`aura sql`: read-only questions to the store, once or at a prompt (docs/sql.md). It chooses; it renders nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import closing

import click

from aura import limits
from aura.cli import sql_view as view
from aura.cli import streams
from aura.cli.options import RootOptions
from aura.errors import BadRequest
from aura.runtime import files
from aura.runtime.sql import End, Questions, Value, opened, split_statements

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_REAL = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")


@click.command(
    "sql",
    help="Ask the store in SQL. Nothing can be written. QUERY is one or several statements, - reads them from standard "
    "input. Without a QUERY, in a terminal, there is a prompt. docs/sql.md describes the views.",
)
@click.argument("query", required=False, metavar="[QUERY]")
@click.option("-f", "--file", "file", metavar="FILE", help="Read the statements from FILE (- for standard input).")
@click.option(
    "-p", "--param", "parameters", metavar="NAME=VALUE", multiple=True, help="Value of :NAME in the query, repeatable."
)
@click.option("--json", "shape", flag_value="json", help="Print one JSON object: columns, rows, truncated.")
@click.option("--ndjson", "shape", flag_value="ndjson", help="Print each row as a line of JSON, as it is found.")
@click.option("--csv", "shape", flag_value="csv", help="Print CSV with a head line, as it is found.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0, limits.SQL_ROWS_MAX_COUNT),
    default=limits.SQL_ROWS_COUNT,
    show_default=True,
    help="Rows of an answer at most; 0 for no limit.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.001, limits.SQL_TIMEOUT_MAX_MS / 1000),
    default=limits.SQL_TIMEOUT_MS / 1000,
    show_default=True,
    help="Time of a statement at most, until its rows are printed.",
)
@click.pass_obj
def command(
    root: RootOptions,
    query: str | None,
    file: str | None,
    parameters: tuple[str, ...],
    shape: view.Shape | None,
    limit: int,
    timeout: float,
) -> None:
    """Print the answers; each statement sees the store as it is when it begins."""
    values = dict(map(parse_parameter, parameters))
    settings = view.Settings(shape or "table", int(timeout * 1000), limit or None)
    if query is None and file is None and sys.stdin.isatty():
        _prompt(root, values, settings)
        return
    statements = split_statements(_read_text(query, file))
    if not statements:
        raise BadRequest("there is no statement", hint="Give a query, or ask `aura sql --help`.")
    if len(statements) > 1 and settings.shape != "table":
        raise BadRequest(
            f"{len(statements)} statements cannot be one answer in {settings.shape}",
            hint="Give one statement, or print tables.",
        )
    with opened(root.resolve_store_dir()) as questions:
        for number, statement in enumerate(statements):
            if number:
                streams.write_stdout("\n")
            answer(questions, statement, values, settings)


def answer(questions: Questions, statement: str, values: Mapping[str, Value], settings: view.Settings) -> None:
    """Ask one statement and print its answer; a note on standard error says when rows were left out."""
    printer = view.make_printer(settings.shape)
    asked = questions.ask(statement, values, timeout_ms=settings.timeout_ms, row_limit=settings.row_limit)
    with closing(asked) as parts:
        for part in parts:
            printer.take(part)
            if isinstance(part, End) and part.cut:
                streams.write_stderr(f"note: only the first {settings.row_limit} rows; --limit N shows more, 0 all\n")


def parse_parameter(text: str) -> tuple[str, Value]:
    """Return name and value of `NAME=VALUE`. What looks like a number is one. Raises `BadRequest`."""
    name, equals, value = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise BadRequest(f"{text!r} is not NAME=VALUE", hint="For example -p since=2026-01-01 for :since in the query.")
    if _INTEGER.fullmatch(value):
        return name, int(value)
    return name, float(value) if _REAL.fullmatch(value) else value


def _prompt(root: RootOptions, values: Mapping[str, Value], settings: view.Settings) -> None:
    from aura.cli.sql_prompt import converse  # the prompt's library costs more than a query

    if settings.shape != "table":
        raise BadRequest("there is no query", hint="The prompt prints tables. Give a query to get another shape.")
    with opened(root.resolve_store_dir()) as questions:
        converse(questions, lambda statement, given: answer(questions, statement, given, settings), values)


def _read_text(query: str | None, file: str | None) -> str:
    if query is not None and file is not None:
        raise BadRequest("there is a query and a file", hint="Give one of them.")
    name = "-" if query is None and file is None else "-" if query == "-" else file
    if name is None:
        assert query is not None
        return query
    data = files.read_input(name, limits.SQL_TEXT_MAX_BYTES)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"{name} is not UTF-8") from error
