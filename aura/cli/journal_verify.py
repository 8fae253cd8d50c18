"""`aura journal verify`: recomputes hash chains. Exit code 1 when a journal is not as it was written."""

from __future__ import annotations

import click

from aura.cli import journal_view as view
from aura.cli import streams
from aura.cli.journal_options import Noted, expected_option
from aura.cli.options import RootOptions, json_option
from aura.runtime.journal import Journals
from aura.runtime.listing import list_sessions


@click.command(
    "verify",
    help="Recompute the hash chain of each session's journal, and print its head to note down elsewhere. "
    "Exit code 1 if a journal is not as it was written.",
)
@click.argument("session_ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "all_sessions", is_flag=True, help="All sessions.")
@expected_option
@json_option
@click.pass_obj
def command(
    root: RootOptions, session_ids: tuple[str, ...], all_sessions: bool, noted: Noted | None, as_json: bool
) -> None:
    """Verify journals one after another, and print what was found."""
    if bool(session_ids) == all_sessions:
        raise click.UsageError("name sessions, or --all of them")
    if noted is not None and len(session_ids) != 1:
        raise click.UsageError("--expect is the head of one session: name that one")
    directory = root.resolve_store_dir()
    ids = [session.id for session in list_sessions(directory)] if all_sessions else session_ids
    journals = Journals(directory)
    expected = (noted.sha256, noted.seq) if noted is not None else (None, None)
    found = [journals.verify(session_id, *expected) for session_id in ids]
    streams.write_stdout(streams.json_line(view.verified_fields(found)) if as_json else view.verified_text(found))
    if any(item.problems for item in found):
        raise click.exceptions.Exit(1)
