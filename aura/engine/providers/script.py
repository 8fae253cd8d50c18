"""The script provider: plays a script file as if it were a model (interfaces.md section 5).

Everything above it is the production path. It waits only through the scope, talks to nobody, and is thread-safe:
entries and call numbers belong to the process, so there must be one provider per script and process.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aura import limits
from aura.conversation import Call, Message
from aura.engine.providers.base import OnDelta, ProviderError, ProviderErrorKind, Reply, Request
from aura.engine.providers.classify import classify, excerpt
from aura.engine.providers.script_file import FOREVER, Script, ScriptCall, ScriptError, ScriptTurn
from aura.engine.providers.script_template import BadTemplate, Context, Rendered
from aura.engine.scope import Scope
from aura.wire import canonical

_TYPE = "script"
_KINDS: Mapping[str, tuple[ProviderErrorKind, str]] = {
    "network": ("network", "the connection to the model server was lost"),
    "context_exhausted": ("context_exhausted", "the request exceeds the available context size"),
    "content_filter": ("content_filter", "the provider's content filter stopped the answer"),
    "malformed": ("malformed", "the arguments of a tool call are not JSON"),
}


@dataclass(frozen=True, slots=True)
class _Answer:
    """A turn's answer, rendered: the deltas in order and the calls."""

    thinking: tuple[str, ...]
    content: tuple[str, ...]
    calls: tuple[Call, ...]


class ScriptProvider:
    """A deterministic model. Any thread may call it, several at once."""

    type = _TYPE

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._uses_left = [turn.uses for turn in script.turns]
        self._calls = 0
        self._call_ids = itertools.count(1)

    def stream(self, request: Request, scope: Scope, on_delta: OnDelta) -> Reply:
        """Play the first entry that matches and has uses left; see `Provider.stream`."""
        scope.check()
        self._check_model(request.model)
        last, user = _newest(request.messages, ("user", "tool")), _newest(request.messages, ("user",))
        turn, number = self._take(last)
        if turn is None:
            raise ProviderError("unclassified", "script exhausted", provider=_TYPE)
        if turn.delay_ms:
            scope.sleep(turn.delay_ms)
        if turn.error is not None:
            raise _failure(turn.error)
        answer = self._render(turn, Context(last, user, number))
        self._play(turn, answer, scope, on_delta)
        return Reply(
            "".join(answer.content), "".join(answer.thinking), answer.calls, turn.input_tokens, turn.output_tokens
        )

    def context_tokens(self, model: str, scope: Scope) -> int:
        """Return the script's `context`. Raises `ProviderError` for a model that is not in its `models`."""
        self._check_model(model)
        return self._script.context_tokens

    def _check_model(self, model: str) -> None:
        if model not in self._script.models:
            message = f"model {model!r} not found: the script has {', '.join(self._script.models)}"
            raise ProviderError("model_unavailable", excerpt(message), provider=_TYPE, status=404)

    def _take(self, last: str) -> tuple[ScriptTurn | None, int]:
        """Use up the entry to be played and return it with the number of this model call."""
        with self._lock:
            self._calls += 1
            for index, turn in enumerate(self._script.turns):
                if self._uses_left[index] != 0 and (turn.last is None or turn.last.search(last)):
                    if turn.uses != FOREVER:
                        self._uses_left[index] -= 1
                    return turn, self._calls
            return None, self._calls

    def _render(self, turn: ScriptTurn, context: Context) -> _Answer:
        try:
            content = tuple(_pieces(_text(turn.content, context))) if turn.content else ()
            chunks = tuple(_text(chunk, context) for chunk in turn.chunks)
            calls = self._render_calls(turn.calls, context)
        except BadTemplate as error:
            message = excerpt(f"{self._script.path.name}: {error}")
            raise ProviderError("unclassified", message, provider=_TYPE) from error
        return _Answer(tuple(_pieces(turn.thinking)), content or chunks, calls)

    def _render_calls(self, calls: Sequence[ScriptCall], context: Context) -> tuple[Call, ...]:
        given = {call.id for call in calls}
        rendered: list[Call] = []
        for call in calls:
            arguments = call.arguments(context)
            assert isinstance(arguments, Mapping)
            rendered.append(Call(call.id or self._new_call_id(given), call.name, arguments))
        return tuple(rendered)

    def _new_call_id(self, given: set[str]) -> str:
        return next(name for name in map("call_{}".format, self._call_ids) if name not in given)

    def _play(self, turn: ScriptTurn, answer: _Answer, scope: Scope, on_delta: OnDelta) -> None:
        deltas = [(text, True) for text in answer.thinking] + [(text, False) for text in answer.content]
        for index, (text, thinking) in enumerate(deltas):
            scope.check()
            if index and turn.chunk_delay_ms:
                scope.sleep(turn.chunk_delay_ms)
            if text:
                on_delta(text, thinking)
        scope.check()


def _failure(error: ScriptError) -> ProviderError:
    if error.status is not None:
        failure = classify(error.status, canonical.encode_text(error.message), {}, _TYPE, 0)
        failure.retry_after_ms = error.retry_after_ms
        return failure
    kind, message = _KINDS[error.kind]
    return ProviderError(kind, error.message or message, provider=_TYPE, retry_after_ms=error.retry_after_ms)


def _newest(messages: Sequence[Message], roles: tuple[str, ...]) -> str:
    return next((message.content for message in reversed(messages) if message.role in roles), "")


def _text(rendered: Rendered, context: Context) -> str:
    text = rendered(context)
    assert isinstance(text, str)
    return text


def _pieces(text: str) -> Iterator[str]:
    size = limits.SCRIPT_PIECE_CHARS
    return (text[start : start + size] for start in range(0, len(text), size))
