"""`aura session show`, `fork` and `freeze` (contract.md, `aura session`; interfaces.md 3 and 9).

Each command is one verb of `aura.runtime.library`, and one answer. Errors are raised, not printed.
"""

from __future__ import annotations

import click

from aura.cli import session_view as view
from aura.cli import streams
from aura.cli.options import RootOptions, json_option
from aura.cli.session_options import expect_option, open_library, revision_option
from aura.wire.summaries import summary_fields


@click.command("show", help="Show one session.")
@click.argument("session_id", metavar="ID")
@revision_option
@json_option
@click.pass_obj
def show_command(root: RootOptions, session_id: str, revision: str | None, as_json: bool) -> None:
    """Print one session's Summary, and for people what the store knows beyond it."""
    library = open_library(root)
    if as_json:
        fields = summary_fields(library.get_session(session_id, revision))
        streams.write_stdout(streams.json_line(fields))
    else:
        streams.write_stdout(view.details_text(library.get_details(session_id, revision)))


@click.command("fork", help="Make a new session from PARENT, which is only read.")
@click.argument("parent_id", metavar="PARENT")
@click.option("--id", "child_id", metavar="ID", required=True, help="Id of the new session.")
@click.option("--title", metavar="TEXT", help="Title of the new session.  [default: the parent's]")
@expect_option
@revision_option
@json_option
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
    done = open_library(root).fork(parent_id, child_id, title=title, expect_revision=expect_revision, revision=revision)
    streams.write_stdout(streams.json_line(view.forked_fields(done)) if as_json else view.forked_text(done))


@click.command("freeze", help="Freeze a session for ever; it can still be read and forked.")
@click.argument("session_id", metavar="ID")
@expect_option
@json_option
@click.pass_obj
def freeze_command(root: RootOptions, session_id: str, expect_revision: str | None, as_json: bool) -> None:
    """Freeze a session; again, it changes nothing."""
    done = open_library(root).freeze(session_id, expect_revision=expect_revision)
    streams.write_stdout(streams.json_line(view.frozen_fields(done)) if as_json else view.frozen_text(done))
