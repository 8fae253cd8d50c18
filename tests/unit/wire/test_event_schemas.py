"""Events, their encoders and their schemas say the same: every kind fits its schema, and every schema has its kind."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

import pytest
from marshmallow import Schema, ValidationError

from aura import events as e
from aura.runs import TERMINAL, OnInput, Outcome, RunKind, State
from aura.wire import automation
from aura.wire.catalogue import CATALOGUE, CONTRACT_TYPES
from aura.wire.schemas import event_data as data
from aura.wire.schemas import records
from tests.support import samples

JOURNAL = samples.journal()


def choices(schema: type[Schema], name: str) -> set[str]:
    return set(schema().fields[name].validators[0].choices) - {None}  # type: ignore[attr-defined]


def test_the_sample_journal_has_every_kind_and_every_end_of_a_run() -> None:
    known = {entry.event for entry in CATALOGUE.values() if not entry.event.full}
    assert {type(line.event) for line in JOURNAL} == known
    bodies = [json.loads(line.text)["data"] for line in JOURNAL]
    runs = [body["run"] for body in bodies if "run" in body]
    assert {run["state"] for run in runs if run["terminal"]} == TERMINAL


@pytest.mark.requirement("journal.line")
@pytest.mark.parametrize("line", JOURNAL, ids=lambda line: f"{line.seq}-{line.type}")
def test_an_encoded_event_fits_its_schema(line: samples.Line) -> None:
    data.EventSchema().load(json.loads(line.text))


@pytest.mark.requirement("events.closed-set")
def test_there_is_a_schema_for_each_type_and_a_type_for_each_schema() -> None:
    assert set(data.DURABLE) == CONTRACT_TYPES
    sent = dict(automation.transient_fields(item) for item in samples.LIVE_ITEMS)
    assert set(data.LIVE) == {*sent, "heartbeat"}
    for name, fields in sent.items():
        data.LIVE[name]().load(fields)


@pytest.mark.requirement("events.closed-set")
@pytest.mark.parametrize("line", list(samples.first_of_each_type()), ids=lambda line: line.type)
def test_a_missing_or_an_additional_key_does_not_fit(line: samples.Line) -> None:
    event = json.loads(line.text)
    for key in event["data"]:
        fewer = {**event, "data": {name: value for name, value in event["data"].items() if name != key}}
        with pytest.raises(ValidationError):
            data.EventSchema().load(fewer)
    with pytest.raises(ValidationError):
        data.EventSchema().load({**event, "data": {**event["data"], "more": 1}})
    with pytest.raises(ValidationError):
        data.EventSchema().load({**event, "more": 1})


@pytest.mark.parametrize(
    ("schema", "field", "kinds"),
    [
        (data.ServerStoppingData, "reason", e.StopReason),
        (data.SessionPersistedData, "reason", e.Reason),
        (data.SessionPersistFailedData, "reason", e.Reason),
        (data.NoticeData, "level", get_type_hints(e.Notice)["level"]),
        (data.ToolFinishedData, "status", get_type_hints(e.ToolFinished)["status"]),
        (data.InputRequiredData, "kind", get_type_hints(e.InputRequired)["input_kind"]),
        (records.RunSchema, "state", State),
        (records.RunSchema, "outcome", Outcome),
        (records.RunSchema, "kind", RunKind),
        (records.RunSchema, "on_input", OnInput),
    ],
    ids=str,
)
def test_a_closed_set_has_the_members_of_its_type(schema: type[Schema], field: str, kinds: Any) -> None:
    assert choices(schema, field) == set(get_args(kinds))


@pytest.mark.requirement("runs.record.terminal", "runs.record.error")
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"terminal": False}, "terminal"),
        ({"state": "finished"}, "terminal"),
        ({"settled_at": None}, "terminal"),
        ({"error": {"code": "internal", "message": "x", "retryable": False, "details": {}}}, "error"),
        ({"outcome": "failed"}, "error"),
        ({"outcome": None}, "outcome"),
        ({"persisted": None}, "persisted"),
        ({"state": "gone"}, "state"),
        ({"accepted_seq": 0}, "accepted_seq"),
        ({"accepted_seq": True}, "accepted_seq"),
        ({"accepted_at": "2026-11-30T10:00:00Z"}, "accepted_at"),
        ({"id": "run_1"}, "id"),
        ({"request_digest": "A" * 64}, "request_digest"),
        ({"cancel_requested": 1}, "cancel_requested"),
        ({"stats": {"iterations": 1, "tool_calls": {"Bash": "1"}, "tool_errors": 0}}, "stats"),
    ],
    ids=str,
)
def test_a_run_that_contradicts_itself_does_not_fit(changes: dict[str, Any], field: str) -> None:
    run = json.loads(next(line.text for line in JOURNAL if line.type == "run.persisted"))["data"]["run"]
    records.RunSchema().load(run)
    assert field in records.RunSchema().validate({**run, **changes})


@pytest.mark.requirement("runs.error-shape")
@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"retryable": False}, False),
        ({"code": "no_such_code"}, False),
        ({"details": {"status": 503}}, True),
        ({"details": {"last_seq": 1}}, False),
        ({"details": {"status": None}}, False),
        ({"details": {"more": 1}}, False),
        ({"message": None}, False),
    ],
    ids=str,
)
def test_an_error_has_what_its_code_has(changes: dict[str, Any], fits: bool) -> None:
    error: dict[str, Any] = {"code": "provider_server", "message": "down", "retryable": True, "details": {}}
    assert (records.ErrorSchema().validate({**error, **changes}) == {}) == fits


def test_the_journal_page_is_checked_event_by_event() -> None:
    page = json.loads(automation.page((line.text for line in JOURNAL), len(JOURNAL)))
    data.JournalPageSchema().load(page)
    page["events"][3]["data"]["content"] = None
    assert set(data.JournalPageSchema().validate(page)["events"]) == {3}  # type: ignore[arg-type]
