"""The event catalogue as code: what each kind is called in the contract, and how it is stored (SHAPES.md section 5).

One row per kind. Docs and schemas come from this table; nothing else decides how an event is named.
"""

from __future__ import annotations

from dataclasses import dataclass

from aura import events as e
from aura.jsontypes import JsonValue
from aura.runs import Run
from aura.wire import canonical
from aura.wire.automation import event_data
from aura.wire.full_events import full_data


@dataclass(frozen=True, slots=True)
class Entry:
    """How one kind is stored. `contract_type` is the type that the automation profile serves."""

    kind: str
    contract_type: str
    event: type[e.Event]


_SAME_NAME: tuple[type[e.Event], ...] = (
    e.ServerStarted,
    e.ServerStopping,
    e.RunAccepted,
    e.MessageUser,
    e.RunStarted,
    e.MessageAssistant,
    e.ToolStarted,
    e.ToolFinished,
    e.Notice,
    e.StatusChanged,
    e.InputRequired,
    e.InputResolved,
    e.CommandResult,
    e.SessionPersisted,
    e.SessionPersistFailed,
    e.RunCancelRequested,
    e.RunFinished,
    e.RunPersisted,
    e.RunPersistFailed,
    e.RunLost,
)

_AS_NOTICE: tuple[type[e.Event], ...] = (
    e.SessionInfo,
    e.McpStatus,
    e.ToolRequested,
    e.ToolUsage,
    e.ObserverAttached,
    e.ObserverDetached,
    e.ClaimsExhausted,
    e.LivenessDecided,
)

CATALOGUE: dict[str, Entry] = {
    **{event.kind: Entry(event.kind, event.kind, event) for event in _SAME_NAME},
    **{event.kind: Entry(event.kind, "notice", event) for event in _AS_NOTICE},
}

CONTRACT_TYPES: frozenset[str] = frozenset(entry.contract_type for entry in CATALOGUE.values())


@dataclass(frozen=True, slots=True)
class Encoded:
    """An event as it is stored: contract type and data bytes; real kind and what only the gateway and SQL need."""

    type: str
    data: bytes
    kind: str
    ext: bytes | None


def encode_event(event: e.Event, run: Run | None) -> Encoded:
    """Return the stored form of `event`. `run` is the record after the transition, for the kinds that carry it.

    One that the contract does not know, or of a lane other than the main one, is a `notice` for the contract's
    readers, with its real kind and its data beside it.
    """
    entry = CATALOGUE[event.kind]
    if event.source is None and not event.full:
        known = canonical.encode(event_data(event, run))
        return Encoded(entry.contract_type, known, event.kind, _extension(event, None))
    data = full_data(event) if event.full else event_data(event, run)
    agent = event.source.agent_name if event.source is not None else ""
    shown: dict[str, JsonValue] = {"level": "info", "source": event.kind, "message": agent}
    return Encoded("notice", canonical.encode(shown), event.kind, _extension(event, data))


def _extension(event: e.Event, data: dict[str, JsonValue] | None) -> bytes | None:
    fields: dict[str, JsonValue] = {}
    if event.source is not None:
        source = event.source
        fields["agent"] = {
            "agent_id": source.agent_id,
            "agent_name": source.agent_name,
            "parent_agent_id": source.parent_agent_id,
            "task_id": source.task_id,
        }
    if data is not None:
        fields["data"] = data
    if isinstance(event, e.MessageAssistant) and event.usage is not None:
        usage = event.usage
        counted: dict[str, JsonValue] = {
            "provider": usage.provider,
            "model": usage.model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }
        if usage.cost_usd is not None:
            counted["cost_usd"] = usage.cost_usd
        fields["usage"] = counted
    if isinstance(event, e.InputRequired) and event.expires_at_ms is not None:
        fields["expires_at_ms"] = event.expires_at_ms
    if isinstance(event, e.InputResolved):
        fields["answered_by"] = event.answered_by
    if isinstance(event, e.RunCancelRequested):
        fields["cancel"] = {"reason": event.reason, "message": event.message}
    return canonical.encode(fields) if fields else None
