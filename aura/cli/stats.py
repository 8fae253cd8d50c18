"""`aura stats`: what a person asks every morning. The text is for reading, `--json` for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import click

from aura import limits
from aura.cli import streams
from aura.cli.options import RootOptions, json_option
from aura.cli.paint import Paint, stdout_paint
from aura.cli.runs import took_text
from aura.cli.since import since_option
from aura.cli.table import format_rows, one_line, short_time, shorten
from aura.clock import format_time
from aura.jsontypes import JsonValue
from aura.runtime.history import Ended, Failure, ModelUse, RunNote, Stats, ToolUse, Waiting, opened

Fields = dict[str, JsonValue]


@click.command("stats", help="Show how runs ended, what failed, what waits for somebody, and what it cost.")
@since_option("Count what happened since then.", default="24h")
@json_option
@click.pass_obj
def command(root: RootOptions, since_ms: int, as_json: bool) -> None:
    """Print the figures of one moment."""
    with opened(root.resolve_store_dir()) as history:
        stats = history.stats(since_ms)
    if as_json:
        streams.write_stdout(streams.json_line(stats_fields(stats)))
    else:
        streams.write_stdout("\n".join(stats_parts(stats, stdout_paint())))


def stats_fields(stats: Stats) -> Fields:
    """Return the object of `stats`."""
    size = stats.size
    return {
        "since": format_time(stats.since_ms),
        "runs": [{"state": item.state, "outcome": item.outcome, "runs": item.runs} for item in stats.ended],
        "failures": [
            {"code": item.code, "runs": item.runs, "latest_at": format_time(item.latest_at_ms), "message": item.message}
            for item in stats.failures
        ],
        "lost": [_note_fields(note) for note in stats.lost],
        "live": [{**_note_fields(note), "held": note.held} for note in stats.live],
        "waiting": [_waiting_fields(item) for item in stats.waiting],
        "models": [
            {
                "provider": item.provider,
                "model": item.model,
                "calls": item.calls,
                "input_tokens": item.input_tokens,
                "output_tokens": item.output_tokens,
                "cost_usd": item.cost_usd,
            }
            for item in stats.models
        ],
        "tools": [
            {
                "name": item.name,
                "calls": item.calls,
                "errors": item.errors,
                "error_rate": round(item.errors / item.calls, 4),
                "mean_ms": item.mean_ms,
                "longest_ms": item.longest_ms,
            }
            for item in stats.tools
        ],
        "store": {
            "sessions": size.sessions,
            "runs": size.runs,
            "events": size.events,
            "messages": size.messages,
            "database_bytes": size.database_bytes,
            "wal_bytes": size.wal_bytes,
        },
    }


def stats_parts(stats: Stats, paint: Paint) -> Iterator[str]:
    """Yield the parts of the text; one that has nothing to say is left out, but for the first and the last."""
    yield paint.head(f"since {short_time(stats.since_ms)}") + f"\n{_ended_text(stats.ended)}\n"
    parts: list[tuple[str, Sequence[str], Sequence[Sequence[str]], frozenset[int]]] = [
        ("failures", ("CODE", "RUNS", "LATEST", "MESSAGE"), list(map(_failure_row, stats.failures)), frozenset((1,))),
        (_newest("lost runs", stats.lost), _NOTE_HEAD, list(map(_note_row, stats.lost)), frozenset()),
        (_newest("live runs", stats.live), (*_NOTE_HEAD, "STATE"), list(map(_live_row, stats.live)), frozenset()),
        ("waiting for somebody", _WAITING_HEAD, list(map(_waiting_row, stats.waiting)), frozenset()),
        ("models", _MODEL_HEAD, list(map(_model_row, stats.models)), frozenset(range(1, 5))),
        ("tools, the slowest first", _TOOL_HEAD, list(map(_tool_row, stats.tools)), frozenset(range(1, 6))),
    ]
    for title, head, rows, right in parts:
        if rows:
            cleaned = [[one_line(cell) for cell in row] for row in rows]
            yield f"{paint.head(title)}\n{format_rows([head, *cleaned], right)}"
    yield _size_text(stats, paint)


_LONG = limits.TITLE_MAX_COLUMNS * 2
_NOTE_HEAD = ("RUN", "SESSION", "ACCEPTED", "WHAT")
_WAITING_HEAD = ("INPUT", "SESSION", "SINCE", "QUESTION")
_MODEL_HEAD = ("MODEL", "CALLS", "INPUT", "OUTPUT", "COST")
_TOOL_HEAD = ("TOOL", "CALLS", "ERRORS", "ERROR RATE", "MEAN", "LONGEST")


def _ended_text(ended: Sequence[Ended]) -> str:
    counts: Counter[str] = Counter()
    for item in ended:
        settled = item.outcome if item.state in ("persisted", "persist_failed") else item.state
        counts[settled or item.state] += item.runs
    words = [f"{count} {name}" for name, count in counts.most_common()]
    unsaved = sum(item.runs for item in ended if item.state == "persist_failed")
    words += [f"{unsaved} of them not saved"] if unsaved else []
    total = counts.total()
    return f"{total} {'run' if total == 1 else 'runs'}{': ' if words else ''}{', '.join(words)}"


def _newest(title: str, notes: Sequence[RunNote]) -> str:
    return f"{title}, the newest {len(notes)}" if len(notes) == limits.STATS_LINES_COUNT else title


def _failure_row(failure: Failure) -> tuple[str, ...]:
    return failure.code, str(failure.runs), short_time(failure.latest_at_ms), shorten(failure.message, _LONG)


def _live_row(note: RunNote) -> tuple[str, ...]:
    return *_note_row(note), note.state if note.held else f"{note.state}, no server"


def _waiting_row(item: Waiting) -> tuple[str, ...]:
    question = f"{item.question} {item.detail}" if item.detail else item.question
    return item.input_id, item.session_id, short_time(item.created_at_ms), shorten(question, _LONG)


def _note_row(note: RunNote) -> tuple[str, ...]:
    return note.run_id, note.session_id, short_time(note.accepted_at_ms), shorten(note.text, limits.TITLE_MAX_COLUMNS)


def _note_fields(note: RunNote) -> Fields:
    return {
        "run_id": note.run_id,
        "session_id": note.session_id,
        "state": note.state,
        "accepted_at": format_time(note.accepted_at_ms),
        "text": note.text,
    }


def _waiting_fields(item: Waiting) -> Fields:
    return {
        "input_id": item.input_id,
        "session_id": item.session_id,
        "run_id": item.run_id,
        "kind": item.kind,
        "question": item.question,
        "detail": item.detail,
        "created_at": format_time(item.created_at_ms),
        "expires_at": None if item.expires_at_ms is None else format_time(item.expires_at_ms),
    }


def _model_row(use: ModelUse) -> tuple[str, ...]:
    cost = "-" if use.cost_usd is None else f"${use.cost_usd:,.4f}"
    return f"{use.provider}/{use.model}", f"{use.calls:,}", f"{use.input_tokens:,}", f"{use.output_tokens:,}", cost


def _tool_row(tool: ToolUse) -> tuple[str, ...]:
    rate = f"{100 * tool.errors / tool.calls:.1f}%"
    return tool.name, f"{tool.calls:,}", f"{tool.errors:,}", rate, took_text(tool.mean_ms), took_text(tool.longest_ms)


def _size_text(stats: Stats, paint: Paint) -> str:
    size = stats.size
    counts = f"{size.sessions:,} sessions, {size.runs:,} runs, {size.events:,} events, {size.messages:,} messages"
    return f"{paint.head('store')}\n{counts}; {_mebibytes(size.database_bytes)}, WAL {_mebibytes(size.wal_bytes)}\n"


def _mebibytes(count: int) -> str:
    return f"{count / (1024 * 1024):,.1f} MiB"
