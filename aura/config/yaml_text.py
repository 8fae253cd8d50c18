"""Reads YAML strictly into plain values that know their lines. It knows no key and no default.

PyYAML parses; this module walks the parsed nodes, because PyYAML's own construction takes the last of two equal keys,
forgets where a value stood, and lets aliases multiply without bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from aura import limits
from aura.errors import ConfigInvalid

Scalar: TypeAlias = "None | bool | int | float | str"

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_MAPPING = _TAG + "map"
_SEQUENCE = _TAG + "seq"
_TEXTS = frozenset({_TAG + "str", _TAG + "timestamp", _TAG + "value", _MERGE})  # a date is text here, as written
_SCALARS = frozenset({_TAG + name for name in ("null", "bool", "int", "float")})


@dataclass(frozen=True, slots=True)
class Tree:
    """A YAML value and the 1-based line where it, or the key before it, stands."""

    value: Scalar | tuple[Tree, ...] | Mapping[str, Tree]
    line: int


def parse_yaml(text: str, path: Path, first_line: int = 1) -> Tree:
    """Return the one document of `text`. Nothing but white space and comments is an empty mapping.

    `first_line` is the line of `path` on which `text` begins. Keys must be text and may stand once; merge keys (`<<`)
    give what the mapping itself does not have.

    Raises `ConfigInvalid` naming file and line for anything that is not one such document, and for more than
    `limits.CONFIG_VALUES_MAX_COUNT` values or `limits.CONFIG_NESTING_MAX_COUNT` levels.
    """
    return _Reader(path, first_line).read(text)


class _Reader:
    def __init__(self, path: Path, first_line: int) -> None:
        self._path = path
        self._first_line = first_line
        self._count = 0
        self._loader: yaml.CSafeLoader | yaml.SafeLoader

    def read(self, text: str) -> Tree:
        try:
            self._loader = (yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)(text)
            node = self._loader.get_single_node()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._error(mark.line if mark else 0, error.problem or "it is not YAML") from error
        except yaml.reader.ReaderError as error:
            code = error.character if isinstance(error.character, int) else ord(error.character)
            line = text.count("\n", 0, max(text.find(chr(code)), 0))  # PyYAML's position is bytes or characters
            raise self._error(line, f"the character U+{code:04X} is not allowed") from error
        except RecursionError as error:
            raise self._error(0, "it is nested too deeply") from error
        value = self._value(node, 1) if node is not None else None
        return Tree({} if value is None else value, self._line(node) if node is not None else self._first_line)

    def _value(self, node: yaml.Node, level: int) -> Scalar | tuple[Tree, ...] | dict[str, Tree]:
        self._count += 1
        if self._count > limits.CONFIG_VALUES_MAX_COUNT:
            raise self._error(node.start_mark.line, f"there are more than {limits.CONFIG_VALUES_MAX_COUNT} values")
        if level > limits.CONFIG_NESTING_MAX_COUNT:
            raise self._error(node.start_mark.line, f"there are more than {limits.CONFIG_NESTING_MAX_COUNT} levels")
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            return self._mapping(node, level)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            return tuple(Tree(self._value(item, level + 1), self._line(item)) for item in node.value)
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, level: int) -> dict[str, Tree]:
        own: dict[str, Tree] = {}
        merged: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged |= self._merged(value_node, level)
                continue
            key = self._key(key_node)
            if key in own:
                first = own[key].line
                raise self._error(key_node.start_mark.line, f"the key {key!r} stands on line {first} already")
            own[key] = Tree(self._value(value_node, level + 1), self._line(key_node))
        return {**merged, **own}

    def _merged(self, node: yaml.Node, level: int) -> dict[str, Tree]:
        value = self._value(node, level + 1)
        mappings = [item.value for item in value] if isinstance(value, tuple) else [value]
        merged: dict[str, Tree] = {}
        for mapping in reversed(mappings):  # YAML: the first mapping of the list wins
            if not isinstance(mapping, dict):
                raise self._error(node.start_mark.line, "the merge key << needs a mapping or a list of mappings")
            merged |= mapping
        return merged

    def _key(self, node: yaml.Node) -> str:
        value = self._scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(value, str):
            shown = repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or mapping"
            raise self._error(node.start_mark.line, f"a key must be text, not {shown}", hint="Put it in quotes.")
        return value

    def _scalar(self, node: yaml.Node) -> Scalar:
        line = node.start_mark.line
        if node.tag in _TEXTS and isinstance(node, yaml.ScalarNode):
            return self._text(node.value, line)
        if node.tag not in _SCALARS or not isinstance(node, yaml.ScalarNode):
            raise self._error(line, f"the tag {node.tag!r} is not supported", hint="Leave the tag out.")
        try:
            value: Scalar = self._loader.construct_object(node)
        except (ValueError, LookupError, OverflowError) as error:  # PyYAML lets these out for `!!int ''` and the like
            kind = node.tag.removeprefix(_TAG)
            raise self._error(line, f"this is not a value of type {kind}") from error
        return value

    def _text(self, text: str, line: int) -> str:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise self._error(line, "the text holds half of a surrogate pair") from error
        return text

    def _line(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + self._first_line

    def _error(self, line: int, problem: str, hint: str | None = None) -> ConfigInvalid:
        return ConfigInvalid(f"{self._path}:{line + self._first_line}: {problem}", hint=hint)
