"""`aura runs`: runs, the newest first, of one session or of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import click

from aura import limits
from aura.cli import streams
from aura.cli.options import RootOptions, json_option
from aura.cli.since import since_option
from aura.cli.table import GAP, format_rows, one_line, short_time, shorten, width
from aura.jsontypes import JsonValue
from aura.runtime.history import Outcome, Run, RunEntry, RunQuery, State, opened
from aura.wire.automation import run_fields

_LIVE = ("accepted", "running", "finished")
_STATES = (*_LIVE, "persisted", "persist_failed", "lost")
_OUTCOMES = ("completed", "failed", "cancelled", "rejected", "blocked")
_HEAD = ("RUN", "SESSION", "STATE", "ACCEPTED", "TOOK", "CALLS", "WHAT")
_RIGHT = frozenset((4, 5))


@click.command("runs", help="List runs, the newest first.")
@click.option("--session", "session_id", metavar="ID", help="Only those of this session.")
@click.option(
    "--state",
    "states",
    metavar="STATE",
    type=click.Choice(("live", *_STATES, *_OUTCOMES)),
    multiple=True,
    help=f"Only those with this state or outcome, repeatable: {', '.join((*_STATES, *_OUTCOMES))}; live for all that "
    "have not settled.",
)
@since_option("Only runs that settled since then, or have not settled.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0, limits.LISTED_MAX_COUNT),
    default=limits.RUNS_LISTED_COUNT,
    show_default=True,
    help="Runs at most; 0 for all.",
)
@json_option
@click.pass_obj
def command(
    root: RootOptions,
    session_id: str | None,
    states: tuple[str, ...],
    since_ms: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """Print runs; a note on standard error says when there are more."""
    where = make_query(session_id, states, since_ms)
    with opened(root.resolve_store_dir()) as history:
        found = history.runs(where, limit + 1 if limit else None)
    entries, cut = (found[:limit], len(found) > limit) if limit else (found, False)
    if as_json:
        streams.write_stdout(streams.json_line(runs_fields(entries, cut)))
        return
    streams.write_stdout(runs_text(entries))
    if cut:
        streams.write_stderr(f"note: only the newest {limit} runs; --limit N shows more, 0 all\n")


def make_query(session_id: str | None, states: Sequence[str], since_ms: int | None) -> RunQuery:
    """Return which runs to list. `states` are states, outcomes, and `live`."""
    chosen = {*states, *(_LIVE if "live" in states else ())}
    return RunQuery(
        session_id=session_id,
        states=cast("frozenset[State]", frozenset(chosen & {*_STATES})),
        outcomes=cast("frozenset[Outcome]", frozenset(chosen & {*_OUTCOMES})),
        since_ms=since_ms,
    )


def runs_fields(entries: Sequence[RunEntry], cut: bool) -> dict[str, JsonValue]:
    """Return the object of `runs`: each run as the API has it, with the text that was submitted."""
    return {"runs": [run_fields(entry.run) | {"text": entry.text} for entry in entries], "truncated": cut}


def runs_text(entries: Sequence[RunEntry]) -> str:
    """Return the table of `runs`."""
    if not entries:
        return "no runs\n"
    return format_rows([_HEAD, *map(_row, entries)], _RIGHT)


def took_text(ms: int | None) -> str:
    """Return a duration for people: `850 ms`, `12.3 s`, `4 m 05 s`, `2 h 10 m`; `-` for None."""
    if ms is None:
        return "-"
    seconds = ms // 1000
    if ms < 1000:
        return f"{ms} ms"
    if seconds < 60:
        return f"{ms // 100 / 10} s"
    if seconds < 3600:
        return f"{seconds // 60} m {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} m"


def _row(entry: RunEntry) -> tuple[str, ...]:
    run = entry.run
    took_ms = run.settled_at_ms - run.accepted_at_ms if run.settled_at_ms is not None else None
    return (
        run.id,
        run.session_id,
        state_text(run),
        short_time(run.accepted_at_ms),
        took_text(took_ms),
        str(sum(run.stats.tool_calls.values())),
        _what(entry),
    )


def state_text(run: Run) -> str:
    """Return how a run ended, or its state while it has not; a save that failed is said beside it."""
    if run.state == "persist_failed":
        return f"{run.outcome}, not saved"
    return run.outcome if run.outcome is not None and run.state == "persisted" else run.state


def _what(entry: RunEntry) -> str:
    error = entry.run.error or entry.run.persist_error
    text = shorten(entry.text, limits.TITLE_MAX_COLUMNS)
    if error is None:
        return text
    room = max(0, limits.TITLE_MAX_COLUMNS - width(text))
    return f"{text}{GAP}({one_line(error.code)}: {shorten(error.message, limits.TITLE_MAX_COLUMNS + room)})"
