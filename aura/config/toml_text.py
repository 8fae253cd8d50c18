"""Reads TOML into the same plain values that YAML gives. It knows no key and no default.

The standard library parses and forgets the lines, so values of a TOML file are known by their keys only.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from aura import limits
from aura.config.schema import Place
from aura.config.yaml_text import Tree
from aura.errors import ConfigInvalid

_POSITION = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


def parse_toml(text: str, path: Path) -> Tree:
    """Return the document of `text`; all its lines are 0, unknown.

    Raises `ConfigInvalid` naming the file, and the line of a syntax error or the key, for what is not TOML, for dates,
    and for more than `limits.CONFIG_VALUES_MAX_COUNT` values or `limits.CONFIG_NESTING_MAX_COUNT` levels.
    """
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigInvalid(f"{path}: it is nested too deeply") from error
    except ValueError as error:
        raise _syntax_error(str(error), text, path) from error
    return Tree(_Converter(path).mapping(document, "", 1), 0)


class _Converter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0

    def mapping(self, table: Mapping[str, object], key: str, level: int) -> dict[str, Tree]:
        self._check(key, level)
        above = f"{key}." if key else ""
        return {name: self._tree(value, f"{above}{name}", level + 1) for name, value in table.items()}

    def _tree(self, value: object, key: str, level: int) -> Tree:
        if isinstance(value, dict):
            return Tree(self.mapping(value, key, level), 0)
        self._check(key, level)
        if isinstance(value, list):
            return Tree(tuple(self._tree(item, f"{key}[{index}]", level + 1) for index, item in enumerate(value)), 0)
        if isinstance(value, (bool, int, float, str)):
            return Tree(value, 0)
        raise Place(self._path, 0, key).error("found a date or time, which no key takes", hint="Put it in quotes.")

    def _check(self, key: str, level: int) -> None:
        self._count += 1
        place = Place(self._path, 0, key)
        if self._count > limits.CONFIG_VALUES_MAX_COUNT:
            raise place.error(f"there are more than {limits.CONFIG_VALUES_MAX_COUNT} values")
        if level > limits.CONFIG_NESTING_MAX_COUNT:
            raise place.error(f"there are more than {limits.CONFIG_NESTING_MAX_COUNT} levels")


def _syntax_error(problem: str, text: str, path: Path) -> ConfigInvalid:
    position = _POSITION.search(problem)
    if position is None:
        return ConfigInvalid(f"{path}: a value is no TOML: a number is too long")
    line = int(position[1]) if position[1] else text.count("\n") + 1
    return ConfigInvalid(f"{path}:{line}: it is not TOML: {' '.join(problem[: position.start()].split())}")
