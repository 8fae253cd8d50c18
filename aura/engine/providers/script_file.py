"""Reading a script file, strictly, into frozen values (interfaces.md section 5). Playing it is `script`'s job.

Every mistake is found here, at start-up: an unknown or repeated key, a value of the wrong type, a regex or a template
that does not compile, a template that uses a name that does not exist. The error names the file and the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from aura import limits
from aura.config.files import read_text
from aura.config.schema import Place
from aura.config.yaml_text import Tree, parse_yaml
from aura.engine.providers.script_template import BadTemplate, Rendered, compile_value
from aura.errors import ConfigInvalid

FOREVER = -1
ERROR_KINDS = ("http", "network", "context_exhausted", "content_filter", "malformed")
_TURN_KEYS = frozenset(
    ("when", "repeat", "delay_ms", "chunk_delay_ms", "thinking", "content", "chunks", "calls", "usage", "error")
)
_ERROR_KEYS = frozenset(("kind", "status", "message", "retry_after_ms", "times"))
_ANSWER_KEYS = ("thinking", "content", "chunks", "calls", "usage")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A tool call of a turn. `arguments` renders to a JSON object; an empty `id` is filled in when it is played."""

    id: str
    name: str
    arguments: Rendered


@dataclass(frozen=True, slots=True)
class ScriptError:
    """How a turn fails. `status` is set for kind `http` only."""

    kind: str
    message: str
    status: int | None = None
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """One entry. `uses` is how often it may be played, `FOREVER` for no limit; `key` is its place in the file."""

    key: str
    last: re.Pattern[str] | None = None
    uses: int = 1
    delay_ms: int = 0
    chunk_delay_ms: int = 0
    thinking: str = ""
    content: Rendered | None = None
    chunks: tuple[Rendered, ...] = ()
    calls: tuple[ScriptCall, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    error: ScriptError | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script file."""

    path: Path
    turns: tuple[ScriptTurn, ...]
    context_tokens: int = 131_072
    models: tuple[str, ...] = ("scripted",)


def read_script(path: Path) -> Script:
    """Return the script in `path`. Raises `ConfigInvalid`, naming the file, the line and the key."""
    tree = parse_yaml(read_text(path), path)
    return _script(_Node(Place(path, tree.line), tree.value))


class _Node:
    """A value of the file together with its place, so that every check can name both."""

    def __init__(self, place: Place, value: object) -> None:
        self.place = place
        self.value = value

    def fail(self, problem: str, hint: str) -> ConfigInvalid:
        return self.place.error(problem, hint)

    def mapping(self, allowed: frozenset[str]) -> dict[str, _Node]:
        """Return the members by key. A key without a value counts as absent."""
        if not isinstance(self.value, Mapping):
            raise self.fail("is not a mapping", f"Use the keys {_listed(allowed)}.")
        members = {key: self._below(f"{self.place.key}.{key}".lstrip("."), tree) for key, tree in self.value.items()}
        for key, member in members.items():
            if key not in allowed:
                raise member.fail(f"unknown key {key!r}", f"Use one of {_listed(allowed)}.")
        return {key: member for key, member in members.items() if member.value is not None}

    def items(self) -> list[_Node]:
        if not isinstance(self.value, tuple):
            raise self.fail("is not a list", "Write its items with a dash each, or in brackets.")
        return [self._below(f"{self.place.key}[{index}]", tree) for index, tree in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.fail(f"is not text but {_plain(self.value)!r:.40}", "Put it in quotes.")
        return self.value

    def number(self, least: int, most: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not least <= self.value <= most:
            raise self.fail(f"is not a whole number from {least} to {most}", "Correct the number.")
        return self.value

    def template(self) -> Rendered:
        try:
            return compile_value(_plain(self.value), self.place.key)
        except BadTemplate as error:
            hint = "Templates are Jinja2 and know the names last, user and call."
            raise ConfigInvalid(f"{self.place.path}:{self.place.line}: {error}", hint=hint) from error

    def _below(self, key: str, tree: Tree) -> _Node:
        return _Node(Place(self.place.path, tree.line, key), tree.value)


def _plain(value: object) -> object:
    if isinstance(value, Tree):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _script(root: _Node) -> Script:
    keys = root.mapping(frozenset(("context", "models", "turns")))
    if "turns" not in keys:
        raise root.fail("turns is missing", "List one entry per model call under `turns`.")
    return Script(
        path=root.place.path,
        turns=tuple(_turn(node) for node in keys["turns"].items()),
        context_tokens=_read(keys, "context", lambda node: node.number(1, 1 << 31), 131_072),
        models=_read(keys, "models", _models, ("scripted",)),
    )


def _models(node: _Node) -> tuple[str, ...]:
    models = tuple(item.text() for item in node.items())
    if not models:
        raise node.fail("is empty", "Name at least one model.")
    return models


def _turn(node: _Node) -> ScriptTurn:
    keys = node.mapping(_TURN_KEYS)
    answer = [key for key in _ANSWER_KEYS if key in keys]
    if "error" in keys and answer:
        raise node.fail(f"has both error and {answer[0]}", "An error comes instead of an answer: remove one of them.")
    if "content" in keys and "chunks" in keys:
        raise node.fail("has both content and chunks", "Remove one of them.")
    usage = keys["usage"].mapping(frozenset(("input", "output"))) if "usage" in keys else {}
    return ScriptTurn(
        key=node.place.key,
        last=_read(keys, "when", _when, None),
        uses=_uses(keys),
        delay_ms=_read(keys, "delay_ms", _delay, 0),
        chunk_delay_ms=_read(keys, "chunk_delay_ms", _delay, 0),
        thinking=_read(keys, "thinking", _Node.text, ""),
        content=_read(keys, "content", _text_template, None),
        chunks=_read(keys, "chunks", lambda chunks: tuple(_text_template(item) for item in chunks.items()), ()),
        calls=_read(keys, "calls", _calls, ()),
        input_tokens=_read(usage, "input", _tokens, 0),
        output_tokens=_read(usage, "output", _tokens, 0),
        error=_read(keys, "error", _error, None),
    )


def _uses(keys: Mapping[str, _Node]) -> int:
    """Return how often an entry may be used: its `repeat`, or its error's `times`, which is the same."""
    repeat = keys.get("repeat")
    times = keys["error"].mapping(_ERROR_KEYS).get("times") if "error" in keys else None
    if times is not None:
        if repeat is not None:
            raise repeat.fail("stands beside error.times, which is the same", "Remove one of them.")
        return times.number(1, 1 << 31)
    if repeat is None:
        return 1
    if repeat.value == "forever":
        return FOREVER
    if isinstance(repeat.value, str):
        raise repeat.fail(f"is {repeat.value!r}", 'Use a whole number from 1 up, or "forever".')
    return repeat.number(1, 1 << 31)


def _when(node: _Node) -> re.Pattern[str] | None:
    keys = node.mapping(frozenset(("last",)))
    return _read(keys, "last", _regex, None)


def _regex(node: _Node) -> re.Pattern[str]:
    try:
        return re.compile(node.text())
    except re.error as error:
        raise node.fail(f"is not a regular expression: {error}", "Correct the expression.") from error


def _calls(node: _Node) -> tuple[ScriptCall, ...]:
    calls = tuple(_call(item) for item in node.items())
    named = [call.id for call in calls if call.id]
    if len(set(named)) < len(named):
        raise node.fail("uses a call id twice", "Give every call of a message its own id, or none.")
    return calls


def _call(node: _Node) -> ScriptCall:
    keys = node.mapping(frozenset(("id", "name", "arguments")))
    name = _read(keys, "name", _Node.text, "")
    if not name:
        raise node.fail("name is missing", "Name the tool that is called.")
    arguments = keys.get("arguments") or _Node(node.place, {})
    if not isinstance(arguments.value, Mapping):
        raise arguments.fail("is not a mapping", "Give the arguments by name.")
    return ScriptCall(_read(keys, "id", _Node.text, ""), name, arguments.template())


def _error(node: _Node) -> ScriptError:
    keys = node.mapping(_ERROR_KEYS)
    kind = _plain(keys["kind"].value) if "kind" in keys else None
    if not isinstance(kind, str) or kind not in ERROR_KINDS:
        raise node.fail(f"kind is {kind!r}", f"Use one of {_listed(ERROR_KINDS)}.")
    if kind == "http" and "status" not in keys:
        raise node.fail("status is missing", "Give the HTTP status, 400 to 599.")
    if kind != "http" and "status" in keys:
        raise node.fail(f"status does not belong to kind {kind}", "Remove it, or use kind http.")
    return ScriptError(
        kind,
        _read(keys, "message", _Node.text, ""),
        _read(keys, "status", lambda status: status.number(400, 599), None),
        _read(keys, "retry_after_ms", _delay, None),
    )


def _text_template(node: _Node) -> Rendered:
    node.text()
    return node.template()


def _delay(node: _Node) -> int:
    return node.number(0, limits.SCRIPT_DELAY_MS)


def _tokens(node: _Node) -> int:
    return node.number(0, 1 << 31)


def _read(keys: Mapping[str, _Node], name: str, read: Callable[[_Node], T], default: T) -> T:
    node = keys.get(name)
    return default if node is None else read(node)


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names))
