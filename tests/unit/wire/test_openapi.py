"""The documents are valid, complete, up to date, and describe the routes that are served."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from aura.api.app import create_app
from aura.cli.openapi import command
from aura.errors import BadRequest
from aura.runtime.log import Log
from aura.wire import automation, openapi
from aura.wire.codes import CODES
from aura.wire.operations import OPERATIONS, PREFIX
from tests.support import samples

DOCS = Path(__file__).parents[3] / "docs"
FILES = {"automation": DOCS / "openapi-automation.json", "events": DOCS / "events.schema.json"}
AUTOMATION = cast("dict[str, Any]", openapi.automation_document())
EVENTS = cast("dict[str, Any]", openapi.events_document())


class _NoService:
    """Stands where a served session would: an application is only looked at here."""

    log = Log(cast(Any, None))


def printed(*words: str) -> str:
    done = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("name", FILES)
def test_the_checked_in_document_is_what_the_command_prints(name: str) -> None:
    assert printed(name) == FILES[name].read_text(encoding="utf-8"), (
        f"run `python -m aura openapi {name} --output docs/{FILES[name].name}`"
    )


def test_a_document_is_written_to_a_file_or_the_reason_why_not_is_said(tmp_path: Path) -> None:
    assert printed("events", "--output", str(tmp_path / "events.json")) == ""
    assert json.loads((tmp_path / "events.json").read_text()) == EVENTS
    with pytest.raises(BadRequest, match="cannot be written"):
        CliRunner().invoke(command, ["events", "--output", str(tmp_path)], catch_exceptions=False)


def test_the_document_is_valid_openapi() -> None:
    validate(AUTOMATION)
    assert AUTOMATION["openapi"] == "3.1.0"


def test_the_served_routes_are_the_documented_ones() -> None:
    app = create_app(cast(Any, _NoService()), "t" * 32, cast(Any, None), cast(Any, None))
    served = {
        (method, re.sub("<([a-z_]+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in rule.methods or ()
        if method not in ("HEAD", "OPTIONS")
    }
    assert served == {(operation.method, PREFIX + operation.path) for operation in OPERATIONS}


def test_each_route_tells_all_its_answers() -> None:
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    for operation in OPERATIONS:
        described = AUTOMATION["paths"][PREFIX + operation.path][operation.method.lower()]
        statuses = {str(item.status) for item in operation.successes} | {str(status) for status in operation.errors()}
        assert set(described["responses"]) == statuses
        assert {"400", "401", "500", "503"} <= statuses
        assert "WWW-Authenticate" in described["responses"]["401"]["headers"]
        assert "Retry-After" in described["responses"]["503"]["headers"]
        named = {item["name"] for item in described.get("parameters", ())}
        assert set(re.findall("{([a-z_]+)}", operation.path)) <= named


def test_each_http_code_is_an_answer_of_some_route() -> None:
    answered = {code.name for operation in OPERATIONS for codes in operation.errors().values() for code in codes}
    assert answered == {code.name for code in CODES.values() if "http" in code.places}


@pytest.mark.requirement("http.journal.bounds")
def test_ranges_and_defaults_are_those_of_the_requests() -> None:
    parameters = {item["name"]: item for item in AUTOMATION["paths"]["/v1/journal"]["get"]["parameters"]}
    assert parameters["limit"]["schema"] == {"type": "integer", "default": 500, "minimum": 1, "maximum": 5000}
    assert parameters["wait"]["schema"] == {"type": "integer", "default": 0, "minimum": 0, "maximum": 60}
    streams = {item["name"]: item for item in AUTOMATION["paths"]["/v1/events"]["get"]["parameters"]}
    assert streams["heartbeat"]["schema"] == {"type": "integer", "default": 15, "minimum": 1, "maximum": 60}
    assert streams["Last-Event-ID"]["in"] == "header"


def test_every_property_is_typed_and_explained() -> None:
    schemas = AUTOMATION["components"]["schemas"]
    for name, schema in schemas.items():
        for field, rule in schema.get("properties", {}).items():
            assert {"type", "$ref", "anyOf", "const"} & set(rule), (name, field)
            assert name.endswith("Event") or "description" in rule, (name, field)


@pytest.mark.parametrize("line", samples.journal(), ids=lambda line: f"{line.seq}-{line.type}")
def test_an_event_fits_the_exported_schemas(line: samples.Line) -> None:
    event = json.loads(line.text)
    Draft202012Validator.check_schema(EVENTS)
    Draft202012Validator(EVENTS).validate(event)
    whole = {"$ref": f"#/$defs/{openapi.event_name(line.type)}", "$defs": EVENTS["$defs"]}
    Draft202012Validator(whole).validate(event)
    assert not Draft202012Validator(EVENTS).is_valid({**event, "more": 1})
    assert not Draft202012Validator(EVENTS).is_valid({**event, "data": {**event["data"], "more": 1}})


@pytest.mark.requirement("sse.transient.tool-output")
@pytest.mark.parametrize("item", samples.LIVE_ITEMS, ids=lambda item: type(item).__name__)
def test_a_live_item_fits_the_exported_schemas(item: Any) -> None:
    name, fields = automation.transient_fields(item)
    schema = {"$ref": f"#/$defs/{openapi.data_name(name)}", "$defs": EVENTS["$defs"]}
    Draft202012Validator(schema).validate(fields)
    assert not Draft202012Validator(schema).is_valid({})
