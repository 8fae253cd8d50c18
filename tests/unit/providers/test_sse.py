"""The stream decoder finds the same frames however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.engine.providers.sse import Frame, LineTooLong, SseDecoder

STREAM = (
    "\ufeff: comment\r\n"
    'data: {"a": "naïve \u2028 \u0085 日本 😀"}\n\n'
    "event: x\rdata: one\rdata: two\r\r"
    "retry: 5\r\n\r\n"
    "data\r\n\r\n"
    'error: {"code": 500}\n\n'
    "data:[DONE]\n\n"
    "data: cut off"
).encode()
FRAMES = [
    Frame("", '{"a": "naïve \u2028 \u0085 日本 😀"}'),
    Frame("x", "one\ntwo"),
    Frame("", ""),
    Frame("error", '{"code": 500}'),
    Frame("", "[DONE]"),
]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM)), max_size=40))
def test_cuts_do_not_matter(places):
    decoder = SseDecoder()
    edges = [0, *sorted(places), len(STREAM)]
    found = [frame for start, end in pairwise(edges) for frame in decoder.feed(STREAM[start:end])]
    assert found == FRAMES


def test_single_bytes_do_not_matter():
    decoder = SseDecoder()
    assert [frame for byte in STREAM for frame in decoder.feed(bytes([byte]))] == FRAMES


def test_invalid_utf8_is_replaced():
    assert SseDecoder().feed(b"data: a\xffb\n\n") == [Frame("", "a\ufffdb")]


def test_a_line_without_end_is_refused():
    decoder = SseDecoder(line_bytes=100)
    decoder.feed(b"data: " + b"x" * 90)
    with pytest.raises(LineTooLong, match="longer than 100 bytes"):
        decoder.feed(b"x" * 90)
