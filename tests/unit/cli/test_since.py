"""`--since`: what people may write, and what it means."""

from __future__ import annotations

import click
import pytest

from aura.cli.since import parse_since, since_option
from aura.clock import parse_time
from aura.errors import BadRequest

NOW_MS = parse_time("2026-03-10T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", "2026-03-10T11:58:30Z"),
        ("30m", "2026-03-10T11:30:00Z"),
        ("12h", "2026-03-10T00:00:00Z"),
        ("7d", "2026-03-03T12:00:00Z"),
        ("2w", "2026-02-24T12:00:00Z"),
        ("0m", "2026-03-10T12:00:00Z"),
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("2026-01-31T09:00:00Z", "2026-01-31T09:00:00Z"),
        ("2026-01-31T09:00:00.250+02:00", "2026-01-31T07:00:00.250Z"),
        ("2026-01-31 09:00:00", "2026-01-31T09:00:00Z"),
    ],
)
def test_a_time_is_a_date_a_moment_or_that_long_ago(text, moment):
    assert parse_since(text, NOW_MS) == parse_time(moment)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "7", "d", "-7d", "7 d", "7D", "1.5h", "٧d", "2026-13-01", "2026-01", "9999999999d"]
)
def test_anything_else_is_a_bad_request_that_shows_examples(text):
    with pytest.raises(BadRequest) as caught:
        parse_since(text, NOW_MS)
    assert "7d" in (caught.value.hint or "")


def test_the_option_gives_milliseconds_or_its_default_or_nothing():
    seen = []

    @click.command()
    @since_option("Only newer ones.")
    def plain(since_ms):
        seen.append(since_ms)

    @click.command()
    @since_option("Only newer ones.", default="1970-01-02")
    def with_default(since_ms):
        seen.append(since_ms)

    plain.main([], standalone_mode=False)
    plain.main(["--since", "2026-01-31"], standalone_mode=False)
    with_default.main([], standalone_mode=False)
    assert seen == [None, parse_time("2026-01-31T00:00:00Z"), 86_400_000]
