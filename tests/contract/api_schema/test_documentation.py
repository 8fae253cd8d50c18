"""The documentation is what the code is: its made parts, its examples, and that it leaves nothing out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura.wire.codes import CODES
from aura.wire.operations import OPERATIONS, PREFIX
from aura.wire.schemas.event_data import DURABLE, LIVE, EventSchema
from aura.wire.schemas.records import ErrorSchema, FailedReadySchema, FailureSchema
from tests.support import reference
from tests.support.examples import Player, read_examples
from tests.support.raw_server import serve

API = (reference.DOCS / "api.md").read_text(encoding="utf-8")
EVENTS = (reference.DOCS / "events.md").read_text(encoding="utf-8")
ERRORS = (reference.DOCS / "errors.md").read_text(encoding="utf-8")


def fences(page: str, kind: str) -> Iterator[str]:
    for found in re.finditer(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        yield found[1]


@pytest.mark.parametrize("name", ["api.md", "events.md", "errors.md"])
def test_the_made_parts_of_a_page_are_up_to_date(name: str) -> None:
    stands = (reference.DOCS / name).read_text(encoding="utf-8")
    assert stands == reference.pages()[name], "run `python -m tests.support.reference`"


def test_every_route_type_and_code_is_documented() -> None:
    names = {operation.name for operation in OPERATIONS}
    assert reference.part_names(API) == {*names, "routes", "run"}
    assert reference.part_names(EVENTS) == {"types", "durable", "live"}
    assert reference.part_names(ERRORS) == {"codes"}
    assert all(f"### {operation.summary}\n" in API for operation in OPERATIONS)
    assert all(f"### {name}\n" in EVENTS for name in (*DURABLE, *LIVE))
    assert all(f"| `{name}`" in ERRORS for name in CODES)


def test_every_route_has_an_example() -> None:
    sent = [(example.method, example.path.partition("?")[0]) for example in read_examples(API)]
    for operation in OPERATIONS:
        pattern = re.sub("{[a-z_]+}", "[^/]+", PREFIX + operation.path)
        assert any(method == operation.method and re.fullmatch(pattern, path) for method, path in sent), operation.name
    assert len(sent) == API.count("```http"), "a request without its answer"


@pytest.mark.parametrize("server", ["gevent", "waitress"])
def test_a_live_server_answers_the_examples_as_the_page_says(server: str, tmp_path: Path) -> None:
    with serve(tmp_path, server) as served:
        player = Player(served)
        for example in read_examples(API):
            player.play(example)
    assert any(name.startswith("run_") for name in player.ids)
    assert any(name.startswith("inp_") for name in player.ids)


def test_the_events_that_are_shown_fit_their_schema() -> None:
    shown = [json.loads(text) for text in fences(EVENTS, "json event")]
    assert [event["type"] for event in shown] == list(DURABLE)
    for event in shown:
        EventSchema().load(event)


def test_the_frames_that_are_shown_fit_their_schemas() -> None:
    shown = [re.fullmatch(r"event: (\S+)\ndata: (.*)\n", text) for text in fences(EVENTS, "text frame")]
    assert [frame and frame[1] for frame in shown] == list(LIVE)
    for frame in shown:
        assert frame is not None
        LIVE[frame[1]]().load(json.loads(frame[2]))


@pytest.mark.parametrize(
    ("kind", "schema"), [("failure", FailureSchema), ("error", ErrorSchema), ("ready", FailedReadySchema)]
)
def test_the_errors_that_are_shown_fit_their_schemas(kind: str, schema: type[ErrorSchema]) -> None:
    [text] = fences(ERRORS, f"json {kind}")
    schema().load(json.loads(text))
