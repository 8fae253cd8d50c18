"""The session document: the bytes that `session export` writes and that a revision hashes (interfaces.md section 4).

A document is `{"messages":[` + messages + `],"system":` + prompt + tail. The tail is everything that changes from save
to save, so that a checkpoint encodes and hashes only what is new. This module turns documents into `Conversation`
values and back. It reads no file and knows no database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from aura import ids
from aura.clock import parse_time
from aura.conversation import (
    Call,
    Conversation,
    Header,
    Message,
    MessageType,
    Parent,
    Role,
    find_broken_pair,
)
from aura.errors import InvalidSession
from aura.jsontypes import JsonObject, JsonValue
from aura.wire import canonical

OPENING = b'{"messages":['

_HEADER_KEYS = frozenset(
    ("messages", "system", "id", "title", "created_at", "updated_at", "meta", "todos", "frozen", "parent")
)
_OUTER_LEVELS = 2  # the document and its list: what a message may hold must fit a document
_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_LOWER_SPELLINGS = {"id": "ID", "role": "Role", "content": "Content", "thinking": "Thinking"}
_MESSAGE_KEYS = frozenset(
    ("ID", "Role", "Content", "Thinking", "thinking_signature", "images", "calls", "tool_name", "tool_call_id")
    + ("type", "tokens", "created_at")
)


class Hasher:
    """The running SHA-256 of a document's messages, from which a revision costs only its tail.

    One thread at a time. `copy` first where a save may still fail: the state must follow what is committed.
    """

    def __init__(self) -> None:
        self._sha = hashlib.sha256(OPENING)
        self.count = 0

    def add(self, messages: Iterable[bytes]) -> None:
        """Take further messages into the prefix, in order."""
        for body in messages:
            self._sha.update(b"," + body if self.count else body)
            self.count += 1

    def copy(self) -> Hasher:
        """Return an independent hasher in the same state."""
        twin = Hasher()
        twin._sha, twin.count = self._sha.copy(), self.count
        return twin

    def revision(self, system: str, tail: bytes) -> str:
        """Return the revision of the document that would end here with `system` and `tail`."""
        sha = self._sha.copy()
        sha.update(encode_system(system) + tail)
        return sha.hexdigest()


def encode_system(system: str) -> bytes:
    """Return the bytes between the last message and the tail."""
    return b'],"system":' + canonical.encode(system)


def encode_tail(header: Header) -> bytes:
    """Return the bytes after the system prompt: the header's other fields and the closing brace."""
    fields: dict[str, JsonValue] = {
        "id": header.id,
        "title": header.title,
        "created_at": header.created_at,
        "updated_at": header.updated_at,
        "meta": header.meta,
    }
    if header.todos is not None:
        fields["todos"] = header.todos
    fields["frozen"] = header.frozen
    fields["parent"] = {"id": header.parent.id, "revision": header.parent.revision} if header.parent else None
    fields.update(header.extra)
    return b"," + canonical.encode(fields)[1:]


def decode_tail(tail: bytes, system: str) -> Header:
    """Return the header whose tail these bytes are. The inverse of `encode_tail`, for bytes that it made."""
    fields = canonical.decode(b"{" + tail[1:])
    assert isinstance(fields, dict), "a stored tail is an object"
    return _read_header(fields, system)


def encode_message(message: Message) -> bytes:
    """Return a message's canonical bytes, with the reference key names in the order of engine.md 3.3.

    Raises `canonical.NotCanonical` for values that a document could not hold.
    """
    fields: dict[str, JsonValue] = {"ID": message.id, "Role": message.role, "Content": message.content}
    optional: dict[str, JsonValue] = {
        "Thinking": message.thinking,
        "thinking_signature": message.thinking_signature,
        "images": list(message.images),
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls],
        "tool_name": message.tool_name,
        "tool_call_id": message.tool_call_id,
        "type": int(message.type),
        "tokens": message.tokens,
        "created_at": message.created_at,
    }
    fields.update((key, value) for key, value in optional.items() if value)
    fields.update(message.extra)
    return canonical.encode(fields, outer=_OUTER_LEVELS)


def decode_message(body: bytes) -> Message:
    """Return the message whose canonical bytes these are. Raises `InvalidSession` for anything else."""
    return _read_message(_decode(body), "message")


def iterate_document(messages: Iterable[bytes], header: Header) -> Iterator[bytes]:
    """Yield a document's canonical bytes in pieces, for hashing and writing."""
    yield OPENING
    for index, body in enumerate(messages):
        yield b"," + body if index else body
    yield encode_system(header.system)
    yield encode_tail(header)


def parse_document(data: bytes, *, id: str | None = None) -> Conversation:
    """Return the conversation of a session document, ours or the reference program's.

    `id` replaces the document's own. The result is what will be stored: reference key names, the leading system message
    moved into the header, unknown keys kept. Raises `InvalidSession`, naming the message index where there is one, and
    `InvalidId`.
    """
    try:
        value = canonical.decode(data)
    except canonical.NotCanonical as error:
        raise not_a_document(error) from error
    return read_document(value, id=id)


def not_a_document(error: canonical.NotCanonical) -> InvalidSession:
    """Return the error for bytes that are no JSON."""
    return InvalidSession(f"not a session document: {error}")


def read_document(value: JsonValue, *, id: str | None = None) -> Conversation:
    """Return what `parse_document` returns, of a JSON value that `canonical.decode` returned. Raises the same."""
    fields = _object(value, "the document")
    if "messages" not in fields:
        raise InvalidSession("the document has no messages", hint="Pass a file that `aura session export` wrote.")
    items = fields["messages"]
    if items is None:
        items = []
    if not isinstance(items, list):
        raise InvalidSession("'messages' is not a list")
    messages = [
        _read_message(_object(item, f"message {index}"), f"message {index}") for index, item in enumerate(items)
    ]
    system = _string(fields, "system", "the document")
    if not system and messages and messages[0].role == "system" and messages[0].type == MessageType.NORMAL:
        system = messages.pop(0).content
        offset = 1
    else:
        offset = 0
    broken = find_broken_pair(messages)
    if broken:
        index, reason = broken[0] + offset, broken[1]
        raise InvalidSession(f"message {index}: {reason}", hint="Saved history holds complete call/result pairs.")
    header = _read_header(fields if id is None else {**fields, "id": id}, system)
    ids.check_session_id(header.id)
    return Conversation(header, tuple(_encode_read(message) for message in messages))


def updated_at_ms(header: Header) -> int:
    """Return a header's `updated_at` in Unix ms; the text is a valid time."""
    return parse_time(header.updated_at)


def same_conversation(one: Conversation, other: Conversation) -> bool:
    """Tell whether two documents are the same conversation for `import` (contract.md): title, messages, meta, todos.

    Times, freezing and lineage do not count, nor does the order of keys, which JSON gives no meaning.
    """
    return (
        (one.header.title, one.header.system) == (other.header.title, other.header.system)
        and canonical.encode(_sorted_keys([one.header.meta, one.header.todos, one.header.extra]))
        == canonical.encode(_sorted_keys([other.header.meta, other.header.todos, other.header.extra]))
        and len(one.messages) == len(other.messages)
        and all(map(_same_body, one.messages, other.messages))
    )


def _same_body(one: bytes, other: bytes) -> bool:
    return one == other or canonical.encode(_sorted_keys(_decode(one))) == canonical.encode(
        _sorted_keys(_decode(other))
    )


def _sorted_keys(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_sorted_keys(item) for item in value]
    return value


def same_content(one: Header, other: Header) -> bool:
    """Tell whether two headers differ in nothing but `updated_at`, so that a save would only rewrite a date."""
    return encode_tail(replace(one, updated_at="")) == encode_tail(replace(other, updated_at="")) and (
        one.system == other.system
    )


def _encode_read(message: Message) -> bytes:
    try:
        return encode_message(message)
    except canonical.NotCanonical as error:
        raise InvalidSession(str(error)) from error


def _decode(data: bytes) -> dict[str, JsonValue]:
    try:
        value = canonical.decode(data)
    except canonical.NotCanonical as error:
        raise not_a_document(error) from error
    return dict(_object(value, "the document"))


def _read_header(fields: JsonObject, system: str) -> Header:
    where = "the document"
    todos = fields.get("todos")
    frozen = fields.get("frozen")
    if frozen is not None and not isinstance(frozen, bool):
        raise InvalidSession("'frozen' is not true or false")
    return Header(
        id=_string(fields, "id", where),
        title=_string(fields, "title", where),
        created_at=_time(fields, "created_at"),
        updated_at=_time(fields, "updated_at"),
        system=system,
        meta=_object_or_empty(fields.get("meta"), "'meta'"),
        todos=None if todos is None else _object(todos, "'todos'"),
        frozen=bool(frozen),
        parent=_read_parent(fields.get("parent")),
        extra={key: value for key, value in fields.items() if key not in _HEADER_KEYS},
    )


def _read_parent(value: JsonValue) -> Parent | None:
    if value is None:
        return None
    fields = _object(value, "'parent'")
    parent = Parent(_string(fields, "id", "'parent'"), _string(fields, "revision", "'parent'"))
    if not ids.is_sha256(parent.revision):
        raise InvalidSession("'parent.revision' is not a SHA-256 in lower-case hex")
    return parent


def _read_message(fields: JsonObject, where: str) -> Message:
    fields = {_LOWER_SPELLINGS.get(key, key): value for key, value in fields.items()}
    role = fields.get("Role")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidSession(f"{where}: the role is not one of system, user, assistant, tool")
    kind = fields.get("type", 0)
    if not isinstance(kind, int) or isinstance(kind, bool) or kind not in tuple(MessageType):
        raise InvalidSession(f"{where}: the type is not a number from 0 to 5")
    images = fields.get("images")
    if images is not None and not isinstance(images, list):
        raise InvalidSession(f"{where}: 'images' is not a list")
    return Message(
        role=_ROLES[role],
        content=_string(fields, "Content", where),
        id=_string(fields, "ID", where),
        thinking=_string(fields, "Thinking", where),
        thinking_signature=_string(fields, "thinking_signature", where),
        images=tuple(images or ()),
        calls=_read_calls(fields.get("calls"), where),
        tool_name=_string(fields, "tool_name", where),
        tool_call_id=_string(fields, "tool_call_id", where),
        type=kind,
        tokens=_object_or_empty(fields.get("tokens"), f"{where}: 'tokens'"),
        created_at=_string(fields, "created_at", where),
        extra={key: value for key, value in fields.items() if key not in _MESSAGE_KEYS},
    )


def _read_calls(value: JsonValue, where: str) -> tuple[Call, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidSession(f"{where}: 'calls' is not a list")
    return tuple(_read_call(_object(item, f"{where}: a call"), where) for item in value)


def _read_call(fields: JsonObject, where: str) -> Call:
    unknown = sorted(set(fields) - {"id", "name", "arguments"})
    if unknown:
        raise InvalidSession(f"{where}: a call has the unknown key {unknown[0]!r}")
    arguments = _object_or_empty(fields.get("arguments"), f"{where}: 'arguments'")
    return Call(_string(fields, "id", where), _string(fields, "name", where), arguments)


def _object(value: JsonValue, where: str) -> JsonObject:
    if isinstance(value, Mapping):
        return value
    raise InvalidSession(f"{where} is not an object")


def _object_or_empty(value: JsonValue, where: str) -> JsonObject:
    return {} if value is None else _object(value, where)


def _string(fields: JsonObject, key: str, where: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return canonical.clean(value)
    raise InvalidSession(f"{where}: {key!r} is not a string")


def _time(fields: JsonObject, key: str) -> str:
    text = _string(fields, key, "the document")
    if not text:
        return ""
    try:
        parse_time(text)
    except ValueError as error:
        raise InvalidSession(f"{key!r} is not an RFC 3339 time") from error
    return text


def read_messages(bodies: Sequence[bytes]) -> list[Message]:
    """Return the messages of stored bodies, in order."""
    return [decode_message(body) for body in bodies]
