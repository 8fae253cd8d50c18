"""What `aura session import` and `export` print: the contract's objects and the lines of many, for programs and people.

It computes and prints nothing.
"""

from __future__ import annotations

from aura.cli.errors import error_fields
from aura.cli.session_view import Fields, brief
from aura.cli.table import one_line, shorten
from aura.jsontypes import JsonValue
from aura.runtime import exporter
from aura.runtime.importer import Done, Outcome
from aura.runtime.library import Exported
from aura.wire.summaries import summary_fields


def imported_fields(done: Done) -> Fields:
    """Return the object of `session import`; of a foreign file also its format and what had to be repaired."""
    fields: Fields = {
        "session": summary_fields(done.session),
        "created": done.created,
        "frozen_now": done.frozen_now,
        "source_sha256": done.source_sha256,
    }
    if done.format != "aura":
        fields["format"] = done.format
        fields["warnings"] = list(done.warnings)
    if done.conflict is not None:
        fields["conflict"] = done.conflict
    return fields


def import_text(done: Done) -> str:
    """Return what `session import` says of one conversation."""
    what = "imported" if done.created else "already there:"
    if done.conflict is not None:
        what = f"{done.conflict}:" if done.conflict == "skipped" else "imported beside another:"
    return f"{what} {brief(done.session)}{', frozen now' if done.frozen_now else ''}\n"


def warnings_text(done: Done) -> str:
    """Return a line for each kind of repair that a foreign file needed."""
    return "".join(f"warning: {warning}\n" for warning in done.warnings)


def outcome_fields(outcome: Outcome) -> Fields:
    """Return the line of one conversation of many."""
    fields: Fields = {"input": outcome.input}
    if outcome.line is not None:
        fields["line"] = outcome.line
    if outcome.error is not None:
        return fields | error_fields(outcome.error)
    assert outcome.done is not None, "an outcome without an error is done"
    return fields | imported_fields(outcome.done)


def outcome_text(outcome: Outcome) -> str:
    """Return the line of one conversation of many, for people."""
    where = one_line(outcome.input if outcome.line is None else f"{outcome.input}:{outcome.line}")
    if outcome.error is not None:
        return f"{where}: error: {one_line(outcome.error.message)}\n"
    assert outcome.done is not None, "an outcome without an error is done"
    repairs = "".join(f"; {warning}" for warning in outcome.done.warnings)
    return f"{where}: {import_text(outcome.done).rstrip()}{repairs}\n"


def exported_fields(done: Exported | exporter.Written) -> Fields:
    """Return the object of `session export`; of another program's format also what it has no place for."""
    fields: Fields = {
        "session": summary_fields(done.session),
        "path": done.path,
        "sha256": done.sha256,
        "written": done.written,
    }
    if isinstance(done, exporter.Written):
        fields["left_out"] = done.left_out
    return fields


def exported_text(done: Exported | exporter.Written) -> str:
    """Return what `session export` says of one session."""
    where = "standard output" if done.path == "-" else done.path
    what = "wrote" if done.written else "unchanged:"
    left_out = done.left_out if isinstance(done, exporter.Written) else 0
    more = f", left out: {left_out}" if left_out else ""
    return f"{what} {shorten(where, len(where))}, {brief(done.session)}{more}\nsha256 {done.sha256}\n"


def export_outcome_fields(outcome: exporter.Outcome) -> Fields:
    """Return the line of one session of many."""
    if outcome.error is not None:
        named: dict[str, JsonValue] = {"id": outcome.session_id}
        return named | error_fields(outcome.error)
    assert outcome.done is not None, "an outcome without an error is done"
    return exported_fields(outcome.done)


def export_outcome_text(outcome: exporter.Outcome) -> str:
    """Return the line of one session of many, for people."""
    if outcome.error is not None:
        return f"{one_line(outcome.session_id)}: error: {one_line(outcome.error.message)}\n"
    assert outcome.done is not None, "an outcome without an error is done"
    return exported_text(outcome.done).partition("\n")[0] + "\n"
