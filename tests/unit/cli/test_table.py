"""Plain text for people: `aura.cli.table`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.cli.table import format_rows, one_line, short_time, shorten, width


def test_columns_are_aligned_by_what_the_screen_shows():
    text = format_rows([("ID", "TITLE", "N"), ("a", "日本", "1"), ("bcd", "é", "100")], frozenset((2,)))
    assert text == "ID   TITLE    N\na    日本     1\nbcd  é      100\n"


def test_no_line_ends_in_spaces():
    assert format_rows([("a", "b"), ("long", "")]) == "a     b\nlong\n"


@given(st.text())
def test_a_line_has_no_control_character_and_no_line_end(text):
    line = one_line(text)
    assert line.isprintable() and line == line.strip()


@given(st.text(), st.integers(min_value=1, max_value=80))
def test_a_shortened_text_fits_its_columns(text, columns):
    short = shorten(text, columns)
    assert width(short) <= columns
    assert short == one_line(text) or short.endswith("…")


@pytest.mark.parametrize(("text", "columns"), [("", 0), ("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("✓", 1)])
def test_width_counts_columns(text, columns):
    assert width(text) == columns


def test_a_time_is_utc_to_the_second():
    assert short_time(1_795_000_000_999) == "2026-11-18T11:06:40".replace("T", " ") + "Z"
