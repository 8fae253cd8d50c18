"""What changed between two saved states of a session. Pure: it is given them and reads nothing."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aura.conversation import Header, Message
from aura.jsontypes import JsonObject, JsonValue
from aura.store.history import Save, StoredMessage
from aura.wire import canonical, document


@dataclass(frozen=True, slots=True)
class Placed:
    """A message and its index among non-system messages, None for a system message."""

    index: int | None
    message: Message


@dataclass(frozen=True, slots=True)
class MessageChange:
    """A message that was added (`old` is None), dropped (`new` is None), or rewritten under the same id.

    `keys` names what a rewritten message has another value of, with the key names of a session document.
    """

    old: Placed | None
    new: Placed | None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field beside the messages, `meta.agent` for example, and its values; None where it is missing."""

    path: str
    old: JsonValue
    new: JsonValue


def compare_messages(old: Sequence[StoredMessage], new: Sequence[StoredMessage]) -> list[MessageChange]:
    """Return what leads from `old` to `new`, in the order of the conversation; equal messages are left out."""
    ours, theirs = list(map(_place, old)), list(map(_place, new))
    matcher = difflib.SequenceMatcher(None, list(map(_key, ours, old)), list(map(_key, theirs, new)))
    changes: list[MessageChange] = []
    for what, start, end, its_start, its_end in matcher.get_opcodes():
        if what == "equal":
            pairs = zip(range(start, end), range(its_start, its_end), strict=True)
            changes += [_rewritten(ours[i], theirs[j]) for i, j in pairs if old[i].body != new[j].body]
        else:
            changes += [MessageChange(item, None) for item in ours[start:end]]
            changes += [MessageChange(None, item) for item in theirs[its_start:its_end]]
    return changes


def compare_headers(old: Header, new: Header) -> list[FieldChange]:
    """Return the fields that differ, the time of the save left out."""
    before, after = _fields(old), _fields(new)
    paths = [*before, *(path for path in after if path not in before)]
    return [
        FieldChange(path, before.get(path), after.get(path))
        for path in paths
        if before.get(path) != after.get(path) or (path in before) != (path in after)
    ]


def describe(save: Save, before: Save | None) -> tuple[str, ...]:
    """Return in a few words each what a revision changed. `before`: the revision before it, None for the first one."""
    if before is None:
        parent = save.header.parent
        return (_count(save.stored), *((f"fork of {parent.id}",) if parent else ()))
    dropped, added = save.before - save.shared, save.stored - save.shared
    words = []
    if dropped or added:
        signs = [f"-{dropped}"] if dropped else []
        signs += [f"+{added}"] if added else []
        words.append(f"{' '.join(signs)} {_messages(added or dropped)}")
    return (*words, *_describe_fields(compare_headers(before.header, save.header)))


def _describe_fields(changes: Sequence[FieldChange]) -> list[str]:
    words = []
    for change in changes:
        match change:
            case FieldChange("system"):
                words.append("prompt changed")
            case FieldChange("frozen", new=True):
                words.append("frozen")
            case FieldChange(path) if not path.startswith("meta."):
                words.append(f"{path} changed")
    keys = [change.path.removeprefix("meta.") for change in changes if change.path.startswith("meta.")]
    return [*words, f"meta: {', '.join(keys)}"] if keys else words


def _count(messages: int) -> str:
    return f"{messages} {_messages(messages)}" if messages else "empty"


def _messages(count: int) -> str:
    return "message" if count == 1 else "messages"


def _place(stored: StoredMessage) -> Placed:
    return Placed(stored.ordinal, document.decode_message(stored.body))


def _key(placed: Placed, stored: StoredMessage) -> str | bytes:
    return placed.message.id or stored.body  # imported messages may have no id


def _rewritten(old: Placed, new: Placed) -> MessageChange:
    before, after = _raw(old.message), _raw(new.message)
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return MessageChange(old, new, tuple(keys))


def _raw(message: Message) -> JsonObject:
    fields = canonical.decode(document.encode_message(message))
    assert isinstance(fields, Mapping)
    return fields


def _fields(header: Header) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {"title": header.title, "system": header.system, "frozen": header.frozen}
    if header.parent:
        fields["parent"] = {"id": header.parent.id, "revision": header.parent.revision}
    if header.todos is not None:
        fields["todos"] = header.todos
    fields.update((f"meta.{key}", value) for key, value in header.meta.items())
    fields.update(header.extra)
    return fields


__all__ = [
    "FieldChange",
    "MessageChange",
    "Placed",
    "compare_headers",
    "compare_messages",
    "describe",
]
