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
from aura.runtime.care import CheckReport, Facts, Finding

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
