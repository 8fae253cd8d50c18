"""The routes of the automation profile as data: what each takes, and everything that it can answer.

Documents are generated from this table (`aura.wire.openapi`); a test holds it together with the routes that are served.
It handles no request.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from marshmallow import Schema

from aura.wire.codes import CODES, Code
from aura.wire.schemas import automation as requests
from aura.wire.schemas import event_data, records

PREFIX = "/v1"
EVERYWHERE = ("bad_request", "unauthorized", "internal", "store_unavailable")


@dataclass(frozen=True, slots=True)
class PathParameter:
    """A variable part of a path. Any text is taken; one of another form names nothing, which is `not_found`."""

    name: str
    says: str
    example: str


@dataclass(frozen=True, slots=True)
class Success:
    """One answer that is no error. `schemas` are alternatives; none means a stream of events."""

    status: int
    says: str
    schemas: tuple[type[Schema], ...]
    headers: tuple[str, ...] = ("Cache-Control",)


@dataclass(frozen=True, slots=True)
class Operation:
    """One route. `name` is its operationId; `codes` are the errors that it has beyond those of every route."""

    name: str
    method: str
    path: str
    summary: str
    says: str
    successes: tuple[Success, ...]
    codes: tuple[str, ...] = ()
    parameters: tuple[PathParameter, ...] = ()
    query: type[Schema] | None = None
    body: type[Schema] | None = None
    body_required: bool = False
    request_headers: tuple[str, ...] = field(default=())

    def errors(self) -> dict[int, list[Code]]:
        """Return the codes that it can answer with, by HTTP status."""
        found: dict[int, list[Code]] = {}
        for name in (*EVERYWHERE, *self.codes):
            code = CODES[name]
            assert code.http_status is not None, name
            found.setdefault(code.http_status, []).append(code)
        return dict(sorted(found.items()))


_RUN_ID = PathParameter("run_id", "The run: `run_` and a UUID v7.", "run_019e4d20-8f6a-7c31-9b52-6d1f0c3a7e84")
_INPUT_ID = PathParameter(
    "input_id", "The question or approval: `inp_` and a UUID v7.", "inp_019e4d20-9a07-7d4e-8c11-2f5b7a9d3e60"
)

OPERATIONS = (
    Operation(
        "getServer",
        "GET",
        "/server",
        "Describe the server",
        "The process, what it serves and where. `state` is `stopping` once it takes no new runs.",
        (Success(200, "The server.", (records.ServerInfoSchema,)),),
    ),
    Operation(
        "getSession",
        "GET",
        "/session",
        "Describe the served session",
        "What is stored of it, the engine's status line, and the run that has not settled, if there is one.",
        (Success(200, "The session.", (records.SessionInfoSchema,)),),
    ),
    Operation(
        "getMessages",
        "GET",
        "/session/messages",
        "Read the stored conversation",
        "Messages of the latest save that are not system ones. An index at or beyond the end gives an empty list.",
        (
            Success(
                200,
                "The messages; each has `thinking` iff it was asked for.",
                (records.MessagePageSchema, records.ThinkingMessagePageSchema),
            ),
        ),
        query=requests.MessagesQuerySchema,
    ),
    Operation(
        "submitRun",
        "POST",
        "/runs",
        "Submit a prompt or a command",
        "Idempotent by `request_id`, which is unique in the session's journal, across server restarts: the same body "
        "again returns the run that it made, in whatever state it is, and executes nothing. A prompt is a user "
        "message, even one that begins with `/`. A command begins with `/` and names a known one; those that would "
        "change which session is served are refused.",
        (
            Success(202, "The run is accepted and durable.", (records.RunSchema,)),
            Success(
                200,
                "This request id made a run before; here is its record.",
                (records.RunSchema,),
                ("Cache-Control", "Idempotent-Replay"),
            ),
        ),
        ("busy", "request_conflict", "session_frozen", "shutting_down", "overloaded"),
        body=requests.SubmissionSchema,
        body_required=True,
    ),
    Operation(
        "findRun",
        "GET",
        "/runs",
        "Find the run of a request",
        "The run that a request id made: how a controller that lost an answer learns what became of it.",
        (Success(200, "The run.", (records.RunSchema,)),),
        ("not_found",),
        query=requests.RequestQuerySchema,
    ),
    Operation(
        "getRun",
        "GET",
        "/runs/{run_id}",
        "Read a run",
        "Its record as it is now. It is over when `terminal` is true, and only then.",
        (Success(200, "The run.", (records.RunSchema,)),),
        ("not_found",),
        (_RUN_ID,),
    ),
    Operation(
        "cancelRun",
        "POST",
        "/runs/{run_id}/cancel",
        "Ask for a run's cancellation",
        "A request, not a result: the terminal record says what came of it. A settled run is returned unchanged.",
        (Success(202, "The run, with the request noted.", (records.RunSchema,)),),
        ("not_found", "session_frozen", "overloaded"),
        (_RUN_ID,),
        body=requests.NothingSchema,
    ),
    Operation(
        "answerInput",
        "POST",
        "/runs/{run_id}/inputs/{input_id}",
        "Answer a question or decide an approval",
        "A question takes `answer`: an option's label or its 1-based number, or free text; several are separated by "
        "commas where `multi_select` is true. An approval takes `action`. The first answer counts.",
        (Success(200, "It is resolved.", (records.NothingDoneSchema,)),),
        ("not_found", "not_pending", "session_frozen", "overloaded"),
        (_RUN_ID, _INPUT_ID),
        body=requests.InputReplySchema,
        body_required=True,
    ),
    Operation(
        "readJournal",
        "GET",
        "/journal",
        "Read events, waiting for them if asked to",
        "Durable events after a seq, in order and without a gap. With `wait`, an empty page is held back until there "
        "is an event, the time is over or the server ends. This is how a controller follows a run.",
        (Success(200, "A page of events.", (event_data.JournalPageSchema,)),),
        ("cursor_out_of_range", "overloaded"),
        query=requests.JournalQuerySchema,
    ),
    Operation(
        "streamEvents",
        "GET",
        "/events",
        "Stream events",
        "The same events as server-sent events: `id` is the seq, `event` the type, `data` the whole event. Without a "
        "cursor it begins at the first one. After `heartbeat` seconds of silence comes `event: heartbeat` with "
        "`data: {}`. With `transient=true` live items come between them, without `id`: they are recognised by their "
        "type, may be dropped, and are superseded by durable events. A cursor out of range is refused before the "
        "stream begins.",
        (
            Success(
                200,
                "The stream. It ends when the server does; comment lines begin with a colon.",
                (),
                ("Cache-Control", "X-Accel-Buffering"),
            ),
        ),
        ("cursor_out_of_range", "overloaded"),
        query=requests.EventsQuerySchema,
        request_headers=("Last-Event-ID",),
    ),
    Operation(
        "shutDown",
        "POST",
        "/shutdown",
        "Stop the server",
        "New runs are refused at once. The live run is cancelled with reason `shutdown` and given up to 60 s to "
        "settle; then the session is saved and the process ends. Again, it changes nothing.",
        (Success(202, "It is on its way down.", (records.NothingDoneSchema,)),),
        body=requests.NothingSchema,
    ),
)
