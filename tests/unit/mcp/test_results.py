"""Listed tools and results in the engine's terms, without a server."""

from __future__ import annotations

import json

import pytest
from mcp_types import CallToolResult, EmbeddedResource, ImageContent, TextContent, TextResourceContents, Tool
from mcp_types import ToolAnnotations as Hints

from aura.config.spec import Secret
from aura.engine.mcp.failure import Redactor
from aura.engine.mcp.results import face_tools, result_text
from aura.engine.tools import schema

SCHEMA = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["a"]}


def test_a_tool_keeps_its_servers_schema_and_gets_a_name_with_its_server() -> None:
    faces, left_out = face_tools("files", [Tool(name="read", description=" Read it. ", input_schema=SCHEMA)])
    spec = faces["read"]
    assert (spec.name, spec.description, left_out) == ("mcp__files__read", "Read it.", [])
    assert spec.parameters == SCHEMA
    assert spec.own_schema is False


@pytest.mark.parametrize(
    ("hints", "read_only"),
    [(None, False), (Hints(), False), (Hints(read_only_hint=False), False), (Hints(read_only_hint=True), True)],
)
def test_only_a_hint_makes_a_tool_read_only_and_concurrent(hints: Hints | None, read_only: bool) -> None:
    spec = face_tools("s", [Tool(name="t", input_schema={"type": "object"}, annotations=hints)])[0]["t"]
    assert (spec.read_only, spec.parallel) == (read_only, read_only)


def test_a_tool_without_a_description_or_properties_gets_them() -> None:
    spec = face_tools("s", [Tool(name="t", description="  ", input_schema={"type": "object"})])[0]["t"]
    assert spec.description == "The tool t of the MCP server s."
    assert spec.parameters == {"type": "object", "properties": {}}


def test_names_that_no_provider_takes_are_changed_or_left_out() -> None:
    tools = [Tool(name=name, input_schema={"type": "object"}) for name in ("a.b/c", "a b/c", "x" * 56, "x" * 57)]
    faces, left_out = face_tools("s", tools)
    assert {name: spec.name for name, spec in faces.items()} == {
        "a.b/c": "mcp__s__a_b_c",
        "x" * 56: f"mcp__s__{'x' * 56}",
    }
    assert left_out[0] == 'its tool "a b/c" is left out: there is another one named mcp__s__a_b_c'
    assert left_out[1].endswith("is too long a name")


def test_texts_are_joined_and_other_parts_are_json() -> None:
    resource = TextResourceContents(uri="file:///a", text="inside", mime_type="text/plain")
    parts = [
        TextContent(text="one"),
        ImageContent(data="aGk=", mime_type="image/png"),
        EmbeddedResource(resource=resource),
        TextContent(text="zwei ü"),
    ]
    lines = result_text(CallToolResult(content=parts)).split("\n")
    assert (lines[0], lines[3]) == ("one", "zwei ü")
    assert json.loads(lines[1]) == {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert json.loads(lines[2])["resource"] == {"uri": "file:///a", "text": "inside", "mimeType": "text/plain"}


def test_structured_content_counts_only_where_there_is_no_other() -> None:
    structured = {"answer": 42, "unit": "°"}
    assert result_text(CallToolResult(content=[], structured_content=structured)) == '{"answer": 42, "unit": "°"}'
    both = CallToolResult(content=[TextContent(text="42")], structured_content=structured)
    assert result_text(both) == "42"
    assert result_text(CallToolResult(content=[])) == ""


def test_of_foreign_arguments_only_the_object_is_checked() -> None:
    assert schema.find_foreign_problem(SCHEMA, {"b": 1}) is None
    problem = schema.find_foreign_problem(SCHEMA, [1])
    assert problem == "the arguments must be an object, not an array; valid parameters: a (required)"


def test_secrets_are_taken_out_of_foreign_text() -> None:
    redactor = Redactor([Secret("hush"), Secret("hush-hush"), Secret(""), Secret("a")])
    assert redactor.clean("a hush-hush\n  and hush") == "a […] and […]"
    assert len(redactor.clean("x" * 10_000)) == 2048
