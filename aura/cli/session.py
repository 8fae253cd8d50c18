"""`aura session`: stored sessions without a server (contract.md, `aura session`; interfaces.md 3, 4, 9 and 11).

Each command is one verb of `aura.runtime.library`, and one answer. Errors are raised, not printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from aura.cli import session_view as view
from aura.cli import streams
from aura.cli.options import RootOptions
from aura.errors import BadRequest, ConfigInvalid
from aura.runtime.library import Library
from aura.wire.automation import summary_fields

F = TypeVar("F", bound=Callable[..., Any])


def _json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def _revision_option(command: F) -> F:
    text = "An older revision: the beginning of its SHA-256.  [default: the newest]"
    return click.option("--revision", metavar="PREFIX", help=text)(command)


def _expect_option(command: F) -> F:
    text = "Fail with revision_mismatch unless the session is at this revision."
    return click.option("--expect-revision", metavar="SHA256", help=text)(command)


@click.group("session", help="Stored sessions: list, show, import, export, fork, freeze. No server is needed.")
def command() -> None:
    """Group the commands; there is nothing to do before them."""


@command.command("list", help="List all sessions, the most recently updated first.")
@_json_option
@click.pass_obj
def list_command(root: RootOptions, as_json: bool) -> None:
    """Print all sessions."""
    sessions = _library(root).list_sessions()
    streams.write_stdout(streams.json_line(view.list_fields(sessions)) if as_json else view.list_text(sessions))


@command.command("show", help="Show one session.")
@click.argument("session_id", metavar="ID")
@_revision_option
@_json_option
@click.pass_obj
def show_command(root: RootOptions, session_id: str, revision: str | None, as_json: bool) -> None:
    """Print one session's Summary, and for people what the store knows beyond it."""
    library = _library(root)
    if as_json:
        fields = summary_fields(library.get_session(session_id, revision))
        streams.write_stdout(streams.json_line(fields))
    else:
        streams.write_stdout(view.details_text(library.get_details(session_id, revision)))


@command.command("import", help="Store the session document in FILE (- for standard input).")
@click.argument("file", metavar="FILE")
@click.option("--id", "session_id", metavar="ID", help="Store it under this id.  [default: the document's own]")
@click.option("--freeze", is_flag=True, help="Freeze the stored session, for ever.")
@_json_option
@click.pass_obj
def import_command(root: RootOptions, file: str, session_id: str | None, freeze: bool, as_json: bool) -> None:
    """Store a document; the same one again changes nothing."""
    done = _library(root).import_file(file, session_id=session_id, freeze=freeze)
    streams.write_stdout(streams.json_line(view.imported_fields(done)) if as_json else view.imported_text(done))


@command.command("export", help="Write a session's bytes, whose SHA-256 is its revision, to a file.")
@click.argument("session_id", metavar="ID")
@click.option(
    "--output",
    metavar="FILE",
    required=True,
    help="The file to make, or - for standard output; the result then goes to standard error.",
)
@_revision_option
@_json_option
@click.pass_obj
def export_command(root: RootOptions, session_id: str, output: str, revision: str | None, as_json: bool) -> None:
    """Write a session's canonical bytes."""
    library = _library(root)
    if output == "-":
        done = library.export_stream(session_id, streams.write_stdout, revision)
    else:
        done = library.export_file(session_id, output, revision)
    answer = streams.json_line(view.exported_fields(done)) if as_json else view.exported_text(done)
    if output == "-":
        streams.write_stderr(answer)
    else:
        streams.write_stdout(answer)


@command.command("fork", help="Make a new session from PARENT, which is only read.")
@click.argument("parent_id", metavar="PARENT")
@click.option("--id", "child_id", metavar="ID", required=True, help="Id of the new session.")
@click.option("--title", metavar="TEXT", help="Title of the new session.  [default: the parent's]")
@_expect_option
@_revision_option
@_json_option
@click.pass_obj
def fork_command(
    root: RootOptions,
    parent_id: str,
    child_id: str,
    title: str | None,
    expect_revision: str | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Fork a session; the same fork again is returned as stored."""
    done = _library(root).fork(parent_id, child_id, title=title, expect_revision=expect_revision, revision=revision)
    streams.write_stdout(streams.json_line(view.forked_fields(done)) if as_json else view.forked_text(done))


@command.command("freeze", help="Freeze a session for ever; it can still be read and forked.")
@click.argument("session_id", metavar="ID")
@_expect_option
@_json_option
@click.pass_obj
def freeze_command(root: RootOptions, session_id: str, expect_revision: str | None, as_json: bool) -> None:
    """Freeze a session; again, it changes nothing."""
    done = _library(root).freeze(session_id, expect_revision=expect_revision)
    streams.write_stdout(streams.json_line(view.frozen_fields(done)) if as_json else view.frozen_text(done))


def _library(root: RootOptions) -> Library:
    try:
        return Library(root.resolve_homes().store_dir)
    except (
        ConfigInvalid
    ) as error:  # for these commands a home is an argument like others: contract.md lists no such code
        raise BadRequest(error.message, hint=error.hint) from error
