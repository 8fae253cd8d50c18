"""What is kept and shown of a command's output: capture, live lines, truncation."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from aura import limits
from aura.config.spec import BashSpec
from aura.engine.executors.capture import Capture, Captured
from aura.engine.executors.live import LiveOutput
from aura.engine.tools.bash import shorten


def test_a_capture_keeps_both_ends_and_spills_everything(tmp_path: Path) -> None:
    rng = random.Random(7)
    for cap_bytes in (1, 2, 7, 10, 1000):
        whole = bytes(rng.randrange(256) for _ in range(100))
        capture = Capture(cap_bytes, tmp_path, "out")
        position = 0
        while position < len(whole):
            size = rng.randrange(0, 30)
            capture.feed(whole[position : position + size])
            position += size
        kept = capture.finish()
        assert len(kept.head) + len(kept.tail) + kept.left_out_bytes == len(whole)
        assert whole.startswith(kept.head)
        assert whole.endswith(kept.tail)
        assert len(kept.head) + len(kept.tail) == min(cap_bytes, len(whole))
        if cap_bytes >= len(whole):
            assert kept.spill is None
        else:
            assert kept.spill is not None
            assert kept.spill.read_bytes() == whole


def test_a_spill_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SPILL_MAX_BYTES", 15)
    capture = Capture(4, tmp_path / "made/later")
    for _ in range(10):
        capture.feed(b"0123456789")
    kept = capture.finish()
    assert kept.spill is not None
    assert kept.spill.read_bytes() == b"012345678901234"


def test_a_spill_that_cannot_be_written_is_not_pointed_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    capture = Capture(4, tmp_path / "file")
    capture.feed(b"0123456789")
    assert capture.finish() == Captured(b"01", b"89", 6, None)


def test_live_lines_are_joined_and_spaced() -> None:
    shown: list[str] = []
    live = LiveOutput(shown.append, interval_ms=200)
    live.feed("stdout", b"a\nb")
    live.tick(1000)
    live.feed("stdout", b"b\nc\n")
    live.feed("stderr", b"err\n")
    live.tick(1100)
    assert live.due_ms(1100) == 100
    assert shown == ["a"]
    live.tick(1200)
    assert shown == ["a", "bb\nc\nerr"]
    assert live.due_ms(1300) is None
    live.feed("stdout", b"end without a line break \xff")
    live.tick(5000)
    assert len(shown) == 2
    live.finish()
    assert shown[2] == "end without a line break \ufffd"


def test_live_output_is_bounded_and_keeps_the_latest() -> None:
    shown: list[str] = []
    live = LiveOutput(shown.append)
    for number in range(10_000):
        live.feed("stdout", b"%d\n" % number)
    live.feed("stdout", b"x" * 1_000_000)
    live.finish()
    assert len(shown) == 1
    assert len(shown[0]) <= 2 * limits.OUTPUT_EVENT_MAX_BYTES
    assert "9999\n" in shown[0]


SPEC = BashSpec(max_lines=10, head_lines=3, tail_lines=2)


def lines(count: int) -> bytes:
    """So many numbered lines."""
    return b"".join(b"%d\n" % number for number in range(1, count + 1))


def test_a_short_output_is_left_as_it_is(tmp_path: Path) -> None:
    assert shorten(Captured(lines(10)), SPEC, tmp_path, "c") == lines(10).decode()
    assert not list(tmp_path.iterdir())


def test_a_long_output_is_cut_in_the_middle_and_kept_in_a_file(tmp_path: Path) -> None:
    text = shorten(Captured(lines(11)), SPEC, tmp_path, "c")
    (spill,) = tmp_path.iterdir()
    assert text == f"1\n2\n3\n[… 6 lines left out; the full output is in {spill} …]\n10\n11\n"
    assert spill.read_bytes() == lines(11)


def test_left_out_bytes_are_told(tmp_path: Path) -> None:
    captured = Captured(b"ab\xc3", b"\xa9cd", 77, tmp_path / "f")
    text = shorten(captured, SPEC, tmp_path, "c")
    assert text == f"ab\ufffd\n[… 77 bytes left out; the full output is in {tmp_path / 'f'} …]\n\ufffdcd"


def test_head_and_tail_wider_than_the_bound_show_everything(tmp_path: Path) -> None:
    spec = BashSpec(max_lines=4, head_lines=50, tail_lines=50)
    assert shorten(Captured(lines(9)), spec, tmp_path, "c") == lines(9).decode()


def test_a_bound_without_head_and_tail_shows_the_marker_only(tmp_path: Path) -> None:
    spec = BashSpec(max_lines=0, head_lines=0, tail_lines=0)
    assert shorten(Captured(lines(3)), spec, tmp_path, "c").startswith("[… 3 lines left out")
