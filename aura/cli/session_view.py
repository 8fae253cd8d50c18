"""What `aura session` prints: the contract's JSON objects, and the same for people. It computes and prints nothing."""

from __future__ import annotations

from aura import limits
from aura.cli.table import SHORT_REVISION_CHARS, format_rows, short_time, shorten
from aura.jsontypes import JsonValue
from aura.runtime.library import Details, Forked, Frozen, Holder, Summary
from aura.wire.summaries import summary_fields

Fields = dict[str, JsonValue]


def details_text(details: Details) -> str:
    """Return what `session show` says of one session."""
    session = details.session
    rows = [
        ("id", session.id),
        ("title", shorten(session.title, limits.TITLE_MAX_COLUMNS * 2)),
        ("created", short_time(session.created_at_ms)),
        ("updated", short_time(session.updated_at_ms)),
        ("messages", str(session.messages)),
        ("revision", session.revision),
        ("revisions", str(details.revisions)),
        ("events", str(details.events)),
        ("frozen", "yes" if session.frozen else "no"),
    ]
    if session.parent:
        rows.append(("parent", f"{session.parent.id} at {session.parent.revision}"))
    rows.append(("held by", _holder(details.holder) if details.holder else "nobody"))
    return format_rows(rows)


def forked_fields(done: Forked) -> Fields:
    """Return the object of `session fork`."""
    return {
        "session": summary_fields(done.session),
        "parent": summary_fields(done.parent),
        "created": done.created,
    }


def forked_text(done: Forked) -> str:
    """Return what `session fork` says."""
    what = "forked" if done.created else "already there:"
    return f"{what} {brief(done.session)}, from {done.parent.id}\n"


def frozen_fields(done: Frozen) -> Fields:
    """Return the object of `session freeze`."""
    return {"session": summary_fields(done.session), "changed": done.changed}


def frozen_text(done: Frozen) -> str:
    """Return what `session freeze` says."""
    return f"{'frozen' if done.changed else 'already frozen:'} {brief(done.session)}\n"


def brief(session: Summary) -> str:
    """Return a session's id, size and revision, for a line about it."""
    messages = "1 message" if session.messages == 1 else f"{session.messages} messages"
    return f"{session.id} ({messages}, revision {session.revision[:SHORT_REVISION_CHARS]})"


def _holder(holder: Holder) -> str:
    process = f"process {holder.pid}" if holder.pid else "another process"
    return f"{process}, serving {holder.url}" if holder.url else process
