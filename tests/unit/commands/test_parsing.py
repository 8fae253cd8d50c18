"""How a command is read, which ones are refused, and what becomes of the text of a custom one."""

from __future__ import annotations

import pytest

from aura.errors import BadRequest
from aura.runtime.commands.custom import expand
from aura.runtime.commands.dispatch import check_command
from aura.runtime.commands.parsing import find_switch, parse
from aura.runtime.commands.table import COMMANDS, LATER, REJECTED, find_command


@pytest.mark.parametrize(
    ("text", "name", "arguments", "rest"),
    [
        ("/help", "/help", (), ""),
        ("/HELP me", "/help", ("me",), "me"),
        ("/save  'a title'  b ", "/save", ("a title", "b"), "'a title'  b"),
        ("/save it's open", "/save", ("it's", "open"), "it's open"),
        ("/x\nsecond line", "/x", ("second", "line"), "second line"),
        ('/x "" a', "/x", ("", "a"), '"" a'),
        ("/", "/", (), ""),
    ],
)
def test_words_are_split_as_a_shell_does_it(text: str, name: str, arguments: tuple[str, ...], rest: str) -> None:
    invocation = parse(text)
    assert (invocation.name, invocation.arguments, invocation.rest) == (name, arguments, rest)
    assert invocation.text == text


def test_on_and_off_have_several_spellings() -> None:
    assert {find_switch(word) for word in ("true", "ON", "yes", "enable", "enabled", "1")} == {True}
    assert {find_switch(word) for word in ("false", "Off", "no", "disable", "disabled", "0")} == {False}
    assert find_switch("perhaps") is None


@pytest.mark.requirement("http.command.refused")
def test_the_rejected_the_later_and_the_unknown_are_bad_requests() -> None:
    for name in (*REJECTED, *LATER, "/nonsense", "/", "/ help", "help", " /help", "/" + "x" * 5000):
        with pytest.raises(BadRequest) as refused:
            check_command(name, {})
        assert refused.value.hint is not None
        assert len(refused.value.message) < 200


def test_every_command_and_alias_is_taken_in_any_case() -> None:
    for command in COMMANDS.values():
        for name in (command.name, *command.aliases):
            check_command(f"{name.upper()} anything", {})
            assert find_command(name) is command


def test_no_name_is_given_twice() -> None:
    names = [name for command in COMMANDS.values() for name in (command.name, *command.aliases)]
    assert len({*names, *REJECTED, *LATER}) == len(names) + len(REJECTED) + len(LATER)


@pytest.mark.parametrize(
    ("body", "typed", "expected"),
    [
        ("Review $1 as $2.", "/r a.py 'very strict'", "Review a.py as very strict."),
        ("All: $ARGUMENTS!", "/r a  'b c'", "All: a  'b c'!"),
        ("$2$1", "/r one", "one"),
        ("$10 and $1", "/r a b c d e f g h i ten", "ten and a"),
        ("$1", "/r '$2 $ARGUMENTS' x", "$2 $ARGUMENTS"),
        ("costs $0, $ARGUMENTSX and $HOME", "/r", "costs $0, $ARGUMENTSX and $HOME"),
        ("Review.", "/r a.py", "Review.\n\na.py"),
        ("Review.", "/r", "Review."),
        ("", "/r a.py", "a.py"),
    ],
)
def test_places_are_filled_in_once(body: str, typed: str, expected: str) -> None:
    assert expand(body, parse(typed)) == expected
