"""The file .env: its lines, what wins, and that an error shows no value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.config.dotenv import read_dotenv, with_dotenv
from aura.errors import ConfigInvalid


def read(folder: Path, text: str) -> dict[str, str]:
    path = folder / ".env"
    path.write_bytes(text.encode())
    return read_dotenv(path)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("  A = b c  ", "b c"),
        ("export A=b", "b"),
        ("export\tA=b", "b"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A=b # comment", "b"),
        ("A=b#c", "b#c"),
        ("A=b\t#c", "b"),
        ("A='b # c'", "b # c"),
        ("A='b' # c", "b"),
        ("A='\\n$X'", "\\n$X"),
        ("A=''", ""),
        ('A="b # c" # d', "b # c"),
        ('A="b\\n\\t\\"\\\\\\$"', 'b\n\t"\\$'),
        ('A=""', ""),
        ("A=$B${C}", "$B${C}"),
        ("A=b=c", "b=c"),
        ("A=it's", "it's"),
        ("A=b\r", "b"),
    ],
)
def test_a_line_is_read(tmp_path: Path, line: str, value: str) -> None:
    assert read(tmp_path, f"\n# comment\n{line}\n  # another\n") == {"A": value}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("geheim", "this is not KEY=VALUE"),
        ("1A=geheim", "this is not KEY=VALUE"),
        ("A B=geheim", "this is not KEY=VALUE"),
        ("=geheim", "this is not KEY=VALUE"),
        ("A: geheim", "this is not KEY=VALUE"),
        ("A='geheim", "the quote is not closed, or text follows it"),
        ("A='geheim' more", "the quote is not closed, or text follows it"),
        ('A="geheim', "the quote is not closed, or text follows it"),
        ('A="geheim\\"', "the quote is not closed, or text follows it"),
        ('A="geheim" more', "the quote is not closed, or text follows it"),
        ('A="geheim\\x"', "the value holds an unknown escape"),
        ("A=geheim\0", "the value holds a NUL character"),
        ("FIRST=geheim", "FIRST stands on line 1 already"),
    ],
)
def test_a_bad_line_is_named_and_no_value_shown(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read(tmp_path, f"FIRST=1\n\n{line}\n")
    assert caught.value.message == f"{tmp_path}/.env:3: {problem}"
    assert "geheim" not in (caught.value.hint or "")


def test_a_variable_that_is_set_wins_even_if_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=file\nC=file\n")
    assert with_dotenv({"A": "set", "B": ""}, tmp_path) == {"A": "set", "B": "", "C": "file"}


def test_without_a_file_nothing_is_added(tmp_path: Path) -> None:
    assert with_dotenv({"A": "set"}, tmp_path) == {"A": "set"}


def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    with pytest.raises(ConfigInvalid, match="is not a regular file"):
        with_dotenv({}, tmp_path)


KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=30)


@given(st.dictionaries(KEYS, TEXT, max_size=5))
def test_what_is_quoted_is_read_as_it_was(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> None:
    escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in variables.items()}
    text = "".join(f'{key}="{value}"\n' for key, value in escaped.items())
    assert read(tmp_path_factory.getbasetemp(), text) == variables


@given(st.text(st.sampled_from("A=B'\"\\# \t\nexport$\r\0é"), max_size=60))
def test_any_file_is_read_or_refused_with_its_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        variables = read(tmp_path_factory.getbasetemp(), text)
    except ConfigInvalid as error:
        assert "/.env:" in error.message
        assert "\n" not in error.message
    else:
        assert all(key.isidentifier() for key in variables)
