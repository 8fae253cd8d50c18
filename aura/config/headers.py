"""Checks HTTP headers that somebody configured: names in lower case, each once; values are never shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from aura.config.readers import describe
from aura.config.schema import Place

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# What the transport sets itself (gateway.md 1.10).
RESERVED_HEADERS = frozenset(
    ("content-type", "accept", "mcp-session-id", "host", "content-length", "transfer-encoding")
)
_HINT = 'Use the name of a header, such as "x-user-id".'


def find_header_problem(value: str) -> str | None:
    """Say what is wrong with a header's value, None when nothing is."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return None
    return "a value holds characters that an HTTP header cannot carry"


def lower_names(names: Iterable[str], place: Place, reserved: Collection[str] = ()) -> tuple[str, ...]:
    """Return header names in lower case.

    Raises `ConfigInvalid` for what is no header's name, one of `reserved`, and one that stands there twice.
    """
    found: list[str] = []
    for name in names:
        lower = name.lower()
        if not HEADER_NAME.fullmatch(name):
            raise place.error(f"{describe(name)} is no name of a header", hint=_HINT)
        if lower in reserved:
            raise place.error(f"the header {describe(name)} is set by aura itself", hint="Leave it out.")
        if lower in found:
            raise place.error(f"the header {describe(name)} stands there twice", hint="Leave one of them out.")
        found.append(lower)
    return tuple(found)


def lower_pairs(
    pairs: Mapping[str, str], place: Place, reserved: Collection[str] = RESERVED_HEADERS
) -> tuple[tuple[str, str], ...]:
    """Return pairs of a header to be sent and the caller's header that it is taken from, both in lower case.

    Raises `ConfigInvalid` as `lower_names` does, which looks at the headers to be sent.
    """
    sent = lower_names(pairs, place, reserved)
    taken = [lower_names([name], place)[0] for name in pairs.values()]
    return tuple(zip(sent, taken, strict=True))
