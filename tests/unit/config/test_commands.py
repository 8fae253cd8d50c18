"""Custom commands as their files have them."""

from __future__ import annotations

import pytest

from aura.errors import ConfigInvalid
from tests.unit.config.home import Home


def test_a_command_has_a_name_a_text_and_what_help_says(home: Home) -> None:
    home.write(
        "config/commands/sub/any.md", "---\nname: Re-view\ndescription: Looks\nhints: FILE\n---\nReview $1\n\nNow.\n"
    )
    home.write("config/commands/some.example.md", "---\nname: skipped\n---\n")
    (command,) = home.load().commands.values()
    assert (command.name, command.body, command.description, command.hints) == (
        "Re-view",
        "Review $1\n\nNow.",
        "Looks",
        "FILE",
    )
    assert list(home.load().commands) == ["re-view"]


def test_only_the_name_is_needed(home: Home) -> None:
    home.write("config/commands/a.md", "---\nname: a\n---\n")
    command = home.load().commands["a"]
    assert (command.body, command.description, command.hints) == ("", "", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no frontmatter", ":1: the frontmatter is missing"),
        ("---\ndescription: x\n---\n", "the key name is missing"),
        ("---\nname: two words\n---\n", ":2: name:"),
        ("---\nname: /a\n---\n", "without the slash"),
        ("---\nname: 1\n---\n", "not text"),
        ("---\nname: a\nhints: [x, y]\n---\n", ":3: hints:"),
        ("---\nname: a\ntools: x\n---\n", ":3: tools: this key is unknown"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(home: Home, text: str, problem: str) -> None:
    home.write("config/commands/a.md", text)
    with pytest.raises(ConfigInvalid) as error:
        home.load()
    assert "a.md" in error.value.message
    assert problem in f"{error.value.message} {error.value.hint}"


def test_two_commands_of_one_home_cannot_share_a_name(home: Home) -> None:
    home.write("config/commands/a.md", "---\nname: A\n---\n")
    home.write("config/commands/b.md", "---\nname: a\n---\n")
    with pytest.raises(ConfigInvalid, match="has a command named A already"):
        home.load()
