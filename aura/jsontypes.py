"""The type of JSON values, and narrow readers for them. It encodes and decodes nothing: that is
`aura.wire.canonical`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
JsonObject: TypeAlias = "Mapping[str, JsonValue]"


def object_at(fields: JsonValue, key: str) -> JsonObject:
    """Return the object under `key`, an empty one when there is none or `fields` is no object."""
    value = fields.get(key) if isinstance(fields, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def text_at(fields: JsonValue, key: str) -> str:
    """Return the string under `key`, "" when there is none or `fields` is no object."""
    value = fields.get(key) if isinstance(fields, Mapping) else None
    return value if isinstance(value, str) else ""


def items_at(fields: JsonValue, key: str) -> Sequence[JsonValue]:
    """Return the items of the list under `key`, none when there is no list or `fields` is no object."""
    value = fields.get(key) if isinstance(fields, Mapping) else None
    return value if isinstance(value, (list, tuple)) else ()
