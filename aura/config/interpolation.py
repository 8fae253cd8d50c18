"""Puts environment variables into the texts of TOML files: `{{ env.NAME }}`, `{{ env.NAME | default: 'x' }}`.

It works on parsed values, so a comment never counts and a value never becomes syntax. What was put in is not looked at
again. Keys are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from aura.config.interpolated import Interpolated
from aura.config.schema import Place
from aura.config.yaml_text import Tree
from aura.errors import ConfigInvalid

_REFERENCE = re.compile(
    r"""\{\{ \s* env \. (?P<name>[A-Z_][A-Z0-9_]*) \s*
        (?: \| \s* default \s* : \s* (?: '(?P<single>[^']*)' | "(?P<double>[^"]*)" ) \s* )?
        \}\}""",
    re.VERBOSE,
)
_ANY_REFERENCE = re.compile(r"\{\{\s*env\s*\.")
_FORMS = "{{ env.NAME }} or {{ env.NAME | default: 'text' }}, with a name of A-Z, 0-9 and _"


def interpolate(files: Sequence[tuple[Path, Tree]], environ: Mapping[str, str]) -> list[Tree]:
    """Return the trees of the files, in order, with the variables of `environ` in all their texts, at any depth.

    A variable that is set and empty counts as set. A text with a reference in it becomes an `Interpolated`.

    Raises `ConfigInvalid` for something that begins like a reference and is none, and one that lists all variables of
    all files that are not set and have no default.
    """
    missing: dict[str, Place] = {}
    trees = [_Interpolator(path, environ, missing).tree(tree, "") for path, tree in files]
    if missing:
        listed = ", ".join(f"{name} ({place})" for name, place in missing.items())
        first = next(iter(missing))
        hint = f"Set them, or write a default: {{{{ env.{first} | default: 'text' }}}}."
        raise ConfigInvalid(f"environment variables that are not set: {listed}", hint=hint)
    return trees


def inserted_variables(texts: Iterable[str]) -> dict[str, str]:
    """Return the environment variables that were put into the texts, with their values. Never log them."""
    found: dict[str, str] = {}
    for text in texts:
        if isinstance(text, Interpolated):
            found |= text.inserted
    return found


def as_written(text: str) -> str:
    """Return the text as it stands in its file, with variables by name."""
    return text.written if isinstance(text, Interpolated) else text


class _Interpolator:
    def __init__(self, path: Path, environ: Mapping[str, str], missing: dict[str, Place]) -> None:
        self._path = path
        self._environ = environ
        self._missing = missing

    def tree(self, tree: Tree, key: str) -> Tree:
        value = tree.value
        if isinstance(value, str):
            return Tree(self._text(value, key), tree.line)
        if isinstance(value, tuple):
            return Tree(tuple(self.tree(item, f"{key}[{index}]") for index, item in enumerate(value)), tree.line)
        if isinstance(value, Mapping):
            above = f"{key}." if key else ""
            return Tree({name: self.tree(child, f"{above}{name}") for name, child in value.items()}, tree.line)
        return tree

    def _text(self, text: str, key: str) -> str:
        place = Place(self._path, 0, key)
        if _ANY_REFERENCE.search(_REFERENCE.sub("\0", text)):
            raise place.error("a reference to a variable is not written as one", hint=f"Use {_FORMS}.")
        inserted: dict[str, str] = {}

        def replaced(match: re.Match[str]) -> str:
            name = match["name"]
            if name in self._environ:
                inserted[name] = self._environ[name]
                return inserted[name]
            default: str | None = match["single"] if match["single"] is not None else match["double"]
            if default is None:
                self._missing.setdefault(name, place)
            return default or ""

        value, count = _REFERENCE.subn(replaced, text)
        bad = next((name for name, found in inserted.items() if not _is_utf8(found)), None)
        if bad is not None:
            raise place.error(f"the variable {bad} is not UTF-8")
        return Interpolated(value, text, inserted) if count else text


def _is_utf8(text: str) -> bool:
    """Tell whether the system could decode the value: what it could not is half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
