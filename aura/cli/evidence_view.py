"""How `aura evidence` answers, and its export, which `aura journal export --evidence` does as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aura.cli import streams
from aura.cli.options import RootOptions
from aura.cli.table import one_line
from aura.jsontypes import JsonValue

if TYPE_CHECKING:
    from aura.runtime.evidence import ExportedEvidence
    from aura.runtime.evidence_check import CheckedEvidence


def export(root: RootOptions, session_id: str, output: str, *, as_json: bool) -> None:
    """Write a bundle and say so."""
    from aura.runtime.evidence import export_evidence

    write = streams.write_stdout if output == "-" else None
    done = export_evidence(root.resolve_store_dir(), session_id, output, write)
    answer = streams.json_line(exported_fields(done)) if as_json else exported_text(done)
    if write is not None:
        streams.write_stderr(answer)
    else:
        streams.write_stdout(answer)


def exported_fields(done: ExportedEvidence) -> dict[str, JsonValue]:
    """Return the object of `evidence export`."""
    return {
        "session_id": done.session.id,
        "revision": done.session.revision,
        "path": done.path,
        "events": done.events,
        "last_seq": done.last_seq,
        "head": done.head,
        "sha256": done.sha256,
        "written": done.written,
    }


def exported_text(done: ExportedEvidence) -> str:
    """Return the lines of `evidence export`: what to note down elsewhere."""
    where = "standard output" if done.path == "-" else one_line(done.path)
    verb = "wrote" if done.written else "unchanged:"
    return f"{verb} {where}, sha256 {done.sha256}\nhead {done.head}@{done.last_seq}\n"


def checked_fields(found: CheckedEvidence, path: str) -> dict[str, JsonValue]:
    """Return the object of `evidence verify`."""
    return {
        "path": path,
        "ok": not found.problems,
        "session_id": found.session_id,
        "revision": found.revision,
        "events": found.events,
        "first_seq": found.first_seq,
        "last_seq": found.last_seq,
        "head": found.head,
        "covered": found.covered,
        "expected_seq": found.expected_seq,
        "sha256": found.sha256,
        "problems": list(found.problems),
    }


def checked_text(found: CheckedEvidence, path: str) -> str:
    """Return the lines of `evidence verify`."""
    where = "standard input" if path == "-" else one_line(path)
    if found.problems:
        return "\n  ".join([f"{where}: does NOT hold", *found.problems]) + "\n"
    lines = [
        f"{where}: holds, sha256 {found.sha256}",
        f"session {found.session_id}, revision {found.revision}",
        f"{found.events} events, head {found.head}@{found.last_seq}",
    ]
    if found.expected_seq is not None:
        lines.append(f"the expected hash is that of event {found.expected_seq}")
    if not found.covered:
        lines.append(f"events below {found.first_seq} were pruned without their hash: that event is taken on trust")
    return "\n  ".join(lines) + "\n"
