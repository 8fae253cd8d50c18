"""The strict schemas: every field required, none unknown, no value converted. Loading one makes the frozen
model.

They say what the contract says and nothing else; turning their complaints into `ContractDrift` is the job of
`_decode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from marshmallow import ValidationError, fields, validates_schema

from aura_automation import models
from aura_automation._fields import (
    Flag,
    Object,
    Strict,
    anything,
    count,
    counts,
    flag,
    many,
    name_in,
    obj,
    one,
    text,
    version,
)
from aura_automation.codes import BY_CODE

API_VERSION: Final = 1
TERMINAL_STATES: Final = frozenset(("persisted", "persist_failed", "lost"))


# --- sessions -----------------------------------------------------------------------------------------------


class ParentSchema(Strict):
    makes = models.Parent
    id = text()
    revision = text()


class SummarySchema(Strict):
    makes = models.Summary
    id = text()
    title = text()
    created_at = text()
    updated_at = text()
    revision = text()
    messages = count()
    frozen = flag()
    parent = one(ParentSchema, null=True)


class SessionListSchema(Strict):
    makes = models.SessionList
    sessions = many(SummarySchema)
    warnings = fields.List(fields.String(), required=True)


class ImportedSchema(Strict):
    makes = models.Imported
    session = one(SummarySchema)
    created = flag()
    frozen_now = flag()
    source_sha256 = text()


class ExportedSchema(Strict):
    makes = models.Exported
    session = one(SummarySchema)
    path = text()
    sha256 = text()
    written = flag()


class ForkedSchema(Strict):
    makes = models.Forked
    session = one(SummarySchema)
    parent = one(SummarySchema)
    created = flag()


class FrozenSchema(Strict):
    makes = models.Frozen
    session = one(SummarySchema)
    changed = flag()


# --- errors -------------------------------------------------------------------------------------------------


class ErrorSchema(Strict):
    makes = models.Error
    code = name_in(BY_CODE, "a code")
    message = text()
    retryable = flag()
    details = obj()


class CommandErrorSchema(Strict):
    """The error object of `aura session`: only code and message are promised."""

    makes = models.Error
    code = name_in(BY_CODE, "a code")
    message = text()
    retryable = Flag(load_default=False)
    details = Object(load_default=dict)
    hint = fields.String(load_default=None, allow_none=True)


# --- runs ---------------------------------------------------------------------------------------------------


class RunResultSchema(Strict):
    makes = models.RunResult
    content = text()


class PersistedSchema(Strict):
    makes = models.Persisted
    revision = text()
    messages = count()
    seq = count()


class StatsSchema(Strict):
    makes = models.Stats
    iterations = count()
    tool_calls = counts()
    tool_errors = count()


class RunSchema(Strict):
    makes = models.Run
    id = text()
    request_id = text()
    kind = text("prompt", "command")
    request_digest = text()
    on_input = text("block", "wait")
    session_id = text()
    state = text("accepted", "running", "finished", "persisted", "persist_failed", "lost")
    terminal = flag()
    outcome = text("completed", "failed", "cancelled", "rejected", "blocked", null=True)
    error = one(ErrorSchema, null=True)
    persist_error = one(ErrorSchema, null=True)
    cancel_requested = flag()
    result = one(RunResultSchema, null=True)
    persisted = one(PersistedSchema, null=True)
    stats = one(StatsSchema)
    accepted_seq = count()
    accepted_at = text()
    started_at = text(null=True)
    finished_at = text(null=True)
    settled_at = text(null=True)

    @validates_schema
    def _terminal_matches_state(self, data: Mapping[str, object], **_: object) -> None:
        if data["terminal"] != (data["state"] in TERMINAL_STATES):
            raise ValidationError("Does not match the state.", "terminal")


# --- the live server ----------------------------------------------------------------------------------------


class ServerInfoSchema(Strict):
    makes = models.ServerInfo
    api = version(API_VERSION)
    aura_version = text()
    commit = text()
    pid = count()
    session_id = text()
    workdir = text()
    write_home = text()
    url = text()
    started_at = text()
    state = text("ready", "stopping")
    last_seq = count()


class StatusSchema(Strict):
    makes = models.Status
    agent = text()
    mode = text(null=True)
    provider = text(null=True)
    model = text(null=True)
    iteration = count()
    tokens_used = count()
    tokens_max = count(null=True)


class SessionInfoSchema(Strict):
    makes = models.SessionInfo
    session = one(SummarySchema)
    persisted_seq = count()
    status = one(StatusSchema)
    meta = obj()
    run = one(RunSchema, null=True)


class CallSchema(Strict):
    makes = models.Call
    id = text()
    name = text()
    arguments = anything()


class MessageSchema(Strict):
    makes = models.Message
    index = count()
    message_id = text(null=True)
    role = text("system", "user", "assistant", "tool")
    content = text(null=True)
    calls = many(CallSchema, null=True)
    tool_call_id = text(null=True)
    tool_name = text(null=True)
    type = count(null=True)
    created_at = text(null=True)


class ThinkingMessageSchema(MessageSchema):
    thinking = text(null=True)


class MessagePageSchema(Strict):
    makes = models.MessagePage
    messages = many(MessageSchema)
    total = count()


class ThinkingMessagePageSchema(Strict):
    makes = models.MessagePage
    messages = many(ThinkingMessageSchema)
    total = count()


class ReadySchema(Strict):
    makes = models.Ready
    api = version(API_VERSION)
    url = text()
    pid = count()
    session_id = text()
    aura_version = text()
    commit = text()
    workdir = text()
    write_home = text()


class FailedReadySchema(Strict):
    """A ready file that says why the server did not start."""

    makes = models.FailedReady
    api = version(API_VERSION)
    error = one(ErrorSchema)


class FailureSchema(Strict):
    """The body of an HTTP error."""

    makes = models.Failure
    error = one(ErrorSchema)


class CommandFailureSchema(Strict):
    """What `aura session --json` prints on stderr."""

    makes = models.Failure
    error = one(CommandErrorSchema)


class NothingSchema(Strict):
    """`{}`."""
