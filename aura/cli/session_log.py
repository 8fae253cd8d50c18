"""`aura session log`: every revision of a session, the newest first, and what it changed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from aura import limits
from aura.cli import streams
from aura.cli.options import RootOptions, json_option
from aura.cli.table import SHORT_REVISION_CHARS, format_rows, one_line, short_time
from aura.clock import format_time
from aura.jsontypes import JsonValue
from aura.runtime.history import LogEntry, opened

_HEAD = ("REVISION", "TIME", "REASON", "MESSAGES", "RUN", "CHANGED")
_RIGHT = frozenset((3,))


@click.command("log", help="List a session's revisions, the newest first, and what each changed.")
@click.argument("session_id", metavar="ID")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, limits.LISTED_MAX_COUNT),
    help="The newest N revisions only.  [default: all]",
)
@json_option
@click.pass_obj
def command(root: RootOptions, session_id: str, limit: int | None, as_json: bool) -> None:
    """Print the revisions."""
    with opened(root.resolve_store_dir()) as history:
        entries = history.log(session_id, limit)
    streams.write_stdout(streams.json_line(log_fields(session_id, entries)) if as_json else log_text(entries))


def log_fields(session_id: str, entries: Sequence[LogEntry]) -> dict[str, JsonValue]:
    """Return the object of `session log`."""
    return {"session_id": session_id, "revisions": [_fields(entry) for entry in entries]}


def log_text(entries: Sequence[LogEntry]) -> str:
    """Return the table of `session log`."""
    return format_rows([_HEAD, *map(_row, entries)], _RIGHT)


def _fields(entry: LogEntry) -> dict[str, JsonValue]:
    save = entry.save
    return {
        "n": save.n,
        "revision": save.sha256,
        "at": format_time(save.at_ms),
        "reason": save.reason,
        "run_id": save.run_id,
        "messages": save.messages,
        "dropped": entry.dropped,
        "added": entry.added,
        "changed": list(entry.changed),
    }


def _row(entry: LogEntry) -> tuple[str, ...]:
    save = entry.save
    return (
        save.sha256[:SHORT_REVISION_CHARS],
        short_time(save.at_ms),
        save.reason,
        str(save.messages),
        save.run_id or "-",
        one_line(", ".join(entry.changed)) or "only its time",
    )
