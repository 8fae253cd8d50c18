"""The policy gate and its patterns."""

from __future__ import annotations

from pathlib import Path

import pytest

from aura.config.spec import PolicySpec, ToolsSpec
from aura.engine.gates.policy import derive_pattern, find_match
from aura.engine.lane import Answer, InputRequired
from tests.support.bench import Bench
from tests.support.lane import RecordingLane


def bench_with(tmp_path: Path, policy: PolicySpec, *answers: Answer) -> Bench:
    """A bench with a policy and the answers of a person."""
    return Bench(tmp_path, lane=RecordingLane(answers=list(answers)), spec=ToolsSpec(policy=policy))


@pytest.mark.parametrize(
    ("pattern", "name", "argument", "matches"),
    [
        ("Bash", "Bash", "ls", True),
        ("bash", "Bash", "ls", False),
        ("B*", "Bash", "ls", True),
        ("*", "Bash", None, True),
        ("Bas", "Bash", "ls", False),
        ("Bash:git *", "Bash", "git status\nrm x", True),
        ("Bash:git *", "Bash", "sudo git x", False),
        ("Bash:a.c", "Bash", "abc", False),
        ("Write:src/*", "Write", "src/a/b", True),
        ("Write:src/*", "Write", "./src/a", False),
        ("TodoList:*", "TodoList", None, False),
        ("Bash:echo a:b", "Bash", "echo a:b", True),
        ("X*", "X\nY", None, False),
    ],
)
def test_a_pattern_is_anchored_and_knows_only_the_star(
    pattern: str, name: str, argument: str | None, matches: bool
) -> None:
    assert (find_match([pattern], name, argument) == pattern) is matches


@pytest.mark.parametrize(
    ("name", "argument", "pattern"),
    [
        ("Bash", "rm -rf x", "Bash:rm*"),
        ("Bash", "git  push origin", "Bash:git push*"),
        ("Bash", "git", "Bash:git*"),
        ("Bash", "  ", "Bash"),
        ("Bash", "*", None),
        ("Bash", "./x* y", None),
        ("Write", "src/a.py", "Write:src/*"),
        ("Write", "a.py", "Write:a.py"),
        ("Write", "src/*/a", None),
        ("Ask", None, "Ask"),
    ],
)
def test_the_pattern_for_the_session_is_no_wider_than_what_was_seen(
    name: str, argument: str | None, pattern: str | None
) -> None:
    assert derive_pattern(name, argument) == pattern


def test_without_a_policy_nothing_is_asked(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.ok("Write", path="a", content="x")
    assert bench.lane.questions == []


def test_deny_beats_auto_and_names_its_pattern(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, PolicySpec(auto=("*",), confirm=("*",), deny=("Write:secret*",)))
    assert bench.error("Write", path="secret.txt", content="x") == "Write is denied by policy (Write:secret*)"
    bench.ok("Write", path="open.txt", content="x")
    assert not (tmp_path / "secret.txt").exists()


def test_a_confirm_asks_with_the_whole_argument_and_the_pattern(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, PolicySpec(confirm=("Write",)), Answer("allow"))
    bench.ok("Write", path="sub/a", content="x")
    question = bench.lane.questions[0]
    assert (question.kind, question.tool, question.detail, question.pattern) == (
        "confirm",
        "Write",
        "sub/a",
        "Write:sub/*",
    )
    assert [option.label for option in question.options] == ["allow", "allow_session", "deny"]
    assert bench.history.meta == {}


@pytest.mark.parametrize("value", ["deny", None, "yes", True, ["allow"]])
def test_only_an_explicit_approval_lets_a_call_run(tmp_path: Path, value: str) -> None:
    bench = bench_with(tmp_path, PolicySpec(confirm=("Write",)), Answer(value))
    assert bench.error("Write", path="a", content="x") == "Write was denied by the user"
    assert not (tmp_path / "a").exists()


def test_an_approval_for_the_session_is_kept_and_used(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, PolicySpec(confirm=("Write",)), Answer("allow_session"))
    bench.ok("Write", path="sub/a", content="x")
    bench.ok("Write", path="sub/b", content="x")
    assert bench.history.meta == {"session_approvals": {"Write:sub/*": True}}
    refused = bench.call("Write", path="other/c", content="x")
    assert isinstance(refused.interruption, InputRequired)


def test_an_approval_without_a_pattern_holds_for_one_call(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, PolicySpec(confirm=("Write",)), Answer("allow_session"))
    bench.ok("Write", path="a*", content="x")
    assert bench.lane.questions[0].pattern is None
    assert bench.history.meta == {}


def test_a_meta_that_holds_nonsense_approves_nothing(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, PolicySpec(confirm=("Write",)))
    bench.history.meta["session_approvals"] = {"Write": "yes", "Wri*": 1}
    assert isinstance(bench.call("Write", path="a", content="x").interruption, InputRequired)
    bench.history.meta["session_approvals"] = ["Write"]
    assert isinstance(bench.call("Write", path="a", content="x").interruption, InputRequired)
