"""Reads a `.env` file: lines of `KEY=VALUE`. It changes no environment and shows no value.

    # a comment
    export NAME=plain text     # to the end of the line, or to a # after a space
    QUOTED="with \\n, \\t, \\" and \\\\ as escapes"
    LITERAL='as it is'

A value is one line long. Variables are not put into values: a `$` is an ordinary character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from aura.config.files import read_text
from aura.errors import ConfigInvalid

DOTENV_NAME = ".env"
_LINE = re.compile(r"(?:export[ \t]+)?(?P<key>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?P<rest>.*)")
_SINGLE = re.compile(r"'([^']*)'[ \t]*(?:#.*)?")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?')
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


def with_dotenv(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return `environ` with what `.env` in `folder` adds to it. A variable that is set, even to nothing, stays.

    Without such a file it is `environ`. Raises `ConfigInvalid` naming file and line.
    """
    path = folder / DOTENV_NAME
    return {**(read_dotenv(path) if path.exists() else {}), **environ}


def read_dotenv(path: Path) -> dict[str, str]:
    """Return the variables of the file. Raises `ConfigInvalid` naming file and line, never a value."""
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        text = line.strip(" \t")
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise _error(path, number, "this is not KEY=VALUE", "Begin a comment with #; a name has no spaces.")
        key = match["key"]
        if key in lines:
            raise _error(path, number, f"{key} stands on line {lines[key]} already", "Leave one of the two out.")
        lines[key] = number
        found[key] = _value(match["rest"], path, number)
    return found


def _value(rest: str, path: Path, number: int) -> str:
    if "\0" in rest:
        raise _error(path, number, "the value holds a NUL character", None)
    if rest.startswith("'"):
        single = _SINGLE.fullmatch(rest)
        if single is None:
            raise _error(path, number, "the quote is not closed, or text follows it", "Close it on the same line.")
        return single[1]
    if rest.startswith('"'):
        double = _DOUBLE.fullmatch(rest)
        if double is None:
            raise _error(path, number, "the quote is not closed, or text follows it", "Close it on the same line.")
        unknown = next((escape for escape in _ESCAPE.findall(double[1]) if escape not in _ESCAPES), None)
        if unknown is not None:
            known = ", ".join(f"\\{escape}" for escape in _ESCAPES)
            raise _error(path, number, "the value holds an unknown escape", f"Use one of {known}, or single quotes.")
        return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], double[1])
    return _COMMENT.sub("", rest, count=1).rstrip(" \t")


def _error(path: Path, number: int, problem: str, hint: str | None) -> ConfigInvalid:
    return ConfigInvalid(f"{path}:{number}: {problem}", hint=hint)
