"""What `aura store` prints: JSON objects, the same for people, and a line of progress on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from aura import limits
from aura.cli import streams
from aura.cli.table import format_rows, one_line
from aura.jsontypes import JsonValue
from aura.runtime.care import Backup, CheckReport, Facts, Finding, PruneReport, StoreStats, Vacuumed

Fields = dict[str, JsonValue]

_UNITS = ("B", "kB", "MB", "GB", "TB")


class Meter:
    """A line on standard error that says how far a verb is, if a person is there to see it. It ends without a trace."""

    def __init__(self) -> None:
        self._visible = sys.stderr is not None and sys.stderr.isatty()
        self._next_s = time.monotonic() + limits.METER_FIRST_MS / 1000
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            streams.write_stderr("\r\x1b[K")

    def show(self, what: str, done: int, total: int) -> None:
        """Say how far `what` is."""
        if not self._visible or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + limits.METER_INTERVAL_MS / 1000
        self._shown = True
        streams.write_stderr(f"\r\x1b[K{one_line(what)} {100 * done // max(total, 1)} %")


def check_fields(report: CheckReport, quick: bool) -> Fields:
    """Return the object of `store check`."""
    return {
        "clean": report.clean,
        "quick": quick,
        "findings": [_finding_fields(finding) for finding in report.findings],
        "finding_count": report.finding_count,
        "repaired": list(report.repaired),
        "checked": dict(report.checked),
        "skipped": [{"what": item.what, "why": item.why} for item in report.skipped],
        "facts": _facts_fields(report.facts),
    }


def check_text(report: CheckReport) -> str:
    """Return what `store check` says."""
    lines = [f"repaired: {one_line(text)}" for text in report.repaired]
    if report.findings:
        lines.append(format_rows([("CODE", "SESSION", "WHAT"), *map(_finding_row, report.findings)]).rstrip("\n"))
    if report.finding_count > len(report.findings):
        lines.append(f"and {report.finding_count - len(report.findings)} more")
    lines += [f"left out: {item.what} ({item.why})" for item in report.skipped]
    checked = ", ".join(f"{count} {what}" for what, count in report.checked.items() if count)
    facts = report.facts
    lines.append(f"looked at {checked or 'nothing'}; {size(facts.database_bytes)}, WAL {size(facts.wal_bytes)}")
    if any(finding.repairable for finding in report.findings):
        lines.append("`aura store check --repair` puts right what is marked with *, and loses nothing")
    lines.append("clean" if report.clean else _count(report.finding_count, "finding"))
    return "\n".join(lines) + "\n"


def backup_fields(done: Backup) -> Fields:
    """Return the object of `store backup`."""
    return {
        "path": done.path,
        "size_bytes": done.size_bytes,
        "sha256": done.sha256,
        "written": done.written,
        "sessions": done.sessions,
    }


def backup_text(done: Backup) -> str:
    """Return what `store backup` says."""
    what = "wrote" if done.written else "unchanged:"
    sessions = _count(done.sessions, "session")
    return f"{what} {one_line(done.path)} ({size(done.size_bytes)}, {sessions}, verified)\nsha256 {done.sha256}\n"


def prune_fields(report: PruneReport) -> Fields:
    """Return the object of `store prune`."""
    return {
        "dry_run": report.dry_run,
        "pruned": [
            {"session_id": item.session_id, "rows": dict(item.rows), "text_bytes": item.text_bytes}
            for item in report.pruned
        ],
        "spared": [{"session_id": item.session_id, "why": item.why} for item in report.spared],
        "rows": report.rows,
        "text_bytes": report.text_bytes,
        "longest_ms": round(report.longest_ms, 1),
    }


def prune_text(report: PruneReport) -> str:
    """Return what `store prune` says."""
    lines = []
    if report.pruned:
        rows = [("SESSION", "WHAT", "TEXT")]
        for item in report.pruned:
            what = ", ".join(_count(count, table) for table, count in item.rows.items() if count)
            rows.append((item.session_id, what, size(item.text_bytes)))
        lines.append(format_rows(rows, frozenset((2,))).rstrip("\n"))
    lines += [f"{item.session_id} stays: {item.why}" for item in report.spared]
    verb = "would remove" if report.dry_run else "removed"
    lines.append(f"{verb} {_count(report.rows, 'row')} with {size(report.text_bytes)} of text")
    if report.pruned and not report.dry_run:
        lines.append("free pages are used again; `aura store vacuum` makes the file smaller")
    return "\n".join(lines) + "\n"


def stats_fields(stats: StoreStats) -> Fields:
    """Return the object of `store stats`."""
    return {
        "facts": _facts_fields(stats.facts),
        "exact": stats.exact,
        "sessions": stats.sessions,
        "frozen": stats.frozen,
        "held": stats.held,
        "large_texts": stats.large_texts,
        "tables": [
            {
                "name": table.name,
                "rows": table.rows,
                "table_bytes": table.table_bytes,
                "index_bytes": table.index_bytes,
                "used_bytes": table.used_bytes,
            }
            for table in stats.tables
        ],
        "days": [
            {
                "date": day.date,
                "events": day.events,
                "event_bytes": day.event_bytes,
                "revisions": day.revisions,
                "runs": day.runs,
            }
            for day in stats.days
        ],
    }


def stats_text(stats: StoreStats) -> str:
    """Return what `store stats` says."""
    facts = stats.facts
    head = [
        ("database", f"{size(facts.database_bytes)}, {size(facts.free_bytes)} of it free"),
        ("WAL", size(facts.wal_bytes)),
        ("ballast", size(facts.ballast_bytes) if facts.ballast_bytes else "none"),
        ("sessions", f"{stats.sessions}, {stats.frozen} frozen, {stats.held} held by a process"),
        ("large texts", f"{stats.large_texts} over {size(limits.INLINE_MAX_BYTES)}"),
    ]
    mark = "" if stats.exact else " (estimated)"
    tables = [("TABLE", "ROWS", f"BYTES{mark}", "INDEXES")]
    tables += [
        (table.name, str(table.rows), size(table.table_bytes), size(table.index_bytes)) for table in stats.tables
    ]
    days = [("DAY", "EVENTS", "TEXT", "REVISIONS", "RUNS")]
    days += [
        (day.date, str(day.events), size(day.event_bytes), str(day.revisions), str(day.runs))
        for day in stats.days
        if day.events or day.revisions or day.runs
    ]
    right = frozenset((1, 2, 3, 4))
    return "\n".join((format_rows(head), format_rows(tables, right), format_rows(days, right)))


def vacuum_fields(done: Vacuumed) -> Fields:
    """Return the object of `store vacuum`."""
    freed = done.before_bytes - done.after_bytes
    return {"before_bytes": done.before_bytes, "after_bytes": done.after_bytes, "freed_bytes": freed}


def vacuum_text(done: Vacuumed) -> str:
    """Return what `store vacuum` says."""
    freed = max(done.before_bytes - done.after_bytes, 0)
    return f"freed {size(freed)}: {size(done.before_bytes)} before, {size(done.after_bytes)} now\n"


def size(byte_count: int) -> str:
    """Return a number of bytes for people."""
    value, unit = float(byte_count), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 100 else f"{value:.1f} {_UNITS[unit]}"


def _finding_row(finding: Finding) -> tuple[str, str, str]:
    mark = " *" if finding.repairable else ""
    return f"{finding.code}{mark}", finding.session_id or "-", one_line(finding.message)


def _finding_fields(finding: Finding) -> Fields:
    return {
        "code": finding.code,
        "table": finding.table,
        "session_id": finding.session_id,
        "message": finding.message,
        "repairable": finding.repairable,
    }


def _facts_fields(facts: Facts) -> Fields:
    return {
        "database_bytes": facts.database_bytes,
        "wal_bytes": facts.wal_bytes,
        "free_bytes": facts.free_bytes,
        "ballast_bytes": facts.ballast_bytes,
        "schema": facts.schema,
    }


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"
