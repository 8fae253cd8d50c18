"""The strict field types and the base schema that all schemas are built from. They know no document of the
contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from marshmallow import RAISE, Schema, ValidationError, fields, post_load, validate

from aura_automation.errors import Json


class Strict(Schema):
    """Base: an unknown field is an error, and a loaded document becomes what `makes` makes of its fields."""

    makes: ClassVar[Callable[..., object]] = dict

    class Meta:
        unknown = RAISE

    @post_load
    def _make(self, data: Mapping[str, object], **_: object) -> object:
        return type(self).makes(**{name: self._frozen(name, value) for name, value in data.items()})

    def _frozen(self, name: str, value: object) -> object:
        return tuple(value) if isinstance(value, list) and isinstance(self.fields[name], fields.List) else value


class Flag(fields.Field[bool]):
    """A JSON true or false; marshmallow's own Boolean also takes 1 and "on"."""

    def _deserialize(self, value: object, attr: str | None, data: Mapping[str, object] | None, **_: object) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("Not true or false.")
        return value


class Object(fields.Field[dict[str, Json]]):
    """Any JSON object."""

    def _deserialize(
        self, value: dict[str, Json], attr: str | None, data: Mapping[str, object] | None, **_: object
    ) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise ValidationError("Not an object.")
        return value


def text(*choices: str, null: bool = False) -> fields.String:
    """A required string, one of `choices` if there are any; `null` allows null."""
    return fields.String(required=True, allow_none=null, validate=_one_of(choices) if choices else None)


def name_in(known: Iterable[str], what: str) -> fields.String:
    """A required string that is one of the `known` names of a closed set, described by `what`."""
    closed = validate.OneOf(tuple(known), error=f"{{input!r}} is not {what} of the contract.")
    return fields.String(required=True, validate=closed)


def count(*, null: bool = False) -> fields.Integer:
    """A required integer."""
    return fields.Integer(strict=True, required=True, allow_none=null)


def version(ours: int) -> fields.Integer:
    """The required API version."""
    same = validate.Equal(ours, error="{input} is not the API version of this client, {other}.")
    return fields.Integer(strict=True, required=True, validate=same)


def flag() -> Flag:
    """A required boolean."""
    return Flag(required=True)


def obj() -> Object:
    """A required object of any content."""
    return Object(required=True)


def anything() -> fields.Raw:
    """A required field of any JSON value."""
    return fields.Raw(required=True, allow_none=True)


def counts() -> fields.Dict:
    """A required object of integers."""
    return fields.Dict(keys=fields.String(), values=fields.Integer(strict=True), required=True)


def one(schema: type[Schema], *, null: bool = False) -> fields.Nested:
    """A required document of another schema."""
    return fields.Nested(schema, required=True, allow_none=null)


def many(schema: type[Schema], *, null: bool = False) -> fields.List[object]:
    """A required array of documents; a model gets a tuple."""
    return fields.List(fields.Nested(schema), required=True, allow_none=null)


def _one_of(choices: tuple[str, ...]) -> validate.OneOf:
    return validate.OneOf(choices, error="{input!r} is not one of {choices}.")
