"""The frames of one chat completions stream, put together: deltas out as they come, one `Reply` at the end.

Pure and synchronous: it knows no connection. A frame that breaks the protocol is a `malformed` error; unknown fields
and choices other than the first are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aura import limits
from aura.conversation import Call
from aura.engine.providers.base import OnDelta, ProviderError, ProviderErrorKind, Reply
from aura.engine.providers.classify import classify_frame, excerpt
from aura.engine.providers.sse import Frame
from aura.jsontypes import JsonObject, JsonValue
from aura.wire import canonical


class _Text:
    """A growing text. Half of a surrogate pair waits for its other half, so that every delta is whole characters."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._half = ""

    def add(self, text: str) -> str:
        """Return what may be shown of the text so far and was not returned before."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        shown = _repaired(text[:-1] if self._half else text)
        self._parts.append(shown)
        return shown

    def flush(self) -> str:
        """Return what a lone half becomes when nothing follows."""
        if not self._half:
            return ""
        self._half = ""
        self._parts.append("\ufffd")
        return "\ufffd"

    def joined(self) -> str:
        """Return everything that was shown."""
        return "".join(self._parts)


class _PartialCall:
    """A tool call while its pieces come."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class Completion:
    """Assembles one reply. `on_delta` gets content and thinking; `new_call_id` names calls that the server did not."""

    def __init__(
        self,
        provider: str,
        on_delta: OnDelta,
        new_call_id: Callable[[], str],
        reply_bytes: int = limits.PROVIDER_REPLY_BYTES,
    ) -> None:
        self._provider = provider
        self._on_delta = on_delta
        self._new_call_id = new_call_id
        self._bytes_left = reply_bytes
        self._content = _Text()
        self._thinking = _Text()
        self._calls: dict[int, _PartialCall] = {}
        self._finish_reason = ""
        self._tokens = (0, 0)
        self.started = False  # a part of the answer has come
        self.chunks = 0  # frames that were chunks of a completion
        self.done = False  # the server said that nothing follows

    def add(self, frame: Frame) -> None:
        """Take the next frame. Raises `ProviderError` for an error frame and for one that is no chunk."""
        if frame.event not in ("", "message", "error"):
            return
        if frame.data == "[DONE]":
            self.done = True
            return
        chunk = self._decode(frame)
        error = chunk.get("error")
        if frame.event == "error" or error:
            raise classify_frame(error or chunk, self._provider)
        choices = chunk.get("choices")
        self._take_usage(chunk.get("usage"))
        if not isinstance(choices, list):
            return
        self.chunks += 1
        for choice in choices:
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                self._take_choice(choice)

    @property
    def complete(self) -> bool:
        """Tell whether the answer has ended: nothing but its token counts can be missing."""
        return bool(self._finish_reason) or (self.done and self.chunks > 0)

    def finish(self) -> Reply:
        """Return the reply after the stream's end. Raises `ProviderError`: cut off, filtered, broken arguments."""
        if self._finish_reason == "content_filter":
            raise self._error("content_filter", "the provider's content filter stopped the answer")
        if not self.complete:
            raise self._error("network", "the stream ended before the answer was complete")
        for text, thinking in ((self._thinking, True), (self._content, False)):
            if rest := text.flush():
                self._on_delta(rest, thinking)
        calls = tuple(self._finish_call(self._calls[index]) for index in sorted(self._calls))
        return Reply(
            self._content.joined(), self._thinking.joined(), _with_distinct_ids(calls, self._new_call_id), *self._tokens
        )

    def _decode(self, frame: Frame) -> Mapping[str, JsonValue]:
        self._bytes_left -= len(frame.data)
        if self._bytes_left < 0:
            raise self._error("malformed", "the answer is longer than any model's context: it was cut off")
        try:
            value = canonical.decode(frame.data)
        except canonical.NotCanonical as error:
            text = f"the stream holds data that is not JSON ({error}): {frame.data}"
            raise self._error("malformed", excerpt(text)) from None
        if not isinstance(value, Mapping):
            raise self._error("malformed", excerpt(f"the stream holds data that is no object: {frame.data}"))
        return value

    def _take_usage(self, usage: JsonValue) -> None:
        if isinstance(usage, Mapping):
            self._tokens = (_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))

    def _take_choice(self, choice: Mapping[str, JsonValue]) -> None:
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._take_text(self._thinking, delta.get("reasoning_content") or delta.get("reasoning"), thinking=True)
            self._take_text(self._content, delta.get("content") or delta.get("refusal"), thinking=False)
            pieces = delta.get("tool_calls")
            for piece in pieces if isinstance(pieces, list) else ():
                self._take_call(piece)
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self._finish_reason = reason

    def _take_text(self, text: _Text, piece: JsonValue, *, thinking: bool) -> None:
        if not isinstance(piece, str) or not piece:
            return
        self.started = True
        shown = text.add(piece)
        if shown:
            self._on_delta(shown, thinking)

    def _take_call(self, piece: JsonValue) -> None:
        if not isinstance(piece, Mapping):
            raise self._error("malformed", "a tool call in the stream is no object")
        self.started = True
        call = self._calls.setdefault(self._index_of(piece), _PartialCall())
        call.id = call.id or _text(piece.get("id"))
        function = piece.get("function")
        if not isinstance(function, Mapping):
            return
        call.name = call.name or _text(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            raise self._error("malformed", f"the arguments of the call of {call.name!r} are no text")

    def _index_of(self, piece: Mapping[str, JsonValue]) -> int:
        """Return the call that a piece belongs to: by its index, else a new id starts a new call."""
        index = piece.get("index")
        if isinstance(index, int) and not isinstance(index, bool):
            return index
        last = max(self._calls, default=-1)
        piece_id = _text(piece.get("id"))
        if last < 0 or (piece_id and piece_id != self._calls[last].id):
            return last + 1
        return last

    def _finish_call(self, call: _PartialCall) -> Call:
        text = _repaired("".join(call.arguments))
        if not call.name:
            raise self._error("malformed", "the model called a tool without a name")
        try:
            arguments = canonical.decode(text) if text.strip() else {}
        except canonical.NotCanonical as error:
            message = f"the arguments of the call of {call.name!r} are not JSON ({error}): {text}"
            raise self._error("malformed", excerpt(message)) from None
        if not isinstance(arguments, Mapping):
            raise self._error("malformed", excerpt(f"the arguments of the call of {call.name!r} are no object: {text}"))
        return Call(call.id or self._new_call_id(), call.name, arguments)

    def _error(self, kind: ProviderErrorKind, message: str) -> ProviderError:
        return ProviderError(kind, message, provider=self._provider)


def parse_document(body: bytes) -> JsonObject | None:
    """Return the JSON object that `body` is, or None."""
    try:
        value = canonical.decode(body)
    except canonical.NotCanonical:
        return None
    return value if isinstance(value, Mapping) else None


def _with_distinct_ids(calls: Sequence[Call], new_call_id: Callable[[], str]) -> tuple[Call, ...]:
    seen: set[str] = set()
    distinct: list[Call] = []
    for call in calls:
        if call.id in seen:
            call = Call(new_call_id(), call.name, call.arguments)
        seen.add(call.id)
        distinct.append(call)
    return tuple(distinct)


def _repaired(text: str) -> str:
    return text if text.isascii() else canonical.encode_text(text).decode()


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
