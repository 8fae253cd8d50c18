"""`aura session list`. It imports no more than it needs: people and scripts ask it all day (DESIGN.md section 8)."""

from __future__ import annotations

from collections.abc import Sequence

import click

from aura import limits
from aura.cli import streams
from aura.cli.options import RootOptions, json_option
from aura.cli.table import SHORT_REVISION_CHARS, format_rows, short_time, shorten
from aura.jsontypes import JsonValue
from aura.runtime.listing import Summary, list_sessions
from aura.wire.summaries import summary_fields

_HEAD = ("ID", "TITLE", "MESSAGES", "UPDATED", "REVISION", "STATE")
_RIGHT = frozenset((2,))


@click.command("list", help="List all sessions, the most recently updated first.")
@json_option
@click.pass_obj
def command(root: RootOptions, as_json: bool) -> None:
    """Print all sessions."""
    sessions = list_sessions(root.resolve_store_dir())
    streams.write_stdout(streams.json_line(list_fields(sessions)) if as_json else list_text(sessions))


def list_fields(sessions: Sequence[Summary]) -> dict[str, JsonValue]:
    """Return the object of `session list`. Sessions of a database cannot be half readable, so nothing warns."""
    return {"sessions": [summary_fields(session) for session in sessions], "warnings": []}


def list_text(sessions: Sequence[Summary]) -> str:
    """Return the table of `session list`."""
    if not sessions:
        return "no sessions\n"
    return format_rows([_HEAD, *map(_row, sessions)], _RIGHT)


def _row(session: Summary) -> tuple[str, ...]:
    state = ["frozen"] if session.frozen else []
    state += [f"fork of {session.parent.id}"] if session.parent else []
    return (
        session.id,
        shorten(session.title, limits.TITLE_MAX_COLUMNS),
        str(session.messages),
        short_time(session.updated_at_ms),
        session.revision[:SHORT_REVISION_CHARS],
        ", ".join(state),
    )
