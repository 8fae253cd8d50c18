"""Reads the data of the contract's events back into events: what a fold and the derived rows need of them.

It takes what `aura.wire.automation.event_data` writes, and the same from other programs, whose further keys are not
looked at. What the contract does not carry (usage, who answered, why a run was cancelled) cannot be read back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from aura import events as e
from aura.conversation import Call
from aura.jsontypes import JsonObject, JsonValue
from aura.runs import Outcome, RunError, RunResult

IMPORTED_BY = "import"  # who answered a question, where the journal does not say

T = TypeVar("T", str, bool, int)
_OUTCOMES = ("completed", "failed", "cancelled", "rejected", "blocked")
_SAVE_REASONS = ("start", "checkpoint", "run", "command", "shutdown")
_STOP_REASONS = ("sigint", "sigterm", "request", "launcher_lost")


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a JSON object, read strictly. `path` names the object in errors, which are `ValueError`s."""

    path: str
    values: JsonObject

    def text(self, name: str) -> str:
        """Return a text."""
        return self._get(name, str, "a text")

    def flag(self, name: str) -> bool:
        """Return true or false."""
        return self._get(name, bool, "true or false")

    def whole(self, name: str) -> int:
        """Return a whole number from 0."""
        value = self._get(name, int, "a whole number")
        if isinstance(value, bool) or not 0 <= value < 1 << 63:
            raise self.error(name, "a whole number from 0")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None for null."""
        return None if self._value(name) is None else self.text(name)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of the texts that there are."""
        value = self.text(name)
        if value not in choices:
            raise self.error(name, "one of " + ", ".join(choices))
        return value

    def object(self, name: str) -> Members:
        """Return an object's members."""
        return Members(f"{self.path}.{name}", self._mapping(name))

    def optional_object(self, name: str) -> Members | None:
        """Return an object's members, or None for null."""
        return None if self._value(name) is None else self.object(name)

    def items(self, name: str) -> list[Members]:
        """Return the members of each object of an array; none for null."""
        value = self._value(name)
        if value is None:
            return []
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.error(name, "an array of objects")
        found = []
        for index, item in enumerate(value):
            if not isinstance(item, Mapping):
                raise self.error(f"{name}[{index}]", "an object")
            found.append(Members(f"{self.path}.{name}[{index}]", item))
        return found

    def any(self, name: str) -> JsonValue:
        """Return a value of any type."""
        return self._value(name)

    def error(self, name: str, accepted: str) -> ValueError:
        """Return the error of a member that is not what it must be."""
        return ValueError(f"{self.path}.{name} is not {accepted}")

    def _mapping(self, name: str) -> JsonObject:
        value = self._value(name)
        if not isinstance(value, Mapping):
            raise self.error(name, "an object")
        return value

    def _get(self, name: str, kind: type[T], accepted: str) -> T:
        value = self._value(name)
        if not isinstance(value, kind):
            raise self.error(name, accepted)
        return value

    def _value(self, name: str) -> JsonValue:
        if name not in self.values:
            raise ValueError(f"{self.path}.{name} is missing")
        return self.values[name]


def read_event(type: str, data: JsonObject) -> e.Event:
    """Return the event of a contract type. Raises `ValueError` for an unknown type and for data that is not its."""
    reader = _READERS.get(type)
    if reader is None:
        raise ValueError(f"{type[:80]!r} is no type of event")
    return reader(Members("data", data))


def _server_started(data: Members) -> e.Event:
    revision = data.optional_text("resumed_revision")
    return e.ServerStarted(pid=data.whole("pid"), version=data.text("version"), resumed_revision=revision)


def _server_stopping(data: Members) -> e.Event:
    return e.ServerStopping(reason=cast(e.StopReason, data.choice("reason", _STOP_REASONS)))


def _run_accepted(data: Members) -> e.Event:
    data.object("run")
    return e.RunAccepted()


def _run_cancel_requested(data: Members) -> e.Event:
    data.object("run")
    return e.RunCancelRequested()


def _run_persisted(data: Members) -> e.Event:
    data.object("run")
    return e.RunPersisted()


def _run_finished(data: Members) -> e.Event:
    run = data.object("run")
    result = run.optional_object("result")
    return e.RunFinished(
        outcome=cast(Outcome, run.choice("outcome", _OUTCOMES)),
        error=_optional_error(run, "error"),
        result=RunResult(result.text("content")) if result is not None else None,
    )


def _run_persist_failed(data: Members) -> e.Event:
    return e.RunPersistFailed(error=_error(data.object("run").object("persist_error")))


def _run_lost(data: Members) -> e.Event:
    found = data.object("run").object("persisted")
    return e.RunLost(
        revision=found.text("revision"), messages=found.whole("messages"), persisted_seq=found.whole("seq")
    )


def _run_started(data: Members) -> e.Event:
    return e.RunStarted(run_id=data.text("run_id"), message_id=data.text("message_id"))


def _message_user(data: Members) -> e.Event:
    return e.MessageUser(message_id=data.text("message_id"), content=data.text("content"))


def _message_assistant(data: Members) -> e.Event:
    calls = tuple(
        Call(item.text("call_id"), item.text("name"), item.object("args").values) for item in data.items("tool_calls")
    )
    return e.MessageAssistant(message_id=data.text("message_id"), content=data.text("content"), tool_calls=calls)


def _tool_started(data: Members) -> e.Event:
    return e.ToolStarted(call_id=data.text("call_id"), name=data.text("name"), args=data.object("args").values)


def _tool_finished(data: Members) -> e.Event:
    status = data.choice("status", ("ok", "error"))
    return e.ToolFinished(
        call_id=data.text("call_id"),
        name=data.text("name"),
        status=cast(Literal["ok", "error"], status),
        result=data.text("result"),
        error=data.optional_text("error"),
    )


def _notice(data: Members) -> e.Event:
    level = data.choice("level", ("info", "warning", "error"))
    return e.Notice(
        level=cast(Literal["info", "warning", "error"], level),
        origin=data.text("source"),
        message=data.text("message"),
    )


def _status(data: Members) -> e.Event:
    return e.StatusChanged(
        agent=data.text("agent"),
        mode=data.optional_text("mode"),
        provider=data.text("provider"),
        model=data.text("model"),
        iteration=data.whole("iteration"),
        tokens_used=data.whole("tokens_used"),
        tokens_max=data.whole("tokens_max"),
    )


def _input_required(data: Members) -> e.Event:
    kind = data.choice("kind", ("ask", "confirm"))
    options = tuple(e.Option(item.text("label"), item.text("description")) for item in data.items("options"))
    return e.InputRequired(
        input_id=data.text("input_id"),
        input_kind=cast(Literal["ask", "confirm"], kind),
        question=data.text("question"),
        options=options,
        multi_select=data.flag("multi_select"),
        tool=data.optional_text("tool"),
        detail=data.optional_text("detail"),
        pattern=data.optional_text("pattern"),
    )


def _input_resolved(data: Members) -> e.Event:
    return e.InputResolved(input_id=data.text("input_id"), answer=data.any("answer"), answered_by=IMPORTED_BY)


def _command_result(data: Members) -> e.Event:
    return e.CommandResult(
        command=data.text("command"), message=data.text("message"), error=data.optional_text("error")
    )


def _session_persisted(data: Members) -> e.Event:
    return e.SessionPersisted(
        revision=data.text("revision"),
        messages=data.whole("messages"),
        reason=cast(e.Reason, data.choice("reason", _SAVE_REASONS)),
        changed=data.flag("changed"),
    )


def _session_persist_failed(data: Members) -> e.Event:
    reason = cast(e.Reason, data.choice("reason", _SAVE_REASONS))
    return e.SessionPersistFailed(error=_error(data.object("error")), reason=reason)


def _optional_error(data: Members, name: str) -> RunError | None:
    found = data.optional_object(name)
    return None if found is None else _error(found)


def _error(data: Members) -> RunError:
    details = {
        key: value if isinstance(value, str | int) or value is None else str(value)
        for key, value in data.object("details").values.items()
    }
    return RunError(data.text("code"), data.text("message"), data.flag("retryable"), details)


_READERS: Mapping[str, Callable[[Members], e.Event]] = {
    "server.started": _server_started,
    "server.stopping": _server_stopping,
    "run.accepted": _run_accepted,
    "run.started": _run_started,
    "run.cancel_requested": _run_cancel_requested,
    "run.finished": _run_finished,
    "run.persisted": _run_persisted,
    "run.persist_failed": _run_persist_failed,
    "run.lost": _run_lost,
    "message.user": _message_user,
    "message.assistant": _message_assistant,
    "tool.started": _tool_started,
    "tool.finished": _tool_finished,
    "notice": _notice,
    "status": _status,
    "input.required": _input_required,
    "input.resolved": _input_resolved,
    "command.result": _command_result,
    "session.persisted": _session_persisted,
    "session.persist_failed": _session_persist_failed,
}

EVENT_TYPES: tuple[str, ...] = tuple(_READERS)
