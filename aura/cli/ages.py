"""How people write a length of time on the command line: `30d`, `12h`, `90m`, `2w`."""

from __future__ import annotations

import click

_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_DIGITS_MAX_COUNT = 6  # a million weeks is no age of anything


def read_age(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Return an option's value in milliseconds, None where it was not given: a callback for click."""
    if value is None:
        return None
    digits, unit = value[:-1], value[-1:]
    if unit not in _UNITS_MS or not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS_MAX_COUNT:
        raise click.BadParameter(f"{value!r} is not an age: write 30d, 12h, 90m or 2w")
    return int(digits) * _UNITS_MS[unit]
