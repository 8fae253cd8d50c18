"""Time as the rest of the program sees it: Unix milliseconds inside, RFC 3339 UTC text outside.

Everything that needs the time is given a `Clock`, so that tests and replays are exact. Only `SystemClock` asks the
machine.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_FIRST_MS = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_MS = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


class Clock(Protocol):
    """A source of time. Any thread may call it."""

    def now_ms(self) -> int:
        """Return the Unix time in milliseconds."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back, for waits and durations."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Return the Unix time in milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back, for waits and durations."""
        return time.monotonic_ns() // 1_000_000


def format_time(at_ms: int) -> str:
    """Return RFC 3339 text in UTC with milliseconds and `Z` (interfaces.md section 2)."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def parse_time(text: str) -> int:
    """Return Unix milliseconds for RFC 3339 text with any zone; a text without a zone is taken as UTC.

    Raises `ValueError` for anything else, and for a moment outside of the years 1 to 9999 in UTC.
    """
    if not _RFC_3339.fullmatch(text):
        raise ValueError("not an RFC 3339 time")
    moment = datetime.fromisoformat(text.upper())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    at_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
    if not _FIRST_MS <= at_ms <= _LAST_MS:
        raise ValueError("outside of the years 1 to 9999 in UTC")
    return at_ms
