"""The type of JSON values, and narrow readers for them. It encodes and decodes nothing: that is
`aura.wire.canonical`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "None | bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue]"
JsonObject: TypeAlias = "Mapping[str, JsonValue]"
