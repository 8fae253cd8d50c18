"""Request bodies and queries of the automation profile (contract.md, HTTP API; interfaces.md sections 2, 7 and 9).

Each reader returns a frozen value or raises `BadRequest`. Cursors are only parsed: their range is the store's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from marshmallow import ValidationError, fields, validate, validates_schema

from aura import limits
from aura.errors import BadRequest
from aura.jsontypes import JsonValue
from aura.runs import OnInput, RunKind
from aura.wire.schemas.strict import Strict, Switch, Whole, load_body, load_query, request_id_field

Pairs = Iterable[tuple[str, str]]

_SIZE = f"At most {limits.TEXT_MAX_BYTES} bytes of UTF-8."
_CURSOR = (
    "Seq of the last event that was seen; 0 for none. Beyond the last event, and before what was pruned, it is "
    "`cursor_out_of_range`."
)


@dataclass(frozen=True, slots=True)
class Submission:
    """The body of `POST /v1/runs`. The text's size is not checked yet."""

    request_id: str
    kind: RunKind
    text: str
    on_input: OnInput


@dataclass(frozen=True, slots=True)
class InputReply:
    """The body of `POST /v1/runs/{id}/inputs/{input_id}`: exactly one is not None."""

    answer: str | None
    action: str | None


@dataclass(frozen=True, slots=True)
class MessagesQuery:
    """The query of `GET /v1/session/messages`. `after` is -1 for all messages."""

    after: int
    thinking: bool


@dataclass(frozen=True, slots=True)
class JournalQuery:
    """The query of `GET /v1/journal`. `after` may be out of range."""

    after: int
    limit: int
    wait_s: int


@dataclass(frozen=True, slots=True)
class EventsQuery:
    """The query of `GET /v1/events`, with `Last-Event-ID` taken in. `after` may be out of range."""

    after: int
    transient: bool
    thinking: bool
    heartbeat_s: int


class SubmissionSchema(Strict):
    """A prompt or a command, with the id that makes it idempotent."""

    request_id = request_id_field("Chosen by the controller, unique in the session.")
    prompt = fields.String(metadata={"description": f"A user message. {_SIZE}", "minLength": 1})
    command = fields.String(metadata={"description": f"A slash command. {_SIZE}", "pattern": "^/"})
    on_input = fields.String(
        load_default="block",
        validate=validate.OneOf(("block", "wait")),
        metadata={"description": "What a question or an approval does: end the run, or wait for an answer."},
    )

    @validates_schema
    def _has_one_text(self, data: Mapping[str, object], **_context: object) -> None:
        if ("prompt" in data) == ("command" in data):
            raise ValidationError("Exactly one of prompt and command must be given.")


class InputReplySchema(Strict):
    """An answer to a question, or the decision on an approval."""

    answer = fields.String(metadata={"description": f"Of a question: label, 1-based number or text. {_SIZE}"})
    action = fields.String(
        validate=validate.OneOf(("allow", "allow_session", "deny")),
        metadata={"description": "Of an approval. `allow_session` also allows the like for the rest of the session."},
    )

    @validates_schema
    def _has_one_reply(self, data: Mapping[str, object], **_context: object) -> None:
        if ("answer" in data) == ("action" in data):
            raise ValidationError("Exactly one of answer and action must be given.")


class NothingSchema(Strict):
    """A body or query that has no fields."""


class RequestQuerySchema(Strict):
    """Which run a request id made."""

    request_id = request_id_field("The id that the run was submitted with.")


class MessagesQuerySchema(Strict):
    """Stored messages after an index."""

    after = Whole(
        load_default=-1,
        validate=validate.Range(min=-1),
        metadata={"description": "Index of the last message that was seen; -1 for none."},
    )
    thinking = Switch(load_default=False, metadata={"description": "Show what the model thought."})


class JournalQuerySchema(Strict):
    """Events after a seq, waited for if there are none."""

    after = Whole(load_default=0, metadata={"description": _CURSOR})
    limit = Whole(
        load_default=limits.JOURNAL_PAGE_DEFAULT_COUNT,
        validate=validate.Range(min=1, max=limits.JOURNAL_PAGE_MAX_COUNT),
        metadata={"description": "Events of one page at most."},
    )
    wait = Whole(
        load_default=0,
        validate=validate.Range(min=0, max=limits.LONG_POLL_MAX_S),
        metadata={"description": "Seconds that an empty page is held back for."},
    )


class EventsQuerySchema(Strict):
    """A stream of events after a seq."""

    after = Whole(load_default=0, metadata={"description": _CURSOR})
    transient = Switch(load_default=False, metadata={"description": "Send live items too."})
    thinking = Switch(load_default=False, metadata={"description": "Send `delta.thinking` too, with `transient`."})
    heartbeat = Whole(
        load_default=limits.HEARTBEAT_DEFAULT_S,
        validate=validate.Range(min=1, max=limits.HEARTBEAT_MAX_S),
        metadata={"description": "Seconds of silence after which a heartbeat is sent."},
    )


_SUBMISSION = SubmissionSchema()
_INPUT_REPLY = InputReplySchema()
_NOTHING = NothingSchema()
_REQUEST_QUERY = RequestQuerySchema()
_MESSAGES_QUERY = MessagesQuerySchema()
_JOURNAL_QUERY = JournalQuerySchema()
_EVENTS_QUERY = EventsQuerySchema()


def read_submission(body: JsonValue) -> Submission:
    """Read the body of `POST /v1/runs`. Raises `BadRequest`."""
    values = cast("dict[str, str]", load_body(_SUBMISSION, body))
    kind: RunKind = "prompt" if "prompt" in values else "command"
    return Submission(values["request_id"], kind, values[kind], cast(OnInput, values["on_input"]))


def read_input_reply(body: JsonValue) -> InputReply:
    """Read the body of `POST /v1/runs/{id}/inputs/{input_id}`. Raises `BadRequest`."""
    values = cast("dict[str, str]", load_body(_INPUT_REPLY, body))
    return InputReply(values.get("answer"), values.get("action"))


def read_empty_body(body: JsonValue) -> None:
    """Accept an empty object, or no body. Raises `BadRequest`."""
    load_body(_NOTHING, body)


def read_empty_query(pairs: Pairs) -> None:
    """Accept no parameters. Raises `BadRequest`."""
    load_query(_NOTHING, pairs)


def read_request_query(pairs: Pairs) -> str:
    """Read the request id of `GET /v1/runs`. Raises `BadRequest`."""
    return cast(str, load_query(_REQUEST_QUERY, pairs)["request_id"])


def read_messages_query(pairs: Pairs) -> MessagesQuery:
    """Read the query of `GET /v1/session/messages`. Raises `BadRequest`."""
    values = load_query(_MESSAGES_QUERY, pairs)
    return MessagesQuery(cast(int, values["after"]), cast(bool, values["thinking"]))


def read_journal_query(pairs: Pairs) -> JournalQuery:
    """Read the query of `GET /v1/journal`. Raises `BadRequest`."""
    values = cast("dict[str, int]", load_query(_JOURNAL_QUERY, pairs))
    return JournalQuery(values["after"], values["limit"], values["wait"])


def read_events_query(pairs: Pairs, last_event_id: str | None) -> EventsQuery:
    """Read the query of `GET /v1/events` and its `Last-Event-ID` header, which wins. Raises `BadRequest`."""
    values = load_query(_EVENTS_QUERY, pairs)
    after = cast(int, values["after"])
    if last_event_id:
        try:
            after = Whole().deserialize(last_event_id.strip())
        except ValidationError as error:
            raise BadRequest("Last-Event-ID: Not an integer.") from error
    return EventsQuery(
        after, cast(bool, values["transient"]), cast(bool, values["thinking"]), cast(int, values["heartbeat"])
    )
