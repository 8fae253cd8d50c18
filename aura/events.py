"""Everything that can happen, as frozen values: the event catalogue of SHAPES.md section 5.

An event says what happened, not where it is stored or how it is shown. Its contract type and bytes are made in
`aura.wire`. `source` is the agent at work when it is not the main one; the main lane leaves it None.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from aura.conversation import Call
from aura.jsontypes import JsonObject, JsonValue
from aura.runs import Outcome, RunError, RunResult

Reason = Literal["start", "checkpoint", "run", "command", "shutdown"]
StopReason = Literal["sigint", "sigterm", "request", "launcher_lost"]
Transport = Literal["stdio", "http_streamable", "sse"]
McpState = Literal["connected", "failed", "not_attempted"]
ObserverKind = Literal["collecting", "claiming"]
Because = Literal["released", "expired", "displaced"]
Policy = Literal["cancel", "continue", "park"]


@dataclass(frozen=True, slots=True)
class Source:
    """The agent that an event belongs to, when it is not the session's main one."""

    agent_id: str
    agent_name: str
    parent_agent_id: str | None = None
    task_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Event:
    """Base of all events. `kind` is the internal name; the catalogue maps it to a contract type."""

    kind: ClassVar[str]
    full: ClassVar[bool] = False  # recorded only by runs that record everything: the gateway's
    source: Source | None = None

    def __repr__(self) -> str:
        """Return the class and all fields. One for all: one made for each is a third of what this module costs."""
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in fields(self))})"


@dataclass(frozen=True, slots=True)
class Stamped:
    """An event, the moment it happened in Unix ms, and the run it belongs to, if any."""

    at_ms: int
    event: Event
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and cost of one model call, as the provider reported them."""

    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServerStarted(Event):
    """A server holds the session from now on. `resumed_revision` is None for a fresh session."""

    kind = "server.started"
    pid: int
    version: str
    resumed_revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServerStopping(Event):
    """The server takes no new runs any more."""

    kind = "server.stopping"
    reason: StopReason


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunAccepted(Event):
    """A run exists and will end in exactly one terminal record."""

    kind = "run.accepted"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MessageUser(Event):
    """The input as it entered the conversation."""

    kind = "message.user"
    message_id: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunStarted(Event):
    """The input is in the conversation; the engine is at work."""

    kind = "run.started"
    run_id: str
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MessageAssistant(Event):
    """One model iteration's answer. Thinking is never part of it. `usage` is for SQL, not for the contract's data."""

    kind = "message.assistant"
    message_id: str
    content: str
    tool_calls: tuple[Call, ...] = ()
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolStarted(Event):
    """A call begins: durable before anything happens, unless the tool only reads."""

    kind = "tool.started"
    call_id: str
    name: str
    args: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolFinished(Event):
    """A call ended. `result` is what entered the conversation; `error` is None unless status is error."""

    kind = "tool.finished"
    call_id: str
    name: str
    status: Literal["ok", "error"]
    result: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Notice(Event):
    """Something a person should know; no program decides by it."""

    kind = "notice"
    level: Literal["info", "warning", "error"]
    origin: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StatusChanged(Event):
    """The engine's status line; recorded only when it differs from the last one."""

    kind = "status"
    agent: str
    mode: str | None
    provider: str
    model: str
    iteration: int
    tokens_used: int
    tokens_max: int


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that a question offers."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InputRequired(Event):
    """A question or an approval is pending. `expires_at_ms` None: it waits for as long as its run lives."""

    kind = "input.required"
    input_id: str
    input_kind: Literal["ask", "confirm"]
    question: str
    options: tuple[Option, ...] = ()
    multi_select: bool = False
    tool: str | None = None
    detail: str | None = None
    pattern: str | None = None
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InputResolved(Event):
    """The question or approval is decided. `answer` is None when it was dismissed."""

    kind = "input.resolved"
    input_id: str
    answer: JsonValue
    answered_by: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommandResult(Event):
    """What a slash command said. `error` is None when it worked."""

    kind = "command.result"
    command: str
    message: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SessionPersisted(Event):
    """The session was saved. `changed` is False when the content was already stored."""

    kind = "session.persisted"
    revision: str
    messages: int
    reason: Reason
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SessionPersistFailed(Event):
    """A save failed; what was saved before is safe."""

    kind = "session.persist_failed"
    error: RunError
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunCancelRequested(Event):
    """Somebody asked for the run to be cancelled. It is a request, not a result."""

    kind = "run.cancel_requested"
    reason: str = "request"
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunFinished(Event):
    """The engine is done with the run; the session is not yet known to be safe."""

    kind = "run.finished"
    outcome: Outcome
    error: RunError | None = None
    result: RunResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunPersisted(Event):
    """Terminal: the session holds what the run did."""

    kind = "run.persisted"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunPersistFailed(Event):
    """Terminal: the run's outcome stands, but its last save failed."""

    kind = "run.persist_failed"
    error: RunError


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunLost(Event):
    """Terminal: the server that held the run is gone. `revision` and `messages` describe the session found later."""

    kind = "run.lost"
    revision: str
    messages: int
    persisted_seq: int


# --- what the gateway records besides: the contract's readers see a notice -----------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SessionInfo(Event):
    """Which model answers, and how many tokens its context has where the configuration says so."""

    kind = "session.info"
    full = True
    model: str
    context_limit: int | None = None


@dataclass(frozen=True, slots=True)
class McpServerStatus:
    """How one MCP server stands at the start of a run. `reason` says why it failed, without a secret."""

    name: str
    transport: Transport
    status: McpState
    tools_count: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class McpStatus(Event):
    """How the run's MCP servers stand. Not recorded for an agent without servers."""

    kind = "mcp.status"
    full = True
    servers: tuple[McpServerStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolRequested(Event):
    """The model has asked for a call; nothing has looked at it yet."""

    kind = "tool.requested"
    full = True
    call_id: str
    name: str
    args: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolUsage(Event):
    """The tokens of the model call that asked for these calls, once they have all ended."""

    kind = "tool.usage"
    full = True
    call_ids: tuple[str, ...]
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Observer:
    """Somebody who reads a session's events. One that claims keeps the live run alive by being there."""

    id: str
    kind: ObserverKind
    presence: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObserverAttached(Event):
    """Somebody began to read."""

    kind = "observer.attached"
    full = True
    observer: Observer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObserverDetached(Event):
    """Somebody no longer reads."""

    kind = "observer.detached"
    full = True
    observer: Observer
    because: Because


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClaimsExhausted(Event):
    """Nobody claims the live run any more."""

    kind = "claims.exhausted"
    full = True


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LivenessDecided(Event):
    """What becomes of a run that nobody claims."""

    kind = "liveness.decided"
    full = True
    policy: Policy


# --- transient: never stored, never numbered, superseded by durable events ---------------------------------------


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a message that is still being written. `offset` counts characters of that message's text."""

    message_id: str
    offset: int
    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """One line that a running tool wrote."""

    name: str
    line: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a running MCP tool is, in the server's own numbers. `text` is the same as a line for people."""

    name: str
    call_id: str
    progress: float
    total: float | None
    message: str | None

    @property
    def text(self) -> str:
        """Return progress, total and message as one line."""
        share = f"{self.progress:g}" if self.total is None else f"{self.progress:g}/{self.total:g}"
        return f"{share} {self.message}" if self.message else share


@dataclass(frozen=True, slots=True)
class Spinner:
    """What the engine is waiting for; "" when it no longer waits."""

    text: str


Transient = Delta | ToolOutput | ToolProgress | Spinner
