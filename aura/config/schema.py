"""Reads a YAML mapping by a table of its keys, strictly. It knows no particular key.

A `Table` names every key of a mapping and gives each its rule: a reader for a value, another table for a section, or
`Later` for a key of the reference that this version does not act on. A new kind of file, or a new section of one, is
a new table. What was read is flat: `tools.policy.deny` is one `Setting`, which remembers where it was written, so that
layers merge key by key and a later error still names the right file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from aura.config.readers import Reader, Unacceptable, Value, describe, kind_of
from aura.config.yaml_text import Tree
from aura.errors import ConfigInvalid

V = TypeVar("V", bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Later:
    """A key that is known and not supported yet. `what` names the feature, for the error."""

    what: str


Rule: TypeAlias = "Reader | Later | Table"
Table: TypeAlias = "Mapping[str, Rule]"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a file, a 1-based line (0 where none is known), and the dotted key ("" for the whole
    file).
    """

    path: Path
    line: int
    key: str = ""

    def __str__(self) -> str:
        shown = self.key if self.key.isprintable() else describe(self.key)
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        return where + (f": {shown}" if shown else "")

    def error(self, problem: str, hint: str | None = None) -> ConfigInvalid:
        """Return the error that names this place."""
        return ConfigInvalid(f"{self}: {problem}", hint=hint)


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that somebody wrote, and where."""

    value: Value
    place: Place


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of one mapping, or of several laid over one another, by dotted key. Absent is not set."""

    items: Mapping[str, Setting]

    def find(self, key: str, kind: type[V]) -> V | None:
        """Return the value of `key`, None when it is not set. `kind` is the type that the table's reader gives."""
        setting = self.items.get(key)
        if setting is None:
            return None
        if not isinstance(setting.value, kind):
            raise TypeError(f"the table reads {key} as {type(setting.value).__name__}, not {kind.__name__}")
        return setting.value

    def get(self, key: str, default: V) -> V:
        """Return the value of `key`, or `default`, which has the type that the table's reader gives."""
        value = self.find(key, type(default))
        return default if value is None else value

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the list at `key`, or `default`."""
        setting = self.items.get(key)
        if setting is None:
            return default
        if not isinstance(setting.value, tuple):
            raise TypeError(f"the table reads {key} as {type(setting.value).__name__}, not as a list")
        return setting.value

    def texts_by_name(self, key: str) -> Mapping[str, str]:
        """Return the mapping from names to texts at `key`, an empty one when it is not set."""
        setting = self.items.get(key)
        if setting is None:
            return {}
        if not isinstance(setting.value, Mapping):
            raise TypeError(f"the table reads {key} as {type(setting.value).__name__}, not as a mapping")
        return setting.value

    def place(self, key: str, otherwise: Place) -> Place:
        """Return where `key` was written, `otherwise` when it was not."""
        setting = self.items.get(key)
        return otherwise if setting is None else setting.place

    def under(self, prefix: str) -> Settings:
        """Return the same settings with `prefix` and a dot before every key."""
        return Settings({f"{prefix}.{key}": setting for key, setting in self.items.items()})


def overlay(layers: Iterable[Settings]) -> Settings:
    """Return the layers laid over one another, key by key: the last one that sets a key wins, lists whole."""
    items: dict[str, Setting] = {}
    for layer in layers:
        items |= layer.items
    return Settings(items)


def read_settings(tree: Tree, table: Table, place: Place) -> Settings:
    """Return the values of the mapping `tree`, which stands at `place`, by their dotted keys below that place.

    A key without a value (null) is not set. Raises `ConfigInvalid` naming file, line, dotted key and what is accepted
    for an unknown key, a key of a later version and an unacceptable value.
    """
    items: dict[str, Setting] = {}
    _read_section(tree, table, place, items)
    above = f"{place.key}." if place.key else ""
    return Settings({key.removeprefix(above): setting for key, setting in items.items()})


def read_entries(tree: Tree, place: Place, what: str) -> Mapping[str, Tree]:
    """Return the entries of a mapping from names that the user chose. `what` says what an entry is, for the error."""
    if isinstance(tree.value, Mapping):
        return tree.value
    raise place.error(kind_of(tree.value), hint=f"Use a mapping from names to {what}.")


def _read_section(tree: Tree, table: Table, place: Place, items: dict[str, Setting]) -> None:
    if not isinstance(tree.value, Mapping):
        hint = f"Use a mapping with the keys {_join(_accepted(table))}."
        raise place.error(kind_of(tree.value), hint=hint)
    for name, child in tree.value.items():
        key = f"{place.key}.{name}" if place.key else name
        _read_key(name, child, table, Place(place.path, child.line, key), items)


def _read_key(name: str, child: Tree, table: Table, place: Place, items: dict[str, Setting]) -> None:
    rule = table.get(name)
    if rule is None:
        raise _unknown(name, table, place)
    if child.value is None:
        return
    if isinstance(rule, Later):
        hint = f"Leave it out; supported here: {_join(_accepted(table))}."
        raise place.error(f"{rule.what} not supported yet", hint=hint)
    if isinstance(rule, Mapping):
        _read_section(child, rule, place, items)
        return
    try:
        value = rule.read(child.value)
    except Unacceptable as error:
        raise place.error(error.problem, hint=f"Use {rule.accepts}.") from None
    items[place.key] = Setting(value, place)


def _unknown(name: str, table: Table, place: Place) -> ConfigInvalid:
    from difflib import get_close_matches  # costs more to import than a whole configuration to read

    accepted = _accepted(table)
    close = get_close_matches(name, accepted, n=1)
    guess = f"Did you mean {close[0]}? " if close else ""
    return place.error("this key is unknown", hint=f"{guess}Accepted here: {_join(accepted)}.")


def _accepted(table: Table) -> list[str]:
    return sorted(name for name, rule in table.items() if not isinstance(rule, Later))


def _join(names: Iterable[str]) -> str:
    return ", ".join(names)
