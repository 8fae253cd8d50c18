"""The body of a chat completions request, from the engine's `Request`. Pure; it sends nothing.

The body is encoded here, on the run thread, and not by the SDK: its typed `create` spends 175 ms of the io loop's
time on a conversation of 1,000 messages, for every model call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from aura.config.spec import GenerationSpec
from aura.conversation import Call, Message
from aura.engine.providers.base import Request, ToolDefinition
from aura.jsontypes import JsonObject, JsonValue
from aura.wire import canonical
from aura.wire.images import data_url


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where servers of the protocol differ. `length_key` is the name of the answer's token limit."""

    length_key: str = "max_tokens"


def encode_request(request: Request, dialect: Dialect) -> bytes:
    """Return the JSON body: streamed, with usage. Thinking of earlier messages is not sent back.

    Raises `canonical.NotCanonical` for arguments that cannot be JSON.
    """
    body: dict[str, JsonValue] = {
        "model": request.model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    effort = request.generation.reasoning_effort or _effort(request.think)
    if effort is not None:
        body["reasoning_effort"] = effort
    body.update(_generation(request.generation, dialect))
    if request.generation.additional is not None:
        body.update(json.loads(request.generation.additional.sent.reveal()))
    return canonical.encode(body)


def _messages(request: Request) -> list[JsonValue]:
    system: list[JsonValue] = [{"role": "system", "content": request.system}] if request.system else []
    return system + [_message(message) for message in request.messages]


def _message(message: Message) -> JsonObject:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.role == "user" and message.images:
        return {"role": "user", "content": _parts(message)}
    if message.role == "assistant" and message.calls:
        calls: list[JsonValue] = [_call(call) for call in message.calls]
        return {"role": "assistant", "content": message.content, "tool_calls": calls}
    return {"role": message.role, "content": message.content}


def _parts(message: Message) -> list[JsonValue]:
    """Return a user message with its images (`aura.wire.images`)."""
    parts: list[JsonValue] = [{"type": "text", "text": message.content}]
    urls = (data_url(image) for image in message.images)
    return parts + [{"type": "image_url", "image_url": {"url": url}} for url in urls if url]


def _call(call: Call) -> JsonObject:
    arguments = canonical.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _tool(tool: ToolDefinition) -> JsonObject:
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _effort(think: str | None) -> str | None:
    """Map engine.md 5.2: nothing and "off" are not sent, "on" is the middle level, levels stay as they are."""
    if think in (None, "off"):
        return None
    return "medium" if think == "on" else think


def _generation(generation: GenerationSpec, dialect: Dialect) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "frequency_penalty": generation.frequency_penalty,
        "presence_penalty": generation.presence_penalty,
        dialect.length_key: generation.max_output_tokens,
        "stop": list(generation.stop) or None,
        "seed": generation.seed,
    }
    return {key: value for key, value in options.items() if value is not None}
