"""Variables in TOML files: forms, defaults, what is missing, and properties that hold for any text."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aura.config.interpolated import Interpolated
from aura.config.interpolation import as_written, inserted_variables, interpolate
from aura.config.readers import describe
from aura.config.toml_text import parse_toml
from aura.config.yaml_text import Tree
from aura.errors import ConfigInvalid
from tests.unit.config.toml_kit import AGENT, LLM, TomlFolder

PATH = Path("/x/a.toml")


def put_in(text: str, **environ: str) -> str:
    """Return one text with its variables."""
    (tree,) = interpolate([(PATH, Tree({"key": Tree(text, 0)}, 0))], environ)
    assert isinstance(tree.value, dict)
    value = tree.value["key"].value
    assert isinstance(value, str)
    return value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ env.A }}", "one"),
        ("{{env.A}}", "one"),
        ("{{  env.A\t}}", "one"),
        ("{{ env . A }}", None),
        ("x{{ env.A }}y{{ env.B }}{{ env.A }}", "xoneytwoone"),
        ("{{ env.NONE | default: 'x y' }}", "x y"),
        ('{{ env.NONE | default: "it\'s" }}', "it's"),
        ("{{env.NONE|default:'x'}}", "x"),
        ("{{ env.NONE | default: '' }}", ""),
        ("{{ env.A | default: 'x' }}", "one"),
        ("{{ env.EMPTY }}", ""),
        ("{{ env.EMPTY | default: 'x' }}", ""),
        ("{{ env.NONE | default: '{{' }}", "{{"),
        ("{{ other }} { env.A } {{ environment }}", "{{ other }} { env.A } {{ environment }}"),
    ],
)
def test_a_reference_is_replaced(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ConfigInvalid, match="a reference to a variable is not written as one"):
            put_in(text, A="one")
    else:
        assert put_in(text, A="one", B="two", EMPTY="") == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{ env.a }}",
        "{{ env.1A }}",
        "{{ env.A",
        "{{ env.A | default: geheim }}",
        "{{ env.A | default 'geheim' }}",
        "{{ env.A | defalt: 'geheim' }}",
        "{{ env.A | default: 'geheim\" }}",
        "{{ env.A }} {{ env. }}",
        "{{ env.A-B }}",
    ],
)
def test_what_only_looks_like_a_reference_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        put_in(text, A="one")
    assert caught.value.message == "/x/a.toml: key: a reference to a variable is not written as one"
    assert "{{ env.NAME }}" in (caught.value.hint or "")


def test_all_missing_variables_of_all_files_are_in_one_error(folder: TomlFolder) -> None:
    key = LLM.replace('"none"', '"{{ env.KEY }}"')
    first = folder.put(f'{AGENT}context = ["a", "{{{{ env.DOC }}}}"]\n{key}', "a.toml")
    second = folder.put(f"{AGENT}{key}[mcp.servers.s]\ntransport = 'stdio'\ncmd = ['{{{{ env.CMD }}}}']\n", "b.toml")
    error = folder.refusal({"OTHER": "x"})
    assert error.message == (
        "environment variables that are not set: "
        f"DOC ({first}: agent.context[1]), KEY ({first}: agent.llm.api_key), CMD ({second}: mcp.servers.s.cmd[0])"
    )
    assert error.hint == "Set them, or write a default: {{ env.DOC | default: 'text' }}."


def test_a_comment_never_counts(folder: TomlFolder) -> None:
    folder.put(f"# {{{{ env.NONE }}}}\n{AGENT}{LLM}temperature = 1 # {{{{ env.NONE }}}} {{{{ env.none\n")
    assert folder.one().name == "ops"


def test_keys_are_left_as_they_are(folder: TomlFolder) -> None:
    folder.agent(rest="[mcp.servers.s]\ntransport = 'stdio'\ncmd = ['c']\nenv = {'{{ env.A }}' = 'x'}\n")
    assert 'found the name "{{ env.A }}"' in folder.refusal({"A": "B"}).message


def test_a_value_never_becomes_syntax(folder: TomlFolder) -> None:
    folder.agent('description = "{{ env.A }}"')
    assert folder.one({"A": 'x"\nhidden = true\n#'}).description == 'x"\nhidden = true\n#'
    assert folder.one({"A": 'x"\nhidden = true\n#'}).hidden is False


def test_a_variable_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        put_in("{{ env.A }}", A="geheim\udcff")
    assert caught.value.message == "/x/a.toml: key: the variable A is not UTF-8"


def test_a_text_remembers_how_it_was_written() -> None:
    text = put_in("Bearer {{ env.A }}{{ env.NONE | default: 'x' }}", A="one")
    assert isinstance(text, Interpolated)
    assert as_written(text) == "Bearer {{ env.A }}{{ env.NONE | default: 'x' }}"
    assert inserted_variables([text, "other"]) == {"A": "one"}
    assert "one" not in repr(text)
    assert "one" not in describe(text)


NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ENVIRONS = st.dictionaries(NAMES, VALUES, max_size=5)
SAFE = st.text(string.ascii_letters + " .|':\"\n}é", max_size=12)


@given(st.lists(st.tuples(SAFE, NAMES, VALUES, st.sampled_from(["", " ", "  \t"])), max_size=6), SAFE)
def test_a_text_of_references_becomes_the_text_of_their_values(
    parts: list[tuple[str, str, str, str]], end: str
) -> None:
    environ = {name: value for _, name, value, _ in parts}
    written = "".join(f"{before}{{{{{space}env.{name}{space}}}}}" for before, name, _, space in parts) + end
    expected = "".join(before + environ[name] for before, name, _, _ in parts) + end
    assert put_in(written, **environ) == expected


@given(NAMES, VALUES, st.sampled_from("'\""), ENVIRONS)
@example("A", "{{ env.B }}", "'", {"B": "x"})
def test_a_default_stands_iff_the_variable_does_not(
    name: str, default: str, quote: str, environ: dict[str, str]
) -> None:
    default = default.replace(quote, "")
    written = f"<{{{{ env.{name} | default: {quote}{default}{quote} }}}}>"
    assert put_in(written, **environ) == f"<{environ.get(name, default)}>"


@given(st.text(st.characters(exclude_characters="{"), max_size=60), ENVIRONS)
def test_a_text_without_a_reference_is_the_same_text(text: str, environ: dict[str, str]) -> None:
    assert put_in(text, **environ) is text


@given(st.text("{} env.AB|default:'\"x", max_size=40), ENVIRONS)
def test_any_text_is_replaced_or_refused(text: str, environ: dict[str, str]) -> None:
    try:
        value = put_in(text, **environ)
    except ConfigInvalid as error:
        assert error.message.startswith(("/x/a.toml: key: ", "environment variables that are not set: "))
    else:
        assert isinstance(value, Interpolated) or value == text


TREES = st.recursive(
    st.one_of(VALUES.map(lambda text: text.replace("{", "")), st.integers(-9, 9), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


def to_tree(value: object) -> Tree:
    if isinstance(value, list):
        return Tree(tuple(to_tree(item) for item in value), 0)
    if isinstance(value, dict):
        return Tree({key: to_tree(item) for key, item in value.items()}, 0)
    assert isinstance(value, (bool, int, str))
    return Tree(value, 0)


def wrapped(value: object) -> object:
    """Return the value with each of its texts put into a variable's place."""
    if isinstance(value, list):
        return [wrapped(item) for item in value]
    if isinstance(value, dict):
        return {key: wrapped(item) for key, item in value.items()}
    return value + "{{ env.V }}" if isinstance(value, str) else value


def appended(value: object, end: str) -> object:
    if isinstance(value, list):
        return [appended(item, end) for item in value]
    if isinstance(value, dict):
        return {key: appended(item, end) for key, item in value.items()}
    return value + end if isinstance(value, str) else value


@given(TREES, VALUES)
def test_texts_at_any_depth_are_interpolated_and_nothing_else(value: object, end: str) -> None:
    (tree,) = interpolate([(PATH, to_tree({"top": wrapped(value)}))], {"V": end})
    assert tree == to_tree({"top": appended(value, end)})


PIECES = st.sampled_from(
    [
        *"\n\n=[]{}\"',.#0:-+_\\",
        *(
            "'''",
            '"""',
            "[[",
            "]]",
            " = ",
            "\n[",
            "\n[agent]\n",
            "\n[agent.llm]\n",
            "\n[mcp.servers.a]\n",
            "\n[hitl]\n",
        ),
        *("name", "alias", "system_prompt", "provider", "'script'", "'openai'", "file", "api_key", "transport", "cmd"),
        *(
            "'stdio'",
            "url",
            "'http://h'",
            "require_approval",
            "route",
            "mode",
            "'webhook'",
            "true",
            "1e9",
            "nan",
            "0x1",
        ),
        *("{{ env.X }}", "{{ env.Y }}", "{{ env.", "}}", "2024-01-01", "12:00:00", "\x00", "é", "\ufeff", "\r"),
    ]
)
GARBAGE = st.lists(PIECES, max_size=40).map("".join)


@given(GARBAGE)
def test_a_file_of_garbage_is_refused_or_read_and_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    check_garbage(tmp_path_factory, text)


@given(GARBAGE)
def test_garbage_after_an_agent_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    check_garbage(tmp_path_factory, f"{AGENT}{LLM}{text}\n")


@given(GARBAGE)
def test_garbage_in_a_server_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    check_garbage(
        tmp_path_factory, f"{AGENT}{LLM}[mcp.servers.a]\ntransport = 'http_streamable'\nurl = 'http://h'\n{text}"
    )


def check_garbage(factory: pytest.TempPathFactory, text: str) -> None:
    folder = TomlFolder(factory.getbasetemp() / "garbage")
    path = folder.path / "x.toml"
    path.write_bytes(text.encode())
    try:
        folder.read({"X": "planted-secret"})
    except ConfigInvalid as error:
        assert "\n" not in error.message
        assert str(path) in error.message
        assert "planted-secret" not in error.message + (error.hint or "")
        error.message.encode()


def test_dates_at_any_depth_are_refused() -> None:
    with pytest.raises(ConfigInvalid, match=r"a\.b\[0\]: found a date or time"):
        parse_toml("a = {b = [12:00:00]}", PATH)
