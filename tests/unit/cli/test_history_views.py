"""How the commands that ask about the past print: safe lines, durations, colors in a terminal only."""

from __future__ import annotations

import pytest

from aura.cli.message_view import call_texts, title_text
from aura.cli.paint import Paint
from aura.cli.runs import make_query, took_text
from aura.cli.search import answer_text
from aura.cli.session_diff import diff_lines
from aura.cli.session_messages import plain_text
from aura.cli.table import clean_lines
from aura.conversation import Call, Header, Message, Summary
from aura.runtime.history import Diff, FieldChange, MessageChange, Placed, Save
from aura.runtime.search import Answer, Found

OFF, ON = Paint(False), Paint(True)
SUMMARY = Summary("s1", "", 0, 0, "0" * 64, 0, False, None)
HEADER = Header("s1", "", "", "")


def save(n: int) -> Save:
    return Save(n, f"{n}" * 64, 0, "run", None, n, n, 0, 0, HEADER)


def test_lines_are_kept_and_control_characters_are_not():
    assert clean_lines("a\r\nb\x1b[31m\tc\n\n") == ["a", "b [31m  c"]
    assert clean_lines("") == [""]


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "-"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_999, "59.9 s"),
        (245_000, "4 m 05 s"),
        (7_800_000, "2 h 10 m"),
    ],
)
def test_a_duration_is_short(ms, text):
    assert took_text(ms) == text


def test_states_outcomes_and_live_are_one_option():
    where = make_query("s1", ("live", "failed"), 5)
    assert where.states == {"accepted", "running", "finished"} and where.outcomes == {"failed"}
    assert (where.session_id, where.since_ms) == ("s1", 5)
    assert make_query(None, (), None).states == frozenset()


def test_a_message_is_headed_by_its_place_and_time_in_utc():
    message = Message("tool", "x", tool_name="Bash\n", created_at="2026-01-01T10:00:00.5+02:00")
    assert title_text(Placed(3, message)) == "[3] tool Bash 2026-01-01 08:00:00Z"
    assert title_text(Placed(None, Message("system", "x", created_at="once"))) == "[-] system once"


def test_calls_are_one_line_each():
    message = Message("assistant", "", calls=(Call("c", "Bash", {"command": "a\nb"}),))
    assert call_texts(message) == ['Bash {"command":"a\\nb"}']


def test_thinking_is_printed_only_when_it_is_asked_for():
    placed = Placed(0, Message("assistant", "said", thinking="thought"))
    assert "thought" not in plain_text(placed, False)
    assert "> thought\n" in plain_text(placed, True)


def test_a_diff_is_unified_and_colored_only_when_it_may_be():
    changes = (
        MessageChange(Placed(0, Message("user", "++ gone")), None),
        MessageChange(Placed(1, Message("user", "a\nb")), Placed(1, Message("user", "a\n++ c")), ("Content",)),
        MessageChange(None, Placed(2, Message("user", "new\x1b[2J"))),
    )
    diff = Diff(SUMMARY, save(1), save(2), 0, changes, (FieldChange("title", "old", "new"),))
    lines = list(diff_lines(diff, OFF))
    assert lines[0].startswith("--- 111111111111  ") and lines[1].startswith("+++ 222222222222  ")
    assert lines[2:] == [
        "@@ title",
        "-old",
        "+new",
        "@@ dropped [0] user",
        "-++ gone",
        "@@ rewritten [1] user (Content)",
        " a",
        "-b",
        "+++ c",
        "@@ added [2] user",
        "+new [2J",
    ]
    colored = list(diff_lines(diff, ON))
    assert colored[3] == "\x1b[31m-old\x1b[0m" and colored[4] == "\x1b[32m+new\x1b[0m"


def test_a_hit_names_its_sessions_and_keeps_the_spaces_around_what_was_found():
    hit = Found(("s1", "f1", "f2", "f3", "f4"), 7, Message("user", "x"), -1.0, "a\nfox, \tand", ((2, 5),))
    answer = Answer((hit,), False, 0, None)
    assert answer_text(answer, OFF) == "s1 [7] user  (also in f1, f2, f3 and 1 more)\n    a fox, and\n"
    assert "a \x1b[1mfox\x1b[0m, and" in answer_text(answer, ON)
    assert answer_text(Answer((), False, 0, None), OFF) == "nothing found\n"
