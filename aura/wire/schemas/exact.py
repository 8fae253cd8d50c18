"""Fields of what the server sends: each required, none converted, each with the words that the documents say of it.

Schemas built from these describe and check; nothing is ever encoded with them (`aura.wire.automation` does that).
"""

from __future__ import annotations

from collections.abc import Mapping

from marshmallow import Schema, ValidationError, fields, validate

from aura.wire.schemas.strict import Strict

TIME_PATTERN = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
SHA256_PATTERN = "^[0-9a-f]{64}$"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
RUN_ID_PATTERN = f"^run_{_UUID}$"
INPUT_ID_PATTERN = f"^inp_{_UUID}$"
SESSION_ID_PATTERN = r"^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


class Exact(Strict):
    """Base of all schemas of answers and events."""


class Count(fields.Integer):
    """A JSON number without a fraction. marshmallow's own takes true for 1."""

    def _deserialize(self, value: object, attr: str | None, data: Mapping[str, object] | None, **kwargs: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValidationError("Not a whole number.")
        return value


class Flag(fields.Field[bool]):
    """A JSON true or false. marshmallow's own Boolean also takes 1 and "on"."""

    def _deserialize(
        self, value: object, attr: str | None, data: Mapping[str, object] | None, **kwargs: object
    ) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("Not true or false.")
        return value


class Free(fields.Field[object]):
    """A JSON object of any content."""

    def _deserialize(
        self, value: object, attr: str | None, data: Mapping[str, object] | None, **kwargs: object
    ) -> object:
        if not isinstance(value, dict):
            raise ValidationError("Not an object.")
        return value


def text(says: str, *, null: bool = False, pattern: str | None = None, required: bool = True) -> fields.String:
    """A string; one that matches `pattern` if there is one."""
    check = validate.Regexp(pattern) if pattern else None
    return fields.String(required=required, allow_none=null, validate=check, metadata={"description": says})


def choice(says: str, *choices: str, null: bool = False) -> fields.String:
    """A string of a closed set."""
    closed = validate.OneOf(choices, error="{input!r} is not one of {choices}.")
    return fields.String(required=True, allow_none=null, validate=closed, metadata={"description": says})


def time(says: str, *, null: bool = False) -> fields.String:
    """A moment: RFC 3339, UTC, milliseconds, `Z`."""
    metadata = {"description": says, "format": "date-time"}
    return fields.String(required=True, allow_none=null, validate=validate.Regexp(TIME_PATTERN), metadata=metadata)


def sha256(says: str, *, null: bool = False) -> fields.String:
    """64 lower-case hex digits."""
    return text(says, null=null, pattern=SHA256_PATTERN)


def count(says: str, *, least: int = 0, required: bool = True) -> Count:
    """A whole number, at least `least`."""
    return Count(required=required, validate=validate.Range(min=least), metadata={"description": says})


def exactly(says: str, value: int) -> Count:
    """One number."""
    return Count(required=True, validate=validate.OneOf((value,)), metadata={"description": says})


def flag(says: str) -> Flag:
    """True or false."""
    return Flag(required=True, metadata={"description": says})


def free(says: str) -> Free:
    """An object whose keys the contract does not fix."""
    return Free(required=True, metadata={"description": says})


def texts(says: str, *, required: bool = True) -> fields.List[str]:
    """An array of strings."""
    return fields.List(fields.String(), required=required, metadata={"description": says})


def counts(says: str) -> fields.Dict:
    """An object of numbers."""
    values = Count(validate=validate.Range(min=0))
    return fields.Dict(keys=fields.String(), values=values, required=True, metadata={"description": says})


def one(says: str, schema: type[Schema], *, null: bool = False) -> fields.Nested:
    """A document of another schema."""
    return fields.Nested(schema, required=True, allow_none=null, metadata={"description": says})


def many(says: str, schema: type[Schema], *, null: bool = False) -> fields.List[object]:
    """An array of documents."""
    return fields.List(fields.Nested(schema), required=True, allow_none=null, metadata={"description": says})
