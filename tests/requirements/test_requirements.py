"""The list of requirements, the tests that name them and the page of both agree. No other test is run for it."""

from __future__ import annotations

import pytest

from tests.requirements.check import find_problems
from tests.requirements.contract import REQUIREMENTS, SECTIONS, Requirement
from tests.requirements.evidence import BadMarker, Evidence, read_evidence, read_module
from tests.requirements.page import COMMAND, PAGE, render

COVERED = Requirement("a.covered", "It holds.")
GAP = Requirement("a.gap", "It will hold.", gap="nobody built it")


def evidence(*ids: str, runs: bool = True) -> Evidence:
    return Evidence("unit/test_x.py", "test_it", ids, runs)


def test_every_requirement_is_shown_or_says_why_not() -> None:
    assert find_problems(REQUIREMENTS, read_evidence()) == []


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(SECTIONS, read_evidence()), f"run `{COMMAND}`"


def test_what_agrees_is_no_problem() -> None:
    assert find_problems([COVERED, GAP], [evidence("a.covered")]) == []


@pytest.mark.parametrize(
    ("requirements", "tests", "problem"),
    [
        ([COVERED], [], "a.covered is covered, but no test"),
        ([COVERED], [evidence("a.covered", runs=False)], "a.covered is covered, but no test"),
        ([COVERED], [evidence("a.covered", "a.other")], "names a.other, which is no requirement"),
        ([COVERED], [evidence("a.covered", "a.covered")], "names a requirement twice"),
        ([COVERED, COVERED], [evidence("a.covered")], "a.covered stands twice"),
        ([GAP], [evidence("a.gap")], "a.gap is a gap, but unit/test_x.py: test_it claims"),
        ([Requirement("a.gap", "It will.", gap=" ")], [], "a.gap is a gap without a reason"),
        ([Requirement("a.gap", "", gap="later")], [], "a.gap has no statement"),
    ],
)
def test_a_contradiction_is_told(requirements: list[Requirement], tests: list[Evidence], problem: str) -> None:
    (told,) = find_problems(requirements, tests)
    assert problem in told


def test_markers_are_read_without_importing_the_module() -> None:
    text = """
raise RuntimeError("imported")

@pytest.mark.requirement("a", "b")
@pytest.mark.parametrize("x", [1])
def test_one(x): ...

class TestMore:
    @pytest.mark.skip
    @pytest.mark.requirement("c")
    def test_two(self): ...

def test_three(): ...
"""
    assert read_module(text, "t.py") == [
        Evidence("t.py", "test_one", ("a", "b"), True),
        Evidence("t.py", "test_two", ("c",), False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.requirement\ndef test_it(): ...",
        "@pytest.mark.requirement()\ndef test_it(): ...",
        "@pytest.mark.requirement(NAME)\ndef test_it(): ...",
        "@pytest.mark.requirement('a', reason='b')\ndef test_it(): ...",
        "@pytest.mark.requirement('a')\ndef helper(): ...",
        "@pytest.mark.requirement('a')\nclass TestIt: ...",
        "pytestmark = pytest.mark.requirement('a')",
        "CASES = [pytest.param(1, marks=pytest.mark.requirement('a'))]",
    ],
)
def test_a_marker_that_could_be_misread_is_refused(text: str) -> None:
    with pytest.raises(BadMarker, match=r"t\.py:\d+: "):
        read_module(text, "t.py")


def test_tests_on_real_servers_are_told_apart() -> None:
    def servers(file: str) -> str:
        return Evidence(file, "test_it", ("a",), True).servers

    assert servers("contract/api/test_http.py") == "both"
    assert servers("contract/serve/test_runs.py") == "either"
    assert servers("unit/wire/test_codes.py") == ""
