"""Strict reading with marshmallow: unknown fields are refused, every failure is one `BadRequest` naming the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from marshmallow import RAISE, Schema, ValidationError, fields

from aura import limits
from aura.errors import BadRequest
from aura.jsontypes import JsonValue

_LARGEST = 2**63 - 1


class Strict(Schema):
    """Base of all request schemas."""

    class Meta:
        unknown = RAISE


class Whole(fields.Field[int]):
    """A decimal integer in a query. Numbers beyond 64 bits are taken as the largest or smallest one."""

    def _deserialize(self, value: object, attr: str | None, data: Mapping[str, object] | None, **kwargs: object) -> int:
        text = value if isinstance(value, str) else ""
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit():
            raise ValidationError("Not an integer.")
        size = min(int(digits), _LARGEST) if len(digits) <= limits.INTEGER_MAX_CHARS else _LARGEST
        return -size if text.startswith("-") else size


class Switch(fields.Field[bool]):
    """`true` or `false` in a query."""

    def _deserialize(
        self, value: object, attr: str | None, data: Mapping[str, object] | None, **kwargs: object
    ) -> bool:
        if value not in ("true", "false"):
            raise ValidationError("Must be true or false.")
        return value == "true"


def is_request_id(text: str) -> bool:
    """Tell whether `text` may be a request id: 1 to 256 printable characters (interfaces.md section 2)."""
    return 1 <= len(text) <= limits.REQUEST_ID_MAX_CHARS and text.isprintable()


def check_request_id(text: str) -> None:
    """marshmallow validator of request ids."""
    if not is_request_id(text):
        raise ValidationError(f"Must be 1 to {limits.REQUEST_ID_MAX_CHARS} printable characters.")


def request_id_field(says: str) -> fields.String:
    """Return a required request id, which documents describe with `says`."""
    metadata = {
        "description": f"{says} 1 to {limits.REQUEST_ID_MAX_CHARS} printable characters.",
        "minLength": 1,
        "maxLength": limits.REQUEST_ID_MAX_CHARS,
    }
    return fields.String(required=True, validate=check_request_id, metadata=metadata)


def load_body(schema: Schema, value: JsonValue) -> dict[str, object]:
    """Return the fields of a body that fits `schema`. Raises `BadRequest`."""
    if not isinstance(value, dict):
        raise BadRequest("the body is not a JSON object")
    return _load(schema, value)


def load_query(schema: Schema, pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return the parameters of a query that fits `schema`. Unknown and repeated ones raise `BadRequest`."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise BadRequest(f"{_shown(name)}: given more than once")
        values[name] = value
    return _load(schema, values)


def _load(schema: Schema, values: Mapping[str, object]) -> dict[str, object]:
    try:
        loaded: dict[str, object] = schema.load(values)
    except ValidationError as error:
        raise BadRequest(_describe(error.messages)) from error
    return loaded


def _describe(messages: object) -> str:
    """Return the first complaint as `field: what is wrong`."""
    names: list[str] = []
    while isinstance(messages, (dict, list)) and messages:
        if isinstance(messages, dict):
            name, messages = next(iter(messages.items()))
            names.append(_shown(str(name)))
        else:
            messages = messages[0]
    where = ".".join(name for name in names if name != "_schema")
    return f"{where}: {messages}" if where else str(messages)


def _shown(name: str) -> str:
    return name if len(name) <= 64 else name[:64] + "…"
