"""From the text of a command to its words (engine.md 7.1). It knows no command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

_ON = frozenset(("true", "on", "yes", "enable", "enabled", "1"))
_OFF = frozenset(("false", "off", "no", "disable", "disabled", "0"))


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command as it was typed.

    `name` is in lower case, with its slash. `rest` is everything after it, `arguments` the words of that.
    """

    text: str
    name: str
    arguments: tuple[str, ...]
    rest: str


def parse(text: str) -> Invocation:
    """Return the parts of `text`. Words are split as a shell does it, at white space where its quotes do not match."""
    first, *others = text.split(maxsplit=1) or [""]
    rest = others[0].strip() if others else ""
    return Invocation(text, first.lower(), tuple(_split(rest)), rest)


def find_switch(word: str) -> bool | None:
    """Return what a word for on or off means, None for any other word."""
    word = word.lower()
    if word in _ON:
        return True
    return False if word in _OFF else None


def _split(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError:
        return rest.split()
