"""Canonical JSON: one encoder, one decoder (interfaces.md section 11)."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.jsontypes import JsonValue
from aura.wire import canonical


def nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for index in range(levels - 1):
        value = [value] if index % 2 else {"k": value}
    return value


def test_keys_keep_their_order_and_there_is_no_space() -> None:
    value: JsonValue = {"b": [1, -0.5, True, None, 'é\u2028\x00"\\/'], "a": {}}
    assert canonical.encode(value) == '{"b":[1,-0.5,true,null,"é\u2028\\u0000\\"\\\\/"],"a":{}}'.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ud800", "\ufffd"),
        ("a\udc00b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\udc00\ud800x\ud83d", "\ufffd\ufffdx\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, expected: str) -> None:
    assert canonical.encode(text).decode() == f'"{expected}"'
    assert canonical.clean(text) == expected
    assert canonical.encode({text: text}).decode() == f'{{"{expected}":"{expected}"}}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_json_are_refused(number: float) -> None:
    with pytest.raises(canonical.NotCanonical):
        canonical.encode({"a": [number]})


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "1e999", "-1e999"])
def test_texts_with_such_numbers_are_refused(text: str) -> None:
    with pytest.raises(canonical.NotCanonical):
        canonical.decode(text)


def test_two_hundred_levels_are_taken_and_one_more_is_refused_both_ways() -> None:
    fine = canonical.encode(nested(200))
    assert canonical.decode(fine) == nested(200)
    for levels in (201, 1000, 100_000):
        with pytest.raises(canonical.NotCanonical, match="200 levels"):
            canonical.encode(nested(levels))
    for levels in (201, 1000, 100_000):
        with pytest.raises(canonical.NotCanonical, match="200 levels"):
            canonical.decode("[" * levels + "]" * levels)


def test_many_flat_containers_are_not_deep() -> None:
    value: JsonValue = [[] for _ in range(1000)]
    assert canonical.decode(canonical.encode(value)) == value


def test_levels_that_will_stand_around_a_value_count() -> None:
    assert canonical.encode(nested(198), outer=2)
    with pytest.raises(canonical.NotCanonical):
        canonical.encode(nested(199), outer=2)


@pytest.mark.parametrize("digits", [20, 4299, 4300, 4301, 100_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_any_size_keep_every_digit(digits: int, sign: str) -> None:
    text = f'{{"a":[{sign}{"1234567890" * (digits // 10 + 1)}'[: 6 + len(sign) + digits] + '],"b":"é","c":[1.5,{}]}'
    assert canonical.encode(canonical.decode(text)).decode() == text


def test_deep_values_with_long_integers_are_refused_too() -> None:
    long = cast(JsonValue, canonical.decode("9" * 5000))
    value: JsonValue = long
    for _ in range(200):
        value = [value]
    assert canonical.encode(value)
    with pytest.raises(canonical.NotCanonical):
        canonical.encode([value])


@pytest.mark.parametrize("text", ['\ufeff{"a":1}', '\ufeff{"a":1}'.encode()])
def test_a_leading_byte_order_mark_is_ignored(text: str | bytes) -> None:
    assert canonical.decode(text) == {"a": 1}


def test_a_second_byte_order_mark_is_not() -> None:
    with pytest.raises(canonical.NotCanonical):
        canonical.decode('\ufeff\ufeff{"a":1}')
    with pytest.raises(canonical.NotCanonical):
        canonical.decode('\ufeff\ufeff{"a":1}'.encode())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a":"\xff"}', "byte 6 is not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b"", "line 1 column 1"),
        (b'{"a":1}\n{"b":2}', "line 2 column 1"),
        (b"{'a':1}", "line 1 column 2"),
        (b'{"a":\n01}', "line 2"),
        (b'"\x01"', "line 1"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(data: bytes, why: str) -> None:
    with pytest.raises(canonical.NotCanonical, match=why):
        canonical.decode(data)


def test_foreign_types_are_a_fault_of_the_program() -> None:
    with pytest.raises(TypeError):
        canonical.encode({"a": object()})  # type: ignore[dict-item]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(json_values)
def test_decoding_is_the_inverse_of_encoding(value: JsonValue) -> None:
    data = canonical.encode(value)
    assert canonical.decode(data) == value
    assert canonical.encode(canonical.decode(data)) == data


@given(st.text(st.characters(codec=None, categories=("Cs", "L", "Cc"))))
def test_any_text_encodes_to_utf_8_and_cleaning_is_stable(text: str) -> None:
    canonical.encode(text).decode()
    assert canonical.clean(canonical.clean(text)) == canonical.clean(text)


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        value = canonical.decode(data)
    except canonical.NotCanonical:
        return
    assert canonical.decode(canonical.encode(value)) == value
