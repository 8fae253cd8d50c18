"""Schemas of all events: one closed set of types, and for each type exactly the keys of its data (contract.md).

They describe and check what `aura.wire.automation` encodes; nothing is encoded with them. What an event means is said
in `aura.events`.
"""

from __future__ import annotations

from collections.abc import Mapping

from marshmallow import Schema, ValidationError, validates_schema

from aura.wire.schemas.exact import (
    INPUT_ID_PATTERN,
    RUN_ID_PATTERN,
    SESSION_ID_PATTERN,
    Exact,
    choice,
    count,
    flag,
    free,
    many,
    one,
    sha256,
    text,
    time,
)
from aura.wire.schemas.records import ErrorSchema, RunSchema, StatusSchema

SAVE_REASONS = ("start", "checkpoint", "run", "command", "shutdown")


class ServerStartedData(Exact):
    """A server holds the session from now on."""

    pid = count("Its process id.", least=1)
    version = text("Version of the program.")
    resumed_revision = sha256("The revision that it found, or null for a fresh session.", null=True)


class ServerStoppingData(Exact):
    """The server takes no new runs any more."""

    reason = choice("Who asked.", "sigint", "sigterm", "request", "launcher_lost")


class RunChangeData(Exact):
    """A run's record changed."""

    run = one("The whole record after the change.", RunSchema)


class RunStartedData(Exact):
    """The input entered the conversation."""

    run_id = text("The run.", pattern=RUN_ID_PATTERN)
    message_id = text("The user message that it became.")


class MessageUserData(Exact):
    """The input, as it entered the conversation."""

    message_id = text("The message.")
    content = text("Its text, after directives are expanded.")


class ToolCallSchema(Exact):
    """A tool call of an answer."""

    call_id = text("Joins it with `tool.started` and `tool.finished`.")
    name = text("The tool.")
    args = free("What it is called with.")


class MessageAssistantData(Exact):
    """One answer of the model, whole; thinking is never part of it."""

    message_id = text("The message; its deltas had the same id.")
    content = text("Its text, which may be empty.")
    tool_calls = many("Calls that it asks for, in order.", ToolCallSchema)


class ToolStartedData(ToolCallSchema):
    """A call begins. It is durable before a tool that changes something runs."""


class ToolFinishedData(Exact):
    """A call ended."""

    call_id = text("The call.")
    name = text("The tool.")
    status = choice("How it went.", "ok", "error")
    result = text("What entered the conversation.")
    error = text("What went wrong, or null.", null=True)

    @validates_schema(skip_on_field_errors=True)
    def _has_an_error_iff_it_failed(self, data: Mapping[str, object], **_context: object) -> None:
        if data["status"] == "ok" and data["error"] is not None:
            raise ValidationError("Only a failed call has one.", "error")


class NoticeData(Exact):
    """Something that a person should know; no program decides by it."""

    level = choice("How serious it is.", "info", "warning", "error")
    source = text("Where it comes from. Events that only other profiles know are shown so, with their type here.")
    message = text("One line.")


class StatusData(StatusSchema):
    """The engine's status line; it stands in the journal only when it changed."""


class OptionSchema(Exact):
    """One answer that a question offers."""

    label = text("The answer.")
    description = text("What it means; may be empty.")


class InputRequiredData(Exact):
    """A question (`ask`) or an approval (`confirm`) waits for an answer."""

    input_id = text("`inp_` and a UUID v7; the answer is sent to it.", pattern=INPUT_ID_PATTERN)
    kind = choice("What kind of answer it needs.", "ask", "confirm")
    question = text("What is asked.")
    options = many("Answers to choose from; empty for a free one.", OptionSchema)
    multi_select = flag("True if several may be chosen, separated by commas.")
    tool = text("The tool that asks, or that is asked about; else null.", null=True)
    detail = text("For an approval: what the call would do, else null.", null=True)
    pattern = text("For an approval: what `allow_session` would allow, else null.", null=True)


class InputResolvedData(Exact):
    """A question is answered, an approval decided."""

    input_id = text("The question.", pattern=INPUT_ID_PATTERN)
    answer = text("The label, the text or the action; null when it was dismissed.", null=True)


class CommandResultData(Exact):
    """What a slash command said."""

    command = text("The command, as submitted.")
    message = text("What it said; may be empty.")
    error = text("What went wrong, or null.", null=True)


class SessionPersistedData(Exact):
    """The session was saved."""

    revision = sha256("The stored session's revision.")
    messages = count("Its non-system messages.")
    reason = choice("Which save it was.", *SAVE_REASONS)
    changed = flag("False when the same content was stored already.")


class SessionPersistFailedData(Exact):
    """A save failed; what was saved before is safe."""

    error = one("Why.", ErrorSchema)
    reason = choice("Which save it was.", *SAVE_REASONS)


class DeltaData(Exact):
    """A piece of a message that is still being written."""

    message_id = text("The message.")
    text = text("The piece.")


class ToolOutputData(Exact):
    """A line that a running tool wrote."""

    name = text("The tool.")
    line = text("The line, or several joined.")


class SpinnerData(Exact):
    """What the engine waits for."""

    text = text("A few words; empty when it no longer waits.")


class HeartbeatData(Exact):
    """Nothing happened for as long as the client asked; the stream is alive."""


DURABLE: Mapping[str, type[Schema]] = {
    "server.started": ServerStartedData,
    "server.stopping": ServerStoppingData,
    "run.accepted": RunChangeData,
    "run.cancel_requested": RunChangeData,
    "run.started": RunStartedData,
    "run.finished": RunChangeData,
    "run.persisted": RunChangeData,
    "run.persist_failed": RunChangeData,
    "run.lost": RunChangeData,
    "message.user": MessageUserData,
    "message.assistant": MessageAssistantData,
    "tool.started": ToolStartedData,
    "tool.finished": ToolFinishedData,
    "notice": NoticeData,
    "status": StatusData,
    "input.required": InputRequiredData,
    "input.resolved": InputResolvedData,
    "command.result": CommandResultData,
    "session.persisted": SessionPersistedData,
    "session.persist_failed": SessionPersistFailedData,
}

# What streams send without an id.
LIVE: Mapping[str, type[Schema]] = {
    "delta.content": DeltaData,
    "delta.thinking": DeltaData,
    "tool.output": ToolOutputData,
    "spinner": SpinnerData,
    "heartbeat": HeartbeatData,
}

WITHOUT_A_RUN = frozenset(("server.started", "server.stopping"))


class EventSchema(Exact):
    """A durable event, as the journal and streams serve it."""

    seq = count("Its place in the session's journal: from 1, without a gap.", least=1)
    time = time("When it happened.")
    type = choice("What happened.", *DURABLE)
    session_id = text("The session.", pattern=SESSION_ID_PATTERN)
    run_id = text("The run that it belongs to, or null.", null=True, pattern=RUN_ID_PATTERN)
    data = free("What else there is to say, by type.")

    @validates_schema(skip_on_field_errors=True)
    def _data_fits_the_type(self, data: Mapping[str, object], **_context: object) -> None:
        body = data["data"]
        assert isinstance(body, dict)
        problems = DURABLE[str(data["type"])]().validate(body)
        if problems:
            raise ValidationError({"data": problems})
        if data["type"] in WITHOUT_A_RUN and data["run_id"] is not None:
            raise ValidationError("Belongs to no run.", "run_id")


class JournalPageSchema(Exact):
    """Events after a seq."""

    events = many("In order, without a gap.", EventSchema)
    last_seq = count("Seq of the last committed event, which may lie beyond this page.")
