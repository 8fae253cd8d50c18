"""The contract's Summary of a session (contract.md). It stands apart so that a listing imports no event and no run."""

from __future__ import annotations

from aura.clock import format_time
from aura.conversation import Summary
from aura.jsontypes import JsonValue


def summary_fields(summary: Summary) -> dict[str, JsonValue]:
    """Return the contract's Summary object."""
    parent = summary.parent
    return {
        "id": summary.id,
        "title": summary.title,
        "created_at": format_time(summary.created_at_ms),
        "updated_at": format_time(summary.updated_at_ms),
        "revision": summary.revision,
        "messages": summary.messages,
        "frozen": summary.frozen,
        "parent": {"id": parent.id, "revision": parent.revision} if parent else None,
    }
