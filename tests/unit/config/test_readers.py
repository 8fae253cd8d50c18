"""Readers of single values: what they take and how they refuse."""

import re

import pytest

from aura.config.readers import Choice, Duration, Flag, Number, Reader, Text, Texts, Unacceptable, Whole
from aura.config.yaml_text import Tree

THINK = Choice(("off", "on"), later=("wild",), booleans={True: "on", False: "off"})
HOUR_MS = 3_600_000


def item(value: str | int | None) -> Tree:
    return Tree(value, 1)


@pytest.mark.parametrize(
    ("reader", "found", "value"),
    [
        (Text(), "x", "x"),
        (Text(pattern=re.compile("a+")), "aaa", "aaa"),
        (Flag(), False, False),
        (Whole(1, 3), 3, 3),
        (Number(0, 1), 1, 1.0),
        (Number(0, 1), 0.5, 0.5),
        (Texts(), (), ()),
        (Texts(), (item("a"), item("b")), ("a", "b")),
        (THINK, "on", "on"),
        (THINK, True, "on"),
        (THINK, False, "off"),
        (Duration(1, HOUR_MS), "250ms", 250),
        (Duration(1, HOUR_MS), "10s", 10_000),
        (Duration(1, HOUR_MS), "1.5s", 1_500),
        (Duration(1, 2 * HOUR_MS), "1h30m", 5_400_000),
        (Duration(1, HOUR_MS), 700, 700),
    ],
)
def test_accepted_values_are_typed(reader: Reader, found: object, value: object) -> None:
    read = reader.read(found)  # type: ignore[arg-type]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("reader", "found", "problem"),
    [
        (Text(), 5, "found 5, which is not text; put it in quotes"),
        (Text(), {}, "found a mapping"),
        (Text(pattern=re.compile("a+")), "b", 'found "b"'),
        (Text(secret=True), 12345, "found a number"),
        (Text(secret=True), (item("geheim"),), "found a list"),
        (Text(secret=True, pattern=re.compile("a+")), "geheim", "found another text"),
        (Flag(), "yes please", 'found "yes please"'),
        (Flag(), 1, "found 1"),
        (Whole(1, 3), 4, "found 4"),
        (Whole(1, 3), True, "found true"),
        (Whole(1, 3), 2.0, "found 2.0"),
        (Whole(1, 3), 10**4000, "found a huge number"),
        (Number(0, 1), float("nan"), "found nan"),
        (Number(0, 1), float("inf"), "found inf"),
        (Number(0, 1), True, "found true"),
        (Number(0, 1), 10**4000, "found a huge number"),
        (Texts(), "*", 'found "*"'),
        (Texts(), (item("a"), item(5)), "item 2 is 5"),
        (Texts(), (item(""),), 'item 1 is ""'),
        (Texts(), (item(None),), "item 1 is nothing"),
        (THINK, "wild", '"wild" is not supported yet'),
        (THINK, "x" * 100, 'found "' + "x" * 60 + '…"'),
        (THINK, "a\nb", 'found "a\\nb"'),
        (Duration(1, HOUR_MS), "5", 'found "5"'),
        (Duration(1, HOUR_MS), "5 m", 'found "5 m"'),
        (Duration(1, HOUR_MS), "61m", 'found "61m"'),
        (Duration(1, HOUR_MS), -1, "found -1"),
        (Duration(1, HOUR_MS), True, "found true"),
        (Duration(1, HOUR_MS), "9" * 400 + "h", 'found "' + "9" * 60 + '…"'),
    ],
)
def test_other_values_are_described(reader: Reader, found: object, problem: str) -> None:
    with pytest.raises(Unacceptable) as caught:
        reader.read(found)  # type: ignore[arg-type]
    assert caught.value.problem == problem


def test_accepted_values_are_said_in_words() -> None:
    assert THINK.accepts == "one of off, on"
    assert Whole(1, 3, "tokens").accepts == "a whole number from 1 to 3 (tokens)"
    assert Number(-2, 0.5).accepts == "a number from -2 to 0.5"
    assert "from 1ms to 1h" in Duration(1, HOUR_MS).accepts
