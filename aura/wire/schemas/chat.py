"""Reads the body of `POST /v1/chat/completions` (gateway.md 2.6): what we use strictly, everything else not at all.

Each failure is one `BadRequest`, in the order of that page. Which agent is meant, and whether the session id will do,
is the service's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from aura import limits
from aura.conversation import Call
from aura.errors import BadRequest
from aura.jsontypes import JsonObject, JsonValue
from aura.wire import canonical
from aura.wire.chat_request import ChatMessage, ChatRequest, OfferedTool

_ROLES = ("user", "assistant", "tool")


class _Lenient(Schema):
    class Meta:
        unknown = EXCLUDE


class Content(fields.Field[str]):
    """A text, null, or parts of which the texts count."""

    def _deserialize(self, value: object, attr: str | None, data: Mapping[str, object] | None, **kwargs: object) -> str:
        if isinstance(value, str):
            return value
        if not isinstance(value, list):
            raise ValidationError("Not a text and not a list of parts.")
        return "\n".join(_part(part) for part in value)


class FunctionCallSchema(_Lenient):
    """What an assistant's message says of one call."""

    name = fields.String(required=True)
    arguments = fields.Raw(load_default="")


class CallSchema(_Lenient):
    """A call of an assistant's message."""

    id = fields.String(required=True)
    function = fields.Nested(FunctionCallSchema, required=True)


class MessageSchema(_Lenient):
    """A message of the conversation."""

    role = fields.String(required=True)
    content = Content(load_default="", allow_none=True)
    tool_calls = fields.List(fields.Nested(CallSchema), load_default=list, allow_none=True)
    tool_call_id = fields.String(load_default="", allow_none=True)


class FunctionSchema(_Lenient):
    """A function that the caller offers."""

    name = fields.String(required=True, validate=validate.Regexp(r"[A-Za-z0-9_-]{1,64}\Z"))
    description = fields.String(load_default="", allow_none=True)
    parameters = fields.Dict(load_default=dict, allow_none=True)


class ToolSchema(_Lenient):
    """A tool that the caller offers."""

    type = fields.String(load_default="function")
    function = fields.Nested(FunctionSchema, required=True)


class ChatRequestSchema(_Lenient):
    """The body of a chat request. Members that are not named here are ignored."""

    model = fields.String(load_default=None, allow_none=True)
    messages = fields.List(fields.Nested(MessageSchema), required=True)
    stream = fields.Boolean(load_default=False, allow_none=True)
    max_tokens = fields.Integer(
        load_default=None, allow_none=True, validate=validate.Range(1, limits.CONTEXT_MAX_TOKENS)
    )
    metadata = fields.Dict(keys=fields.String(), values=fields.String(), load_default=dict, allow_none=True)
    user = fields.String(load_default=None, allow_none=True)
    tools = fields.List(fields.Nested(ToolSchema), load_default=list, allow_none=True)


def read_chat_request(body: JsonValue) -> ChatRequest:
    """Return the request. Raises `BadRequest` whose `details.param` names the member."""
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    if body.get("messages") in (None, []):
        raise _bad("No messages provided", "messages")
    try:
        values = cast("dict[str, object]", ChatRequestSchema().load(body))
    except ValidationError as error:
        name, problem = _first_problem(error.messages)
        raise _bad(f"{name}: {problem}", name.partition(".")[0]) from error
    offered = tuple(_tool(tool) for tool in _objects(values["tools"]) if tool["type"] == "function")
    _check_names(offered)
    given = _objects(values["messages"])
    _check_last(given, offered)
    messages = tuple(found for item in given if (found := _message(item, with_tools=bool(offered))) is not None)
    if not messages or messages[-1].role not in ("user", "tool"):
        raise _bad("the last message has no content", "messages")
    return ChatRequest(
        model=cast("str | None", values["model"]) or None,
        messages=messages,
        stream=bool(values["stream"]),
        max_tokens=cast("int | None", values["max_tokens"]),
        metadata=cast("Mapping[str, str]", values["metadata"] or {}),
        user=cast("str | None", values["user"]),
        tools=offered,
    )


def _check_last(messages: list[dict[str, object]], offered: tuple[OfferedTool, ...]) -> None:
    role = messages[-1]["role"]
    if role != "user" and not (role == "tool" and offered):
        raise _bad("the last message must be a user's, or a tool's result when tools are offered", "messages")
    if role == "tool" and not any(message["role"] == "user" for message in messages):
        raise _bad("there is no user message", "messages")


def _check_names(offered: tuple[OfferedTool, ...]) -> None:
    names = [tool.name for tool in offered]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _bad(f"the tool {twice} is offered twice", "tools")


def _message(fields: Mapping[str, object], *, with_tools: bool) -> ChatMessage | None:
    """Return a message that counts, None for the others (gateway.md 2.6, message handling)."""
    role, content = str(fields["role"]), cast("str | None", fields["content"]) or ""
    if role not in _ROLES:
        return None
    calls = tuple(_call(call) for call in _objects(fields["tool_calls"])) if with_tools and role == "assistant" else ()
    if role == "tool":
        return ChatMessage(role, content, (), str(fields["tool_call_id"] or "")) if with_tools else None
    return ChatMessage(role, content, calls) if content.strip() or calls else None


def _call(fields: Mapping[str, object]) -> Call:
    function = cast("Mapping[str, JsonValue]", fields["function"])
    return Call(str(fields["id"]), str(function["name"]), _arguments(function["arguments"]))


def _arguments(value: JsonValue) -> JsonObject:
    """Return a call's arguments, which are JSON in a text; what is none stays a text under a name of ours."""
    if isinstance(value, Mapping):
        return value
    try:
        decoded = canonical.decode(value) if isinstance(value, str) and value.strip() else {}
    except canonical.NotCanonical:
        decoded = value
    return decoded if isinstance(decoded, Mapping) else {"arguments": decoded}


def _tool(fields: Mapping[str, object]) -> OfferedTool:
    function = cast("Mapping[str, object]", fields["function"])
    parameters = cast("JsonObject", function["parameters"] or {})
    return OfferedTool(str(function["name"]), str(function["description"] or ""), parameters)


def _part(part: object) -> str:
    if not isinstance(part, Mapping) or part.get("type") not in ("text", "input_text"):
        raise ValidationError("Only parts of the type text are taken.")
    text = part.get("text")
    if not isinstance(text, str):
        raise ValidationError("A part has no text.")
    return text


def _objects(value: object) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", value or [])


def _first_problem(messages: object, path: str = "") -> tuple[str, str]:
    while isinstance(messages, Mapping) and messages:
        key, messages = next(iter(messages.items()))
        path = f"{path}.{key}" if path else str(key)
    problem = messages[0] if isinstance(messages, list) and messages else messages
    return path, str(problem)


def _bad(message: str, param: str) -> BadRequest:
    return BadRequest(message, details={"param": param})
