"""`--since`: a moment as people write it. The one place that reads it, for every command that has the option."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from aura.clock import SystemClock, parse_time
from aura.errors import BadRequest

F = TypeVar("F", bound=Callable[..., Any])

_AGO = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def parse_since(text: str, now_ms: int) -> int:
    """Return the moment that `text` means, in Unix milliseconds.

    It is an RFC 3339 time (without a zone: UTC), a date (its midnight in UTC), or a time before `now_ms`: `90s`, `30m`,
    `12h`, `7d`, `2w`. Raises `BadRequest` for anything else.
    """
    ago = _AGO.fullmatch(text)
    if ago:
        return now_ms - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        return parse_time(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)
    except ValueError as error:
        raise BadRequest(
            f"{text[:80]!r} is not a time", hint="For example 30m, 12h, 7d, 2026-01-31 or 2026-01-31T09:00:00Z."
        ) from error


def since_option(help: str, default: str | None = None) -> Callable[[F], F]:
    """Add `--since TIME`, as `since_ms`: Unix milliseconds, or None when it is not given and has no `default`."""

    def read(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
        return None if text is None else parse_since(text, SystemClock().now_ms())

    return click.option(
        "--since",
        "since_ms",
        metavar="TIME",
        default=default,
        show_default=default is not None,
        callback=read,
        help=f"{help} TIME is 30m, 12h, 7d (that long ago), a date, or an RFC 3339 time; UTC.",
    )
