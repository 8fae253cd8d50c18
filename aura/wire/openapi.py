"""The documents that are made from schemas: OpenAPI 3.1 of the automation profile, JSON Schemas of its events.

apispec turns marshmallow fields into JSON Schema; this is the only module that imports it. Nothing here is used while
serving.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from marshmallow import Schema

from aura import API_VERSION, limits
from aura.jsontypes import JsonValue
from aura.wire.codes import Code
from aura.wire.operations import OPERATIONS, PREFIX, Operation, PathParameter, Success
from aura.wire.schemas.automation import InputReplySchema, SubmissionSchema
from aura.wire.schemas.event_data import DURABLE, LIVE, WITHOUT_A_RUN, EventSchema
from aura.wire.schemas.exact import Flag, Free
from aura.wire.schemas.records import FailureSchema
from aura.wire.schemas.strict import Switch, Whole

Fields = dict[str, JsonValue]

OPENAPI_VERSION = "3.1.0"
JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_COMPONENTS = "#/components/schemas/"
_EXACTLY_ONE_OF: Mapping[type[Schema], tuple[str, str]] = {
    SubmissionSchema: ("prompt", "command"),
    InputReplySchema: ("answer", "action"),
}

_HEADERS: dict[str, Fields] = {
    "Cache-Control": {"description": "Answers are never to be stored.", "schema": {"const": "no-store"}},
    "X-Accel-Buffering": {"description": "Tells proxies to pass events on at once.", "schema": {"const": "no"}},
    "Idempotent-Replay": {
        "description": "The request id made this run before.",
        "required": True,
        "schema": {"const": "true"},
    },
    "Retry-After": {
        "description": "With `overloaded`: seconds to wait before the request is repeated.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {"description": "How to authenticate.", "required": True, "schema": {"const": "Bearer"}},
}
_HEADERS_OF_ERRORS = {401: ("WWW-Authenticate",), 503: ("Retry-After",)}
_REQUEST_HEADERS: dict[str, Fields] = {
    "Last-Event-ID": {
        "description": "Seq of the last event that was seen. It wins over `after`; browsers send it by themselves.",
        "schema": {"type": "integer"},
    }
}
_STATUS_NAMES = {
    400: "The request cannot be used; nothing happened.",
    401: "The token is missing or wrong.",
    404: "There is no such thing.",
    409: "It does not fit the present state.",
    500: "A fault of the program; the message has an id that is in the log.",
    503: "Not now.",
}
_ABOUT = f"""\
One process serves one session. Every request needs `Authorization: Bearer` with the token that the server was started
with. Bodies are JSON of at most {limits.BODY_MAX_BYTES} bytes; a missing `Content-Type` is taken as JSON. Unknown and
repeated fields and parameters are `bad_request`. An unknown path is 404 `not_found`, a wrong method 405 `bad_request`
with `Allow`. Every error has the shape of `Failure`; `docs/errors.md` explains each code, `docs/events.md` each event.
"""


def automation_document() -> Fields:
    """Return the OpenAPI document of everything under `/v1`. It is the same for every call."""
    components = _Components()
    spec = components.spec
    spec.components.security_scheme("bearer", {"type": "http", "scheme": "bearer"})
    for name, header in _HEADERS.items():
        spec.components.header(name, dict(header))
    components.add(FailureSchema)
    _add_events(components)
    for operation in OPERATIONS:
        described = _operation(operation, components)
        spec.path(PREFIX + operation.path, operations={operation.method.lower(): described})
    document = cast(Fields, spec.to_dict())
    components.describe(document)
    return document


def events_document() -> Fields:
    """Return the JSON Schemas (draft 2020-12) of all events. The document itself describes a durable event.

    `$defs` has a schema `Event` for the envelope of any type and, for each type, one of its data: `tool.finished` is
    `ToolFinishedData`. Live items (`delta.content`, …) have data only, because that is all a stream sends of them.
    """
    schemas = cast("dict[str, JsonValue]", cast(Fields, automation_document()["components"])["schemas"])
    used: dict[str, JsonValue] = {}
    _collect("Event", schemas, used)
    for name in LIVE:
        _collect(data_name(name), schemas, used)
    document: Fields = {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": "Events of the aura automation API",
        "description": "A durable event. The data of live items, which only streams carry, is in $defs too.",
        "$ref": "#/$defs/Event",
        "$defs": dict(sorted(used.items())),
    }
    return cast(Fields, _moved(document))


def data_name(event_type: str) -> str:
    """Return the name of the schema of a type's data: `tool.finished` is `ToolFinishedData`."""
    return f"{_camel(event_type)}Data"


def event_name(event_type: str) -> str:
    """Return the name of the schema of a whole event of a type: `tool.finished` is `ToolFinishedEvent`."""
    return f"{_camel(event_type)}Event"


# --- schemas -----------------------------------------------------------------------------------------------------


class _Components:
    """The document under construction, and which marshmallow schema each of its components is made of."""

    def __init__(self) -> None:
        self._made_of: dict[str, type[Schema]] = {}
        plugin = MarshmallowPlugin(schema_name_resolver=self._take_name)
        self.spec = APISpec(
            title="aura automation",
            version=str(API_VERSION),
            openapi_version=OPENAPI_VERSION,
            plugins=[plugin],
            info={"description": _ABOUT},
            security=[{"bearer": []}],
        )
        assert plugin.converter is not None, "the spec has made it"
        self.converter = plugin.converter
        for field, json_type in ((Whole, "integer"), (Switch, "boolean"), (Flag, "boolean"), (Free, "object")):
            self.converter.map_to_openapi_type(field, json_type, None)  # type: ignore[no-untyped-call]

    def add(self, schema: type[Schema]) -> Fields:
        """Make `schema` a component, unless it is one, and return a reference to it."""
        name = self._take_name(schema)
        if name not in self.spec.components.schemas:
            self.spec.components.schema(name, schema=schema)
        return _ref(name)

    def describe(self, document: Fields) -> None:
        """Add what marshmallow knows and apispec does not see: what a schema is, and rules over several fields."""
        bodies = cast("dict[str, Fields]", cast(Fields, document["components"])["schemas"])
        for name, schema in self._made_of.items():
            bodies[name]["description"] = (schema.__doc__ or "").strip()
            if schema in _EXACTLY_ONE_OF:
                bodies[name]["oneOf"] = [{"required": [field]} for field in _EXACTLY_ONE_OF[schema]]

    def _take_name(self, schema: type[Schema] | Schema) -> str:
        """Return a schema's name and note whose it is; apispec asks for each one that it meets in another."""
        cls = schema if isinstance(schema, type) else type(schema)
        name = cls.__name__.removesuffix("Schema")
        self._made_of[name] = cls
        return name


def _add_events(components: _Components) -> None:
    """Make a component of each type's data and whole event, and `Event`, which is one of them."""
    spec = components.spec
    for name, schema in {**DURABLE, **LIVE}.items():
        reference = components.add(schema)
        if reference != _ref(data_name(name)):
            spec.components.schema(data_name(name), reference)
    components.add(EventSchema)
    envelope = cast(Fields, spec.components.schemas["Event"])
    for name in DURABLE:
        spec.components.schema(event_name(name), _event_schema(envelope, name))
    # In place of the envelope, which leaves the data open.
    spec.components.schemas["Event"] = {
        "oneOf": [_ref(event_name(name)) for name in DURABLE],
        "discriminator": {
            "propertyName": "type",
            "mapping": {name: _COMPONENTS + event_name(name) for name in DURABLE},
        },
    }


def _event_schema(envelope: Fields, name: str) -> Fields:
    properties = dict(cast(Fields, envelope["properties"]))
    properties["type"] = {"const": name}
    if name in WITHOUT_A_RUN:
        properties["run_id"] = {"type": "null"}
    properties["data"] = _ref(data_name(name))
    return {"description": (DURABLE[name].__doc__ or "").strip(), **envelope, "properties": properties}


# --- operations --------------------------------------------------------------------------------------------------


def _operation(operation: Operation, components: _Components) -> Fields:
    fields: Fields = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.says,
    }
    parameters = [_path_parameter(item) for item in operation.parameters]
    if operation.query is not None:
        parameters += cast("list[Fields]", components.converter.schema2parameters(operation.query(), location="query"))
    parameters += [{"in": "header", "name": name, **_REQUEST_HEADERS[name]} for name in operation.request_headers]
    if parameters:
        fields["parameters"] = cast(JsonValue, parameters)
    if operation.body is not None:
        content: Fields = {"application/json": {"schema": components.add(operation.body)}}
        fields["requestBody"] = {"required": operation.body_required, "content": content}
    responses: Fields = {str(item.status): _success(item, components) for item in operation.successes}
    for status, codes in operation.errors().items():
        responses[str(status)] = _error(status, codes)
    fields["responses"] = responses
    return fields


def _path_parameter(parameter: PathParameter) -> Fields:
    # No pattern: the server takes any text and says not_found, so a checker must not expect bad_request.
    schema: Fields = {"type": "string", "minLength": 1, "examples": [parameter.example]}
    return {"in": "path", "name": parameter.name, "required": True, "description": parameter.says, "schema": schema}


def _success(success: Success, components: _Components) -> Fields:
    references = [components.add(schema) for schema in success.schemas]
    if not references:
        content: Fields = {"text/event-stream": {"schema": {"type": "string"}, "x-events": _stream_events()}}
    else:
        schema: JsonValue = references[0] if len(references) == 1 else {"anyOf": references}
        content = {"application/json": {"schema": schema}}
    return {"description": success.says, "headers": _header_refs(success.headers), "content": content}


def _stream_events() -> Fields:
    """Return what `data` of each `event` of a stream is."""
    names: Fields = {name: _ref(event_name(name)) for name in DURABLE}
    names.update({name: _ref(data_name(name)) for name in LIVE})
    return names


def _error(status: int, codes: Iterable[Code]) -> Fields:
    names = [code.name for code in codes]
    lines = [f"- `{code.name}`: {code.means} {code.do}" for code in codes]
    described = "\n".join((_STATUS_NAMES[status], "", *lines))
    code_field: Fields = {"properties": {"error": {"properties": {"code": {"enum": cast(JsonValue, names)}}}}}
    schema: Fields = {"allOf": [_ref("Failure"), code_field]}
    headers = ("Cache-Control", *_HEADERS_OF_ERRORS.get(status, ()))
    return {
        "description": described,
        "headers": _header_refs(headers),
        "content": {"application/json": {"schema": schema}},
    }


def _header_refs(names: Iterable[str]) -> JsonValue:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


# --- names and references ----------------------------------------------------------------------------------------


def _camel(event_type: str) -> str:
    return "".join(word.capitalize() for word in event_type.replace("_", ".").split("."))


def _ref(name: str) -> Fields:
    return {"$ref": _COMPONENTS + name}


def _collect(name: str, schemas: Mapping[str, JsonValue], found: dict[str, JsonValue]) -> None:
    """Put the schema `name` and all that it refers to into `found`."""
    if name in found:
        return
    found[name] = schemas[name]
    for reference in _references(schemas[name]):
        _collect(reference.removeprefix(_COMPONENTS), schemas, found)


def _references(value: JsonValue) -> Iterable[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _moved(value: JsonValue) -> JsonValue:
    """Return `value` with references to the places that a plain JSON Schema has, and without OpenAPI's own keys."""
    if isinstance(value, dict):
        return {key: _moved(item) for key, item in value.items() if key != "discriminator"}
    if isinstance(value, list):
        return [_moved(item) for item in value]
    if isinstance(value, str) and value.startswith(_COMPONENTS):
        return "#/$defs/" + value.removeprefix(_COMPONENTS)
    return value
