"""The one JSON encoder and decoder (interfaces.md section 11, canonical JSON).

What is hashed, stored or served goes through `encode`. There is no second encoder, because two of them never agree on
floats, escapes and surrogates, and a revision is the hash of these bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import cast

from aura import limits
from aura.jsontypes import JsonValue


class NotCanonical(ValueError):
    """The value or text cannot be canonical JSON. The message says why, for a person."""


# The interpreter refuses to convert longer integers, because the time grows with the square of the length. They are
# kept as exact decimals instead, which nobody computes with.
_INT_MAX_DIGITS = 4300


class _LongInteger(Exception):
    """The value holds a `Decimal`, which the fast encoder cannot write as a number."""


def _refuse(value: object) -> object:
    if isinstance(value, Decimal):
        raise _LongInteger
    raise TypeError(f"{type(value).__name__} is not a JSON type")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_refuse)


def encode(value: JsonValue, *, outer: int = 0) -> bytes:
    """Return the canonical bytes of `value`: UTF-8, keys in the order given, no spaces, lone surrogates as U+FFFD.

    `outer` counts the levels that will be put around it. Raises `NotCanonical` for NaN, infinities and more than
    `limits.NESTING_MAX_COUNT` levels in all.
    """
    levels = limits.NESTING_MAX_COUNT - outer
    try:
        text = _ENCODER.encode(value)
    except _LongInteger:
        text = _encode_with_long_integers(value, levels)
    except RecursionError as error:
        raise NotCanonical(_too_deep()) from error
    except ValueError as error:
        raise NotCanonical(f"not JSON: {error}") from error
    if text.count("[") + text.count("{") > levels and nests_beyond(value, levels):
        raise NotCanonical(_too_deep())
    return encode_text(text)


def _encode_with_long_integers(value: object, levels: int) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if not isinstance(value, (Mapping, list, tuple)):
        return _ENCODER.encode(value)
    if levels == 0:
        raise NotCanonical(_too_deep())
    if isinstance(value, Mapping):
        members = (
            f"{_ENCODER.encode(key)}:{_encode_with_long_integers(item, levels - 1)}" for key, item in value.items()
        )
        return "{" + ",".join(members) + "}"
    return "[" + ",".join(_encode_with_long_integers(item, levels - 1) for item in value) + "]"


def encode_text(text: str) -> bytes:
    """Return UTF-8 of `text`: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def clean(text: str) -> str:
    """Return `text` as it reads after encoding: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    return encode_text(text).decode()


def decode(data: bytes | str) -> JsonValue:
    """Return the value of a JSON text. A leading byte order mark is ignored; integers keep every digit.

    Raises `NotCanonical` when it is not UTF-8, not JSON, holds NaN or infinities, or nests too deeply.
    """
    try:
        text = data.removeprefix("\ufeff") if isinstance(data, str) else data.decode("utf-8-sig")
        value: JsonValue = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole_number
        )
    except UnicodeDecodeError as error:
        raise NotCanonical(f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise NotCanonical(f"line {error.lineno} column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise NotCanonical(_too_deep()) from error
    except ValueError as error:
        raise NotCanonical(str(error)) from error
    if nests_beyond(value, limits.NESTING_MAX_COUNT):
        raise NotCanonical(_too_deep())
    return value


def nests_beyond(value: JsonValue, levels: int) -> bool:
    """Tell whether `value` has more than `levels` arrays and objects inside one another."""
    layer = _containers([value])
    for _ in range(levels):
        layer = _containers(child for item in layer for child in _children(item))
        if not layer:
            return False
    return True


def _containers(values: Iterable[JsonValue]) -> list[JsonValue]:
    return [value for value in values if isinstance(value, (dict, list, tuple))]


def _children(container: JsonValue) -> Iterable[JsonValue]:
    return container.values() if isinstance(container, dict) else container  # type: ignore[return-value]


def _whole_number(text: str) -> int:
    if len(text) <= _INT_MAX_DIGITS:
        return int(text)
    return cast(int, Decimal(text))


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _too_deep() -> str:
    return f"more than {limits.NESTING_MAX_COUNT} levels of nesting"
