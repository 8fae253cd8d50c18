"""The closed set of event types and the strict schema of each type's data (contract.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from marshmallow import Schema, ValidationError, validates_schema

from aura_automation import models
from aura_automation._fields import Strict, anything, count, flag, many, name_in, obj, one, text
from aura_automation._schemas import ErrorSchema, RunSchema, StatusSchema

SAVE_REASONS: Final = ("start", "checkpoint", "run", "command", "shutdown")


class ServerStartedData(Strict):
    pid = count()
    version = text()
    resumed_revision = text(null=True)


class ServerStoppingData(Strict):
    reason = text()


class RunData(Strict):
    makes = models.RunChange
    run = one(RunSchema)


class RunStartedData(Strict):
    run_id = text()
    message_id = text()


class MessageUserData(Strict):
    message_id = text()
    content = text()


class ToolCallSchema(Strict):
    call_id = text()
    name = text()
    args = anything()


class MessageAssistantData(Strict):
    message_id = text()
    content = text()
    tool_calls = many(ToolCallSchema)


class ToolFinishedData(Strict):
    call_id = text()
    name = text()
    status = text("ok", "error")
    result = text(null=True)
    error = text(null=True)


class NoticeData(Strict):
    level = text()
    source = text()
    message = text()


class OptionSchema(Strict):
    label = text()
    description = text(null=True)


class InputRequiredData(Strict):
    input_id = text()
    kind = text("ask", "confirm")
    question = text(null=True)
    options = many(OptionSchema)
    multi_select = flag()
    tool = text(null=True)
    detail = text(null=True)
    pattern = text(null=True)


class InputResolvedData(Strict):
    input_id = text()
    answer = anything()


class CommandResultData(Strict):
    command = text()
    message = text(null=True)
    error = text(null=True)


class SessionPersistedData(Strict):
    revision = text()
    messages = count()
    reason = text(*SAVE_REASONS)
    changed = flag()


class SessionPersistFailedData(Strict):
    error = one(ErrorSchema)
    reason = text(*SAVE_REASONS)


class DeltaData(Strict):
    message_id = text()
    text = text()


class ToolOutputData(Strict):
    name = text()
    line = text()


class SpinnerData(Strict):
    text = text()


DURABLE: Final[Mapping[str, Schema]] = {
    "server.started": ServerStartedData(),
    "server.stopping": ServerStoppingData(),
    "run.accepted": RunData(),
    "run.cancel_requested": RunData(),
    "run.finished": RunData(),
    "run.persisted": RunData(),
    "run.persist_failed": RunData(),
    "run.lost": RunData(),
    "run.started": RunStartedData(),
    "message.user": MessageUserData(),
    "message.assistant": MessageAssistantData(),
    "tool.started": ToolCallSchema(),
    "tool.finished": ToolFinishedData(),
    "notice": NoticeData(),
    "status": StatusSchema(),
    "input.required": InputRequiredData(),
    "input.resolved": InputResolvedData(),
    "command.result": CommandResultData(),
    "session.persisted": SessionPersistedData(),
    "session.persist_failed": SessionPersistFailedData(),
}

TRANSIENT: Final[Mapping[str, Schema]] = {
    "delta.content": DeltaData(),
    "delta.thinking": DeltaData(),
    "tool.output": ToolOutputData(),
    "spinner": SpinnerData(),
}

TERMINAL_TYPES: Final = frozenset(("run.persisted", "run.persist_failed", "run.lost"))


class EventSchema(Strict):
    """The envelope; its data is checked by the schema of its type."""

    makes = models.Event
    seq = count()
    time = text()
    type = name_in(DURABLE, "an event")
    session_id = text()
    run_id = text(null=True)
    data = obj()

    @validates_schema
    def _data_matches_type(self, data: Mapping[str, object], **_: object) -> None:
        problems = DURABLE[str(data["type"])].validate(data["data"])  # type: ignore[arg-type]
        if problems:
            raise ValidationError({"data": problems})


class JournalPageSchema(Strict):
    makes = models.JournalPage
    events = many(EventSchema)
    last_seq = count()
