"""Values of a script whose texts are sandboxed Jinja2 templates over `last`, `user` and `call`.

Compiled once, when the file is read; rendered per model call. A value without a template costs nothing. Rendering
touches no file, no environment and nothing else of this program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jinja2 import StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from aura.jsontypes import JsonValue
from aura.wire import canonical

NAMES = frozenset(("last", "user", "call"))
_ENVIRONMENT = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
_MARKS = ("{{", "{%", "{#")


class BadTemplate(ValueError):
    """A template that does not compile or render, or a value that is not JSON. The message starts with its key."""


@dataclass(frozen=True, slots=True)
class Context:
    """What templates may use: texts of the newest messages, and the 1-based number of this model call."""

    last: str
    user: str
    call: int


Rendered = Callable[[Context], JsonValue]


def compile_value(value: object, key: str) -> Rendered:
    """Return a function that renders `value`, texts at any depth. Raises `BadTemplate`; so may the function."""
    if isinstance(value, str):
        return _compile_text(value, key)
    if isinstance(value, Mapping):
        members = {name: compile_value(member, f"{key}.{name}") for name, member in value.items()}
        return lambda context: {name: render(context) for name, render in members.items()}
    if isinstance(value, list):
        items = [compile_value(item, f"{key}[{index}]") for index, item in enumerate(value)]
        return lambda context: [render(context) for render in items]
    if value is None or isinstance(value, (bool, int, float)):
        plain: JsonValue = value
        _check_json(plain, key)
        return lambda context: plain
    raise BadTemplate(f"{key}: {value!r:.40} is not a JSON value: put it in quotes")


def _compile_text(text: str, key: str) -> Rendered:
    if not any(mark in text for mark in _MARKS):
        return lambda context: text
    try:
        unknown = meta.find_undeclared_variables(_ENVIRONMENT.parse(text)) - NAMES - _ENVIRONMENT.globals.keys()
        template = _ENVIRONMENT.from_string(text)
    except TemplateError as error:
        raise BadTemplate(f"{key}: bad template: {error}") from error
    if unknown:
        raise BadTemplate(f"{key}: bad template: {', '.join(sorted(unknown))} is not defined")
    return lambda context: _render(template, context, key)


def _render(template: Template, context: Context, key: str) -> str:
    try:
        return template.render(last=context.last, user=context.user, call=context.call)
    except (
        TemplateError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise BadTemplate(f"{key}: the template failed: {error}") from error


def _check_json(value: JsonValue, key: str) -> None:
    try:
        canonical.encode(value)
    except canonical.NotCanonical as error:
        raise BadTemplate(f"{key}: {error}") from error
