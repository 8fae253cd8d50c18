"""What the contract's answers say, as frozen values. Times are RFC 3339 UTC text, as the server sent them.

These classes hold and tell; they read nothing and check nothing. The strict schemas that make them are in
`_schemas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from aura_automation.codes import BY_CODE
from aura_automation.errors import AutomationError, Json

RunKind: TypeAlias = Literal["prompt", "command"]
OnInput: TypeAlias = Literal["block", "wait"]
RunState: TypeAlias = Literal["accepted", "running", "finished", "persisted", "persist_failed", "lost"]
Outcome: TypeAlias = Literal["completed", "failed", "cancelled", "rejected", "blocked"]
Action: TypeAlias = Literal["allow", "allow_session", "deny"]


@dataclass(frozen=True, slots=True)
class Parent:
    """Lineage of a fork: the parent's id and the exact revision that was copied."""

    id: str
    revision: str


@dataclass(frozen=True, slots=True)
class Summary:
    """A stored session. `messages` counts its non-system messages; `revision` is the SHA-256 of its exported
    bytes.
    """

    id: str
    title: str
    created_at: str
    updated_at: str
    revision: str
    messages: int
    frozen: bool
    parent: Parent | None


@dataclass(frozen=True, slots=True)
class Error:
    """What went wrong. `details` has the contract's keys (status, provider, retry_after_ms, reason, last_seq,
    …).

    `hint` is only known from offline commands.
    """

    code: str
    message: str
    retryable: bool
    details: Mapping[str, Json]
    hint: str | None = None

    def exception(self) -> AutomationError:
        """Return the typed exception of this error's code."""
        kind = BY_CODE[self.code]
        return kind(self.message, retryable=self.retryable, details=self.details, hint=self.hint)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The final assistant text, or a command's output."""

    content: str


@dataclass(frozen=True, slots=True)
class Persisted:
    """The latest save: revision, non-system message count, seq of the event that reported it."""

    revision: str
    messages: int
    seq: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a run did: model iterations, tool calls by name, calls that ended in an error."""

    iterations: int
    tool_calls: Mapping[str, int]
    tool_errors: int


@dataclass(frozen=True, slots=True)
class Run:
    """The run record. It is done only when `terminal` is true; `finished` does not mean that the session is
    safe.
    """

    id: str
    request_id: str
    kind: RunKind
    request_digest: str
    on_input: OnInput
    session_id: str
    state: RunState
    terminal: bool
    outcome: Outcome | None
    error: Error | None
    persist_error: Error | None
    cancel_requested: bool
    result: RunResult | None
    persisted: Persisted | None
    stats: Stats
    accepted_seq: int
    accepted_at: str
    started_at: str | None
    finished_at: str | None
    settled_at: str | None

    def raise_for_outcome(self) -> None:
        """Raise what went wrong, typed by its code: the run's error first, else a failed save. Nothing: it
        went well.
        """
        wrong = self.error or self.persist_error
        if wrong is not None:
            raise wrong.exception()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The server process. `state` is `ready` or `stopping`."""

    api: int
    aura_version: str
    commit: str
    pid: int
    session_id: str
    workdir: str
    write_home: str
    url: str
    started_at: str
    state: Literal["ready", "stopping"]
    last_seq: int


@dataclass(frozen=True, slots=True)
class Status:
    """The engine's status line."""

    agent: str
    mode: str | None
    provider: str | None
    model: str | None
    iteration: int
    tokens_used: int
    tokens_max: int | None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The served session: what is stored (`session`, `persisted_seq`) and what is live (`status`, `meta`,
    `run`).
    """

    session: Summary
    persisted_seq: int
    status: Status
    meta: Mapping[str, Json]
    run: Run | None


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that an assistant message asks for."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Message:
    """One stored non-system message; `index` is 0-based. `thinking` is None unless it was asked for."""

    index: int
    message_id: str | None
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None
    calls: tuple[Call, ...] | None
    tool_call_id: str | None
    tool_name: str | None
    type: int | None
    created_at: str | None
    thinking: str | None = None


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages after a given index; `total` counts all."""

    messages: tuple[Message, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Event:
    """One durable event, checked against the contract's table. `run_id` is None outside runs."""

    seq: int
    time: str
    type: str
    session_id: str
    run_id: str | None
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class TransientEvent:
    """A live event without a seq: `delta.content`, `delta.thinking`, `tool.output` or `spinner`. It may be
    dropped.
    """

    type: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Events after a given seq, in order and without a hole; `last_seq` is the journal's end."""

    events: tuple[Event, ...]
    last_seq: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A ready file that says that the server is up."""

    api: int
    url: str
    pid: int
    session_id: str
    aura_version: str
    commit: str
    workdir: str
    write_home: str


@dataclass(frozen=True, slots=True)
class SessionList:
    """`session list`: newest first; `warnings` name what could not be listed."""

    sessions: tuple[Summary, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """`session import`: pin `session.revision`, not `source_sha256`, which is the input file's digest."""

    session: Summary
    created: bool
    frozen_now: bool
    source_sha256: str


@dataclass(frozen=True, slots=True)
class Exported:
    """`session export`: `written` is false when an identical file was there."""

    session: Summary
    path: str
    sha256: str
    written: bool


@dataclass(frozen=True, slots=True)
class Forked:
    """`session fork`: `created` is false when the same fork was there."""

    session: Summary
    parent: Summary
    created: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """`session freeze`: `changed` is false when it was frozen before."""

    session: Summary
    changed: bool


# --- read inside the client only ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """The body of an HTTP error, or what an offline command says on stderr."""

    error: Error


@dataclass(frozen=True, slots=True)
class FailedReady:
    """A ready file that says why the server did not start."""

    api: int
    error: Error


@dataclass(frozen=True, slots=True)
class RunChange:
    """The data of the events that carry a run record."""

    run: Run
