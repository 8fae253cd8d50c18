"""Chat completions messages: a conversation is `{"messages": [...], "tools"?: ...}`, as for fine-tuning, a list of
messages, or a file with one message on each line.

A message that `write_message` would not write exactly as it was keeps its record, so that an export has it again
(docs/formats.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aura.conversation import Call, Header, Message, MessageType, is_shown_to_model
from aura.errors import InvalidSession
from aura.jsontypes import JsonObject, JsonValue, items_at, object_at, text_at
from aura.wire import canonical
from aura.wire.formats.drafts import IMPORTED_KEY, Draft, Foreign, find_origin, finish, first_title, note, seal
from aura.wire.formats.pairs import complete_pairs
from aura.wire.formats.records import Record, Repair, Repairs, read_records, read_time, read_value
from aura.wire.images import data_url, read_url

NAME = "openai"
_ID_DIGITS = 32
_ROLES = frozenset(("user", "assistant", "tool", "function", "system", "developer"))


@dataclass(frozen=True, slots=True)
class Written:
    """A conversation in a foreign format. `left_out` counts stored messages that have no place in it."""

    fields: JsonObject
    left_out: int


def is_conversation(value: JsonValue) -> bool:
    """Tell whether a JSON value is a conversation in this format and can be no session document of ours."""
    if isinstance(value, list):
        return bool(value) and text_at(value[0], "role") in _ROLES
    if not isinstance(value, Mapping) or {"id", "title", "created_at", "system", "meta"} & set(value):
        return False
    messages = items_at(value, "messages")
    return bool(messages) and text_at(messages[0], "role") in _ROLES


def is_message(value: JsonValue) -> bool:
    """Tell whether a JSON value is a message in this format and cannot be a record of another one."""
    return isinstance(value, Mapping) and text_at(value, "role") in _ROLES and not {"type", "messages"} & set(value)


def read_lines(data: bytes, *, id: str | None = None) -> Foreign:
    """Return the conversation of a file with a message on each line. Raises what `read_conversation` raises."""
    repairs = Repairs()
    records = list(read_records(data, repairs))
    if not any(is_message(record.value) for record in records):
        raise _no_messages()
    return _read(records, {}, data, repairs, id)


def read_conversation(value: JsonValue, data: bytes, *, id: str | None = None) -> Foreign:
    """Return the conversation of a decoded value. Without `id` the session's is made of the source bytes `data`.

    Raises `InvalidSession` for what is no conversation, and `InvalidId`.
    """
    messages = value if isinstance(value, list) else value.get("messages") if isinstance(value, Mapping) else None
    if not isinstance(messages, list):
        raise _no_messages()
    repairs = Repairs()
    records = [read_value(number, item, repairs) for number, item in enumerate(messages, 1)]
    rest = {key: item for key, item in value.items() if key != "messages"} if isinstance(value, Mapping) else {}
    return _read(records, rest, data, repairs, id)


def write_conversation(header: Header, messages: Sequence[Message]) -> Written:
    """Return the conversation as models saw it, with the records that an import kept. System prompt and tools are the
    imported ones where the session has them still."""
    items: list[tuple[int, JsonValue]] = []
    line, left_out = 0, 0
    for message in messages:
        origin = find_origin(message)
        if origin is not None and origin.format == NAME:
            for line_of_record, record in origin.records:
                items.append((line_of_record, record if not isinstance(record, bytes) else record.decode()))
                line = max(line, line_of_record)
        elif is_shown_to_model(message) or (message.role == "system" and message.type == MessageType.NORMAL):
            items.append((line, write_message(message)))
        else:
            left_out += 1
    ordered: list[JsonValue] = [item for _, item in sorted(items, key=lambda entry: entry[0])]
    fields: dict[str, JsonValue] = {"messages": [*_write_system(header), *ordered]}
    fields.update(object_at(object_at(header.extra, IMPORTED_KEY), "record"))
    return Written(fields, left_out)


def write_message(message: Message) -> JsonObject:
    """Return a message in its shortest form: content as a string unless there are images."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.role == "user" and message.images:
        return {"role": "user", "content": _write_parts(message)}
    if message.role == "assistant" and message.calls:
        calls: list[JsonValue] = [_write_call(call) for call in message.calls]
        return {"role": "assistant", "content": message.content or None, "tool_calls": calls}
    return {"role": message.role, "content": message.content}


def _no_messages() -> InvalidSession:
    return InvalidSession("there is no list of messages", hint='Pass {"messages": [...]} or a list of messages.')


def _read(records: Sequence[Record], rest: JsonObject, data: bytes, repairs: Repairs, id: str | None) -> Foreign:
    system, leading = _read_system(records)
    drafts = [_read_message(record, repairs) for record in records[leading:]]
    paired = complete_pairs(drafts, repairs)
    moved = any(one.records != other.records for one, other in zip(paired, drafts, strict=False))
    stored = [_keep(draft, always=moved) for draft in paired]
    imported: dict[str, JsonValue] = {"format": NAME}
    if leading:
        imported["system"] = records[0].value
    if rest:
        imported["record"] = read_value(0, rest, repairs).value
    conversation = finish(
        stored,
        id=id or f"{NAME}-{hashlib.sha256(data.strip()).hexdigest()[:_ID_DIGITS]}",
        title=first_title(stored),
        system=system,
        times=[message.created_at for message in stored],
        imported=imported,
    )
    return Foreign(conversation, repairs.warnings())


def _keep(draft: Draft, *, always: bool) -> Message:
    (record,) = draft.records or (None,)
    message = draft.message
    exact = record is not None and message.type == MessageType.NORMAL and write_message(message) == record.value
    return message if exact and not always else seal(draft, NAME)


def _read_system(records: Sequence[Record]) -> tuple[str, int]:
    """Return the system prompt and how many records it takes: 0 or 1."""
    if not records or text_at(records[0].value, "role") not in ("system", "developer"):
        return "", 0
    text = _system_text(records[0].value)
    return (text, 1) if text else ("", 0)


def _system_text(value: JsonValue) -> str:
    return canonical.clean(_read_parts(_content_parts(value), Repairs())[0])


def _write_system(header: Header) -> list[JsonValue]:
    record = object_at(object_at(header.extra, IMPORTED_KEY), "system")
    if record and _system_text(record) == header.system:
        return [record]
    return [{"role": "system", "content": header.system}] if header.system else []


def _read_message(record: Record, repairs: Repairs) -> Draft:
    value = record.value
    role, at = text_at(value, "role"), read_time(text_at(value, "timestamp"))
    parts = _content_parts(value)
    text, images = _read_parts(parts, repairs)
    if role not in _ROLES:
        return note(record, f"{role or 'unknown'} message: {text}", at=at)
    if role in ("system", "developer"):
        kind = MessageType.NORMAL if text else MessageType.METADATA
        return note(record, text, at=at, kind=kind)
    if role in ("tool", "function"):
        call_id = text_at(value, "tool_call_id") or _legacy_id(text_at(value, "name"))
        return Draft(Message("tool", text, images=images, tool_call_id=call_id, created_at=at), (record,))
    if role == "user":
        return Draft(Message("user", text, images=images, created_at=at), (record,))
    thinking = text_at(value, "reasoning_content") or text_at(value, "reasoning")
    message = Message("assistant", text or text_at(value, "refusal"), thinking=thinking, images=images, created_at=at)
    return Draft(replace(message, calls=tuple(_read_calls(value))), (record,))


def _content_parts(value: JsonValue) -> Sequence[JsonValue]:
    content = value.get("content") if isinstance(value, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else ()


def _read_parts(parts: Sequence[JsonValue], repairs: Repairs) -> tuple[str, tuple[JsonValue, ...]]:
    texts, images = [], list[JsonValue]()
    for part in parts:
        match text_at(part, "type"):
            case "text":
                texts.append(text_at(part, "text"))
            case "refusal":
                texts.append(text_at(part, "refusal"))
            case "image_url" if _image_url(part):
                images.append(read_url(_image_url(part)))
            case kind:
                repairs.add(Repair.PART)
                texts.append(f"[{kind or 'unknown part'}]")
    return "\n".join(texts), tuple(images)


def _image_url(part: JsonValue) -> str:
    return text_at(object_at(part, "image_url"), "url") or text_at(part, "image_url")


def _write_parts(message: Message) -> list[JsonValue]:
    parts: list[JsonValue] = [{"type": "text", "text": message.content}] if message.content else []
    urls = (data_url(image) for image in message.images)
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls if url]
    return parts


def _read_calls(value: JsonValue) -> Iterator[Call]:
    for item in items_at(value, "tool_calls"):
        if text_at(item, "type") == "custom":
            custom = object_at(item, "custom")
            yield Call(text_at(item, "id"), text_at(custom, "name"), {"input": text_at(custom, "input")})
        else:
            yield _read_function(text_at(item, "id"), object_at(item, "function"))
    legacy = object_at(value, "function_call")
    if legacy:
        yield _read_function(_legacy_id(text_at(legacy, "name")), legacy)


def _read_function(id: str, function: JsonObject) -> Call:
    return Call(id, text_at(function, "name"), read_arguments(function.get("arguments")))


def read_arguments(value: JsonValue) -> JsonObject:
    """Return a call's arguments, which servers send as JSON text. What is no object stands under `input`."""
    if isinstance(value, str):
        try:
            decoded = canonical.decode(value)
        except canonical.NotCanonical:
            return {"input": value} if value else {}
        return decoded if isinstance(decoded, Mapping) else {"input": value}
    return value if isinstance(value, Mapping) else {}


def _write_call(call: Call) -> JsonObject:
    arguments = canonical.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _legacy_id(name: str) -> str:
    """Return an id for the calls of before there were ids: the next result of that name answers."""
    return f"function_{name}" if name else ""
