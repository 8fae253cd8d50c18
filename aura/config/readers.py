"""Readers of single values: what a key accepts, and how to say so. They know no file and no key.

A reader takes a plain YAML value and returns a typed one, or raises `Unacceptable`, which never shows a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from aura.config.interpolated import Interpolated
from aura.config.yaml_text import Scalar, Tree

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | Mapping[str, str]"
Found: TypeAlias = "Scalar | tuple[Tree, ...] | Mapping[str, Tree]"

_SHOWN_MAX_CHARS = 60
_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,6})?(?:h|ms|m|s))+")
_SPELLED = re.compile(r"[+-]?[0-9]{1,18}")
_FLAG_SPELLINGS = {"true": True, "1": True, "false": False, "0": False}
_OTHER_WILDCARD = re.compile(r"[?\[\]{}\\!]")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")


class Unacceptable(Exception):
    """The value is not what the reader accepts. `problem` says what was found instead."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class Reader(Protocol):
    """What one key accepts."""

    @property
    def accepts(self) -> str:
        """The accepted values in words that follow `Use`."""
        ...

    def read(self, value: Found) -> Value:
        """Return the typed value. Raises `Unacceptable`."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Text. With `pattern` the whole text must match it, and `what` says in words what that means.

    A `secret` is never shown in an error.
    """

    what: str = "text"
    pattern: re.Pattern[str] | None = None
    secret: bool = False

    @property
    def accepts(self) -> str:
        return self.what

    def read(self, value: Found) -> str:
        if not isinstance(value, str):
            raise Unacceptable(kind_of(value) if self.secret else f"found {describe(value)}{_quote_hint(value)}")
        if self.pattern is not None and not self.pattern.fullmatch(value):
            raise Unacceptable("found another text" if self.secret else f"found {describe(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    @property
    def accepts(self) -> str:
        return "true or false"

    def read(self, value: Found) -> bool:
        if not isinstance(value, bool):
            raise Unacceptable(f"found {describe(value)}")
        return value


@dataclass(frozen=True, slots=True)
class LenientFlag:
    """True or false, also as text in any case or as 1 or 0: it may come from an environment variable."""

    @property
    def accepts(self) -> str:
        return "true or false"

    def read(self, value: Found) -> bool:
        found = _FLAG_SPELLINGS.get(str(value).strip().lower()) if isinstance(value, (bool, int, str)) else None
        if found is None:
            raise Unacceptable(f"found {describe(value)}")
        return found


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `low` to `high`, in `unit`. With `spelled`, also as text in decimal digits."""

    low: int
    high: int
    unit: str = ""
    spelled: bool = False

    @property
    def accepts(self) -> str:
        return f"a whole number from {self.low} to {self.high}" + (f" ({self.unit})" if self.unit else "")

    def read(self, value: Found) -> int:
        if self.spelled and isinstance(value, str) and _SPELLED.fullmatch(value.strip()):
            if not self.low <= int(value) <= self.high:
                raise Unacceptable(f"found {describe(value)}")
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise Unacceptable(f"found {describe(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `low` to `high`. NaN is none."""

    low: float
    high: float

    @property
    def accepts(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"

    def read(self, value: Found) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            raise Unacceptable(f"found {describe(value)}")
        return float(value)


@dataclass(frozen=True, slots=True)
class Texts:
    """A list of texts. It may be empty itself; its items only with `blank`. A `secret` is never shown in an error."""

    example: str = "*"
    blank: bool = False
    secret: bool = False

    @property
    def accepts(self) -> str:
        return f'a list of texts, such as ["{self.example}"]'

    def read(self, value: Found) -> tuple[str, ...]:
        if not isinstance(value, tuple):
            raise Unacceptable(f"found {self._show(value)}")
        return tuple(self._item(index, item.value) for index, item in enumerate(value))

    def _item(self, index: int, value: Found) -> str:
        if not isinstance(value, str) or not (self.blank or value.strip()):
            raise Unacceptable(f"item {index + 1} is {self._show(value)}")
        return value

    def _show(self, value: Found) -> str:
        return kind_of(value).removeprefix("found ") if self.secret else describe(value)


@dataclass(frozen=True, slots=True)
class Globs:
    """A list of patterns for names, in which `*` stands for any characters. There are no other wildcards.

    Those of other languages are refused, because a pattern that means something else than its writer thinks may open
    what it should close.
    """

    example: str = "list_*"

    @property
    def accepts(self) -> str:
        return f'a list of names with * for any characters, such as ["{self.example}"]'

    def read(self, value: Found) -> tuple[str, ...]:
        globs = Texts().read(value)
        for index, glob in enumerate(globs):
            if _OTHER_WILDCARD.search(glob) or glob != glob.strip():
                raise Unacceptable(f"item {index + 1} is {describe(glob)}, which is no such name")
        return globs


@dataclass(frozen=True, slots=True)
class SecretTexts:
    """A mapping from names, which match `pattern`, to texts, which are never shown in an error.

    `what` says in words what the names are.
    """

    what: str
    pattern: re.Pattern[str]
    example: str

    @property
    def accepts(self) -> str:
        return f"a mapping from {self.what} to texts, such as {{{self.example}}}"

    def read(self, value: Found) -> Mapping[str, str]:
        if not isinstance(value, Mapping):
            raise Unacceptable(kind_of(value))
        return {name: self._item(name, item.value) for name, item in value.items()}

    def _item(self, name: str, value: Found) -> str:
        if not self.pattern.fullmatch(name):
            raise Unacceptable(f"found the name {describe(name)}")
        if not isinstance(value, str):
            raise Unacceptable(f"at {name}: {kind_of(value)}{_quote_hint(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of `options`. `later` are options that the reference knows and this version does not.

    `booleans` are the options that `true` and `false` stand for, because YAML reads `on` and `off` as these.
    """

    options: tuple[str, ...]
    later: tuple[str, ...] = ()
    booleans: Mapping[bool, str] | None = None

    @property
    def accepts(self) -> str:
        return "one of " + ", ".join(self.options)

    def read(self, value: Found) -> str:
        if isinstance(value, bool) and self.booleans is not None:
            return self.booleans[value]
        if not isinstance(value, str) or value not in self.options:
            later = isinstance(value, str) and value in self.later
            raise Unacceptable(f"{describe(value)} is not supported yet" if later else f"found {describe(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Duration:
    """A time from `low_ms` to `high_ms`: `5m`, `1h30m`, `1.5s`, `250ms`, or a whole number of milliseconds."""

    low_ms: int
    high_ms: int

    @property
    def accepts(self) -> str:
        span = f"from {_spell(self.low_ms)} to {_spell(self.high_ms)}"
        return f"a time {span}, such as 10s, 5m or 1h30m; a bare number is milliseconds"

    def read(self, value: Found) -> int:
        found_ms = self._milliseconds(value)
        if found_ms is None or not self.low_ms <= found_ms <= self.high_ms:
            raise Unacceptable(f"found {describe(value)}")
        return found_ms

    def _milliseconds(self, value: Found) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if not isinstance(value, str) or not _DURATION.fullmatch(value):
            return None
        return round(sum(float(count) * _UNITS_MS[unit] for count, unit in _DURATION_PART.findall(value)))


def kind_of(value: Found) -> str:
    """Return what sort of value was found, without the value."""
    if value is None:
        return "found nothing"
    if isinstance(value, bool):
        return "found a switch"
    if isinstance(value, (int, float)):
        return "found a number"
    return "found " + ("text" if isinstance(value, str) else describe(value))


def describe(value: Found) -> str:
    """Return the value as an error shows it: quoted where it is text, on one line, at most a few words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = value.written if isinstance(value, Interpolated) else value
        return json.dumps(_cut(shown), ensure_ascii=False)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_SHOWN_MAX_CHARS else "a huge number"
    if isinstance(value, float):
        return str(value)
    return "a mapping" if isinstance(value, Mapping) else "a list"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX_CHARS else text[:_SHOWN_MAX_CHARS] + "…"


def _quote_hint(value: Found) -> str:
    return ", which is not text; put it in quotes" if isinstance(value, (bool, int, float)) else ""


def _spell(duration_ms: int) -> str:
    for unit, size_ms in _UNITS_MS.items():
        if duration_ms and duration_ms % size_ms == 0:
            return f"{duration_ms // size_ms}{unit}"
    return "0s"
