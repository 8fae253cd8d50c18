"""YAML is read strictly, and every value knows its line."""

from pathlib import Path

import pytest

from aura import limits
from aura.config.yaml_text import Tree, parse_yaml
from aura.errors import ConfigInvalid

FILE = Path("/somewhere/file.yaml")


def plain(tree: Tree) -> object:
    if isinstance(tree.value, dict):
        return {key: plain(child) for key, child in tree.value.items()}
    if isinstance(tree.value, tuple):
        return [plain(child) for child in tree.value]
    return tree.value


def refusal(text: str) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        parse_yaml(text, FILE)
    return caught.value.message


def test_values_have_their_types_and_lines() -> None:
    tree = parse_yaml("a: 1\nb:\n  c: [x, 2.5, true, null]\n", FILE)
    assert plain(tree) == {"a": 1, "b": {"c": ["x", 2.5, True, None]}}
    assert isinstance(tree.value, dict)
    assert tree.value["b"].line == 2
    inner = tree.value["b"].value
    assert isinstance(inner, dict)
    assert inner["c"].line == 3


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "\n\n", "null"])
def test_an_empty_file_is_an_empty_mapping(text: str) -> None:
    assert plain(parse_yaml(text, FILE)) == {}


def test_a_repeated_key_names_both_lines() -> None:
    message = refusal("a: 1\nb: 2\na: 3\n")
    assert message == f"{FILE}:3: the key 'a' stands on line 1 already"


def test_a_repeated_key_in_a_nested_mapping_is_refused() -> None:
    assert "the key 'x' stands" in refusal("a: {x: 1, x: 2}")


def test_merge_keys_give_what_the_mapping_does_not_have() -> None:
    text = "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\nall: {<<: [*one, *two], c: 3}\n"
    tree = parse_yaml(text, FILE)
    assert isinstance(tree.value, dict)
    assert plain(tree.value["all"]) == {"a": 1, "b": 1, "c": 3}


def test_a_merge_key_needs_a_mapping() -> None:
    assert ":1: the merge key << needs a mapping" in refusal("a: {<<: 5}")


def test_dates_are_text_as_written() -> None:
    assert plain(parse_yaml("a: 2024-01-31", FILE)) == {"a": "2024-01-31"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8080: x", "a key must be text, not '8080'"),
        ("true: x", "a key must be text, not 'true'"),
        ("? [a]\n: b", "a key must be text, not a list or mapping"),
        ("a: !!python/name:os.system x", "is not supported"),
        ("a: !!binary aGk=", "is not supported"),
        ("a: !mine {b: 1}", "is not supported"),
        ("a: !!int ''", "this is not a value of type int"),
        ("a: !!bool maybe", "this is not a value of type bool"),
        ("a: !!float x", "this is not a value of type float"),
        ("a: *nowhere", "undefined alias"),
        ("a: [1", "expected"),
        ("a: b: c", "mapping values are not allowed"),
        ("--- 1\n--- 2", "another document"),
        ("é: 1\nb: \x07", "file.yaml:2: the character U+0007 is not allowed"),
        ("\ta: b", "cannot start any token"),
        ("a: " + "9" * 5000, "this is not a value of type int"),
    ],
)
def test_what_is_not_plain_yaml_is_refused(text: str, problem: str) -> None:
    message = refusal(text)
    assert message.startswith(f"{FILE}:")
    assert problem in message


def test_the_first_line_counts_into_line_numbers() -> None:
    with pytest.raises(ConfigInvalid, match=r"file\.yaml:11: "):
        parse_yaml("a: 1\na: 2\n", FILE, first_line=10)


def test_a_recursive_alias_is_refused() -> None:
    assert "levels" in refusal("&a [*a]")


def test_a_recursive_merge_is_refused() -> None:
    assert "levels" in refusal("&a {<<: *a}")


def test_a_file_that_multiplies_itself_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert f"more than {limits.CONFIG_VALUES_MAX_COUNT} values" in refusal("\n".join(lines))


@pytest.mark.parametrize("opener", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused(opener: str) -> None:
    assert refusal(opener * 100_000).startswith(f"{FILE}:")
    assert "levels" in refusal("[" * 40 + "]" * 40)
