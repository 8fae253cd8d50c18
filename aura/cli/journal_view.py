"""How the answers of `aura journal` look: the objects of `--json`, and text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aura.cli.table import SHORT_REVISION_CHARS, format_rows, one_line, short_time
from aura.clock import format_time
from aura.jsontypes import JsonValue

if TYPE_CHECKING:
    from aura.runtime.journal import ExportedJournal, JournalStats, RunStats, Verified
    from aura.runtime.journal_import import JournalImport


def exported_fields(done: ExportedJournal) -> dict[str, JsonValue]:
    """Return the object of `journal export`."""
    return {
        "session_id": done.session_id,
        "path": done.path,
        "events": done.events,
        "last_seq": done.last_seq,
        "sha256": done.sha256,
        "written": done.written,
    }


def exported_text(done: ExportedJournal) -> str:
    """Return the line of `journal export`."""
    where = "standard output" if done.path == "-" else one_line(done.path)
    verb = "wrote" if done.written else "unchanged:"
    return (
        f"{verb} {where}, {_events(done.events)} up to {done.last_seq}, sha256 {done.sha256[:SHORT_REVISION_CHARS]}\n"
    )


def imported_fields(done: JournalImport) -> dict[str, JsonValue]:
    """Return the object of `journal import`."""
    return {
        "session_id": done.session_id,
        "events": done.events,
        "last_seq": done.last_seq,
        "truncated": done.truncated,
        "warnings": list(done.warnings),
    }


def imported_text(done: JournalImport) -> str:
    """Return the line of `journal import`."""
    return f"imported {_events(done.events)} into {done.session_id}\n"


def verified_fields(found: Sequence[Verified]) -> dict[str, JsonValue]:
    """Return the object of `journal verify`."""
    return {"sessions": [_one_verified(item) for item in found], "ok": not any(item.problems for item in found)}


def verified_text(found: Sequence[Verified]) -> str:
    """Return the lines of `journal verify`; the hash and seq of a good journal are in the form that --expect takes."""
    return "".join(map(_verified_lines, found)) if found else "no sessions\n"


def stats_fields(stats: JournalStats) -> dict[str, JsonValue]:
    """Return the object of `journal stats`."""
    types: list[JsonValue] = [{"type": t.type, "events": t.events, "bytes": t.size_bytes} for t in stats.types]
    return {
        "session_id": stats.session_id,
        "events": stats.events,
        "bytes": stats.size_bytes,
        "first_seq": stats.first_seq,
        "last_seq": stats.last_seq,
        "first_at": _time(stats.first_at_ms),
        "last_at": _time(stats.last_at_ms),
        "types": types,
        "runs": [_run_fields(run) for run in stats.runs],
    }


def stats_text(stats: JournalStats) -> str:
    """Return the tables of `journal stats`."""
    if not stats.events or stats.first_at_ms is None or stats.last_at_ms is None:
        return f"{stats.session_id}: no events\n"
    times = f"{short_time(stats.first_at_ms)} to {short_time(stats.last_at_ms)}"
    head = f"{stats.session_id}: {_events(stats.events)}, {stats.size_bytes} bytes, {times}\n\n"
    types = [("TYPE", "EVENTS", "BYTES"), *((t.type, str(t.events), str(t.size_bytes)) for t in stats.types)]
    runs = [("RUN", "STATE", "EVENTS", "BYTES", "FROM", "TO", "BEGAN"), *map(_run_row, stats.runs)]
    return head + format_rows(types, frozenset((1, 2))) + "\n" + format_rows(runs, frozenset((2, 3, 4, 5)))


def _one_verified(found: Verified) -> dict[str, JsonValue]:
    state = found.state
    return {
        "session_id": state.session_id,
        "ok": not found.problems,
        "events": found.events,
        "bytes": found.size_bytes,
        "sha256": found.sha256,
        "first_seq": state.first_seq,
        "last_seq": state.last_seq,
        "head": state.head.hex(),
        "start": {"seq": state.start.seq, "sha256": state.start.sha256.hex()},
        "covered": state.covered,
        "expected_seq": found.expected.seq if found.expected is not None else None,
        "problems": [{"seq": p.seq, "fault": p.fault, "message": p.message} for p in found.problems],
    }


def _verified_lines(found: Verified) -> str:
    state = found.state
    if found.problems:
        lines = [f"{state.session_id}: NOT as it was written"]
        return "\n  ".join([*lines, *(problem.message for problem in found.problems)]) + "\n"
    lines = [f"{state.session_id}: {_events(found.events)} as written, head {state.head.hex()}@{state.last_seq}"]
    if found.expected is not None:
        lines.append(f"the expected hash is that of event {found.expected.seq}")
    if not state.covered:
        lines.append(f"events below {state.first_seq} were pruned without their hash: that event is taken on trust")
    return "\n  ".join(lines) + "\n"


def _run_fields(run: RunStats) -> dict[str, JsonValue]:
    return {
        "run_id": run.run_id,
        "state": run.state,
        "outcome": run.outcome,
        "events": run.events,
        "bytes": run.size_bytes,
        "first_seq": run.first_seq,
        "last_seq": run.last_seq,
        "first_at": format_time(run.first_at_ms),
        "last_at": format_time(run.last_at_ms),
    }


def _run_row(run: RunStats) -> tuple[str, ...]:
    state = "" if run.state is None else run.state if run.outcome is None else f"{run.state} {run.outcome}"
    counts = (str(run.events), str(run.size_bytes), str(run.first_seq), str(run.last_seq))
    return (run.run_id or "outside of runs", state, *counts, short_time(run.first_at_ms))


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_time(at_ms)
