"""Notices what is unusually large before it is stored, so that nothing makes a store grow unseen (DESIGN.md section 4).

It changes and refuses nothing: a large text is kept whole, with a notice beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aura import events as e
from aura import limits
from aura.jsontypes import JsonValue
from aura.wire import canonical

ORIGIN = "store"
_BYTES_PER_CHAR_MAX = 6  # of a character in JSON: a control character becomes \\u0000


def find_large(event: e.Event) -> tuple[e.Notice, ...]:
    """Return the notice that an event over `limits.INLINE_MAX_BYTES` deserves, or nothing."""
    size = _count_bytes(event)
    return (_notice(f"the event {event.kind}", size, event.source),) if size > limits.INLINE_MAX_BYTES else ()


def find_large_messages(bodies: Iterable[bytes]) -> tuple[e.Notice, ...]:
    """Return a notice for each message over `limits.INLINE_MAX_BYTES`."""
    return tuple(_notice("a message", len(body), None) for body in bodies if len(body) > limits.INLINE_MAX_BYTES)


def _notice(what: str, size_bytes: int, source: e.Source | None) -> e.Notice:
    message = f"{what} has {size_bytes} bytes: it is stored whole, and the store grows by that"
    return e.Notice(source=source, level="warning", origin=ORIGIN, message=message)


def _count_bytes(event: e.Event) -> int:
    """Return about how many bytes the event's data takes; exactly where it is much. Kinds that are small count 0."""
    match event:
        case e.MessageUser(content=text) | e.ToolFinished(result=text) | e.CommandResult(message=text):
            return _text_bytes(text)
        case e.MessageAssistant(content=text, tool_calls=calls):
            return _text_bytes(text) + sum(_value_bytes(call.arguments) for call in calls)
        case e.ToolStarted(args=args):
            return _value_bytes(args)
        case _:
            return 0


def _value_bytes(value: JsonValue) -> int:
    match value:
        case str():
            return _text_bytes(value)
        case Mapping():
            return sum(_value_bytes(item) for item in value.values())
        case Sequence():
            return sum(map(_value_bytes, value))
        case _:
            return 0


def _text_bytes(text: str) -> int:
    if len(text) * _BYTES_PER_CHAR_MAX <= limits.INLINE_MAX_BYTES:
        return len(text)
    return len(canonical.encode(text))
