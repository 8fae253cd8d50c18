"""Schemas of the records that routes answer with: exact keys, closed sets (contract.md; interfaces.md 7 and 9).

They describe and check what `aura.wire.automation` encodes; nothing is encoded with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from marshmallow import ValidationError, validates_schema

from aura import API_VERSION
from aura.runs import TERMINAL
from aura.wire.codes import CODES
from aura.wire.schemas.exact import (
    RUN_ID_PATTERN,
    SESSION_ID_PATTERN,
    Exact,
    choice,
    count,
    counts,
    exactly,
    flag,
    free,
    many,
    one,
    sha256,
    text,
    texts,
    time,
)

Data = Mapping[str, object]

# --- errors ------------------------------------------------------------------------------------------------------


class ErrorDetailsSchema(Exact):
    """What a program needs to decide; only the keys that the code has."""

    status = count("HTTP status that the provider answered with.", required=False)
    provider = text("Type of the provider, such as `llamaswap`.", required=False)
    retry_after_ms = count("How long to wait before trying again.", required=False)
    reason = text("What of several causes it was.", required=False)
    last_seq = count("Seq of the last event.", required=False)
    first_seq = count("Seq of the first event that was not pruned.", required=False)
    run_id = text("The run that is in the way.", pattern=RUN_ID_PATTERN, required=False)
    candidates = texts("Session ids that begin so.", required=False)


class ErrorSchema(Exact):
    """Why something did not go well."""

    code = choice("What kind of failure it is.", *CODES)
    message = text("One line for a person.")
    retryable = flag("True for `provider_network`, `provider_server` and `provider_rate_limit` only.")
    details = one("What a program needs to decide; only the keys that the code has.", ErrorDetailsSchema)

    @validates_schema(skip_on_field_errors=True)
    def _fits_its_code(self, data: Data, **_context: object) -> None:
        code = CODES[str(data["code"])]
        if data["retryable"] != code.retryable:
            raise ValidationError("Does not match the code.", "retryable")
        details = data["details"]
        assert isinstance(details, dict)
        unknown = sorted(set(details) - set(code.details))
        if unknown:
            raise ValidationError(f"{code.name} has no {unknown[0]}.", "details")


class FailureSchema(Exact):
    """The body of every error answer."""

    error = one("What went wrong.", ErrorSchema)


# --- sessions ----------------------------------------------------------------------------------------------------


class ParentSchema(Exact):
    """The exact bytes that a fork copied."""

    id = text("The parent session.", pattern=SESSION_ID_PATTERN)
    revision = sha256("Its revision then.")


class SummarySchema(Exact):
    """A stored session."""

    id = text("The session.", pattern=SESSION_ID_PATTERN)
    title = text("What people call it; may be empty.")
    created_at = time("When it was made.")
    updated_at = time("When it was last saved with a change.")
    revision = sha256("SHA-256 of the bytes that `aura session export` writes.")
    messages = count("Stored messages that are not system ones.")
    frozen = flag("True once it can never be written again.")
    parent = one("Where it was forked from, or null.", ParentSchema, null=True)


# --- runs --------------------------------------------------------------------------------------------------------


class RunResultSchema(Exact):
    """What came of a run."""

    content = text("The final assistant text, or the command's output.")


class PersistedSchema(Exact):
    """The latest save of the session."""

    revision = sha256("The stored session's revision.")
    messages = count("Its non-system messages.")
    seq = count("Seq of the `session.persisted` that reported it; 0 if there is none.")


class StatsSchema(Exact):
    """What a run did."""

    iterations = count("Model calls that were answered.")
    tool_calls = counts("Calls by the tool's name.")
    tool_errors = count("Calls that ended in an error.")


class RunSchema(Exact):
    """The record of one run. It changes until `terminal` is true, and never again."""

    id = text("`run_` and a UUID v7.", pattern=RUN_ID_PATTERN)
    request_id = text("The id that the controller chose.")
    kind = choice("What was submitted.", "prompt", "command")
    request_digest = sha256("SHA-256 of kind, on_input and text, as canonical JSON.")
    on_input = choice("What a question does: end the run, or wait for an answer.", "block", "wait")
    session_id = text("The session it works in.", pattern=SESSION_ID_PATTERN)
    state = choice("Where it stands.", "accepted", "running", "finished", "persisted", "persist_failed", "lost")
    terminal = flag("True iff the state is persisted, persist_failed or lost: only then the run is over.")
    outcome = choice(
        "How the engine ended it; null before, and for a run that was lost before it finished.",
        "completed",
        "failed",
        "cancelled",
        "rejected",
        "blocked",
        null=True,
    )
    error = one("Why it is not completed, or null.", ErrorSchema, null=True)
    persist_error = one("Why its last save failed, or null.", ErrorSchema, null=True)
    cancel_requested = flag("True once somebody asked for a cancellation, whatever came of it.")
    result = one("What came of it, or null.", RunResultSchema, null=True)
    persisted = one("The latest save, or null before the first one.", PersistedSchema, null=True)
    stats = one("What it did so far.", StatsSchema)
    accepted_seq = count("Seq of its `run.accepted`.", least=1)
    accepted_at = time("When it was accepted.")
    started_at = time("When its input entered the conversation, or null.", null=True)
    finished_at = time("When the engine was done, or null.", null=True)
    settled_at = time("When it became terminal, or null.", null=True)

    @validates_schema(skip_on_field_errors=True)
    def _agrees_with_its_state(self, data: Data, **_context: object) -> None:
        state, error = data["state"], data["error"]
        if data["terminal"] != (state in TERMINAL) or data["terminal"] == (data["settled_at"] is None):
            raise ValidationError("Does not match the state.", "terminal")
        if (data["outcome"] is None) != (state in ("accepted", "running")) and state != "lost":
            raise ValidationError("Does not match the state.", "outcome")
        lost_early = state == "lost" and data["outcome"] is None
        if (error is None) != (data["outcome"] in (None, "completed") and not lost_early):
            raise ValidationError("Does not match the outcome.", "error")
        if state == "persisted" and data["persisted"] is None:
            raise ValidationError("A persisted run has been saved.", "persisted")
        if state == "persist_failed" and data["persist_error"] is None:
            raise ValidationError("Says why.", "persist_error")


# --- the live server ---------------------------------------------------------------------------------------------


class ServerInfoSchema(Exact):
    """The server process."""

    api = exactly("Version of this API.", API_VERSION)
    aura_version = text("Version of the program.")
    commit = text("Commit that it was built from; `unknown` for an installed wheel.")
    pid = count("Its process id.", least=1)
    session_id = text("The one session that it serves.", pattern=SESSION_ID_PATTERN)
    workdir = text("The agent's workspace.")
    write_home = text("The config home that is written to; the store is in `sessions` below it.")
    url = text("Where it listens.")
    started_at = time("When it started.")
    state = choice("`stopping` once it takes no new runs.", "ready", "stopping")
    last_seq = count("Seq of the last event.")


class StatusSchema(Exact):
    """The engine's status line."""

    agent = text("The agent at work.")
    mode = text("Its mode, or null.", null=True)
    provider = text("The configured provider's name.")
    model = text("The model's name.")
    iteration = count("Model call of this run, from 1; 0 before the first.")
    tokens_used = count("Tokens of the conversation, as far as known.")
    tokens_max = count("The model's context; 0 while unknown.")


class SessionInfoSchema(Exact):
    """The served session: what is stored, and what is live."""

    session = one("The stored session.", SummarySchema)
    persisted_seq = count("Seq of the latest `session.persisted`.")
    status = one("The engine's status line.", StatusSchema)
    meta = free("The live session's metadata: agent, model, statistics.")
    run = one("The run that has not settled, or null.", RunSchema, null=True)


class CallSchema(Exact):
    """A tool call that an assistant message asks for."""

    id = text("Joins it with its result.")
    name = text("The tool.")
    arguments = free("What it is called with.")


class MessageSchema(Exact):
    """A stored message that is not a system one. Null where there is nothing."""

    index = count("Its place, from 0.")
    message_id = text("The same id as in events and deltas, or null.", null=True)
    role = choice("Who speaks.", "user", "assistant", "tool")
    content = text("Its text, or null.", null=True)
    calls = many("Calls that it asks for, or null.", CallSchema, null=True)
    tool_call_id = text("The call that a tool message answers, or null.", null=True)
    tool_name = text("That call's tool, or null.", null=True)
    type = count("What it is for: 0 normal, 1 synthetic, 2 ephemeral, 3 display only, 4 bookmark, 5 metadata.")
    created_at = text("RFC 3339, as it was written, or null.", null=True)


class ThinkingMessageSchema(MessageSchema):
    """A stored message with its thinking."""

    thinking = text("What the model thought, or null.", null=True)


class MessagePageSchema(Exact):
    """Messages after an index."""

    messages = many("In order.", MessageSchema)
    total = count("All non-system messages of the session.")


class ThinkingMessagePageSchema(Exact):
    """Messages after an index, with thinking."""

    messages = many("In order.", ThinkingMessageSchema)
    total = count("All non-system messages of the session.")


class NothingDoneSchema(Exact):
    """An empty object: it worked, and there is nothing to say."""


class ReadySchema(Exact):
    """The ready file of a server that is up."""

    api = exactly("Version of this API.", API_VERSION)
    url = text("Where it listens.")
    pid = count("Its process id.", least=1)
    session_id = text("The session that it serves.", pattern=SESSION_ID_PATTERN)
    aura_version = text("Version of the program.")
    commit = text("Commit that it was built from.")
    workdir = text("The agent's workspace.")
    write_home = text("The config home that is written to.")


class FailedReadySchema(Exact):
    """The ready file of a server that could not start."""

    api = exactly("Version of this API.", API_VERSION)
    error = one("Why.", ErrorSchema)
