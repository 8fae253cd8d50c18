"""The models: what the contract's documents become, and what is said when a document does not fit."""

from __future__ import annotations

import client_documents as documents
import pytest
from client_documents import Document

from aura_automation import ContractDrift, Event, Message, Parent, Run, Stats, Summary
from aura_automation import _decode as decode
from aura_automation import _event_schemas as event_schemas
from aura_automation import _schemas as schemas
from aura_automation.codes import BY_CODE

EVENT = event_schemas.EventSchema()


def read_event(document: Document) -> Event:
    return decode.load(EVENT, Event, document, "here")


@pytest.mark.requirement("session.summary")
def test_a_summary_becomes_a_frozen_value() -> None:
    parent: Document = {"id": "baseline", "revision": "c" * 64}
    loaded = decode.load(schemas.SummarySchema(), Summary, documents.summary(parent=parent), "here")
    assert loaded.parent == Parent("baseline", "c" * 64)
    with pytest.raises(AttributeError):
        loaded.id = "other"  # type: ignore[misc]


def test_a_run_keeps_everything_the_record_says() -> None:
    error = documents.error(code="provider_server", retryable=True, details={"status": 503, "candidates": ["a"]})
    document = documents.run(state="lost", terminal=True, outcome="failed", error=error)
    loaded = decode.load(schemas.RunSchema(), Run, document, "here")
    assert loaded.stats == Stats(1, {"Bash": 2}, 1)
    assert loaded.error is not None
    assert loaded.error.details == {"status": 503, "candidates": ["a"]}
    assert (loaded.state, loaded.terminal, loaded.persisted) == ("lost", True, None)


def test_arrays_become_tuples_and_free_json_stays_as_it_is() -> None:
    document = documents.message(calls=[{"id": "c", "name": "Edit", "arguments": {"lines": [1, 2]}}])
    loaded = decode.load(schemas.MessageSchema(), Message, document, "here")
    assert isinstance(loaded.calls, tuple)
    assert loaded.calls[0].arguments == {"lines": [1, 2]}


@pytest.mark.parametrize("field", sorted(documents.run()))
def test_a_run_without_any_one_field_is_drift_that_names_it(field: str) -> None:
    document = documents.run()
    del document[field]
    with pytest.raises(ContractDrift) as caught:
        decode.load(schemas.RunSchema(), Run, document, "GET /v1/runs/x")
    assert caught.value.field == field
    assert field in str(caught.value)
    assert "GET /v1/runs/x" in str(caught.value)


@pytest.mark.requirement("client.strict")
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"surprise": 1}, "surprise"),
        ({"state": "paused"}, "state"),
        ({"terminal": True}, "terminal"),
        ({"terminal": 0}, "terminal"),
        ({"accepted_seq": "3"}, "accepted_seq"),
        ({"accepted_seq": True}, "accepted_seq"),
        ({"accepted_seq": 3.0}, "accepted_seq"),
        ({"request_id": None}, "request_id"),
        ({"cancel_requested": "false"}, "cancel_requested"),
        ({"stats": {"iterations": 1, "tool_calls": {}, "tool_errors": 0, "cost": 1}}, "stats.cost"),
        ({"stats": {"iterations": 1, "tool_calls": {"Bash": "2"}, "tool_errors": 0}}, "stats.tool_calls.Bash.value"),
        ({"error": documents.error(code="on_fire")}, "error.code"),
        ({"error": documents.error(details=None)}, "error.details"),
        ({"error": documents.error(hint="try harder")}, "error.hint"),
        ({"persisted": {"revision": "r", "messages": 1}}, "persisted.seq"),
    ],
)
def test_a_wrong_value_in_a_run_is_drift_that_names_the_field(changes: Document, field: str) -> None:
    with pytest.raises(ContractDrift) as caught:
        decode.load(schemas.RunSchema(), Run, documents.run(**changes), "here")
    assert caught.value.fields == (field,)


def test_drift_in_several_fields_names_all_of_them() -> None:
    with pytest.raises(ContractDrift) as caught:
        decode.load(schemas.RunSchema(), Run, documents.run(id=1, kind="chat"), "here")
    assert caught.value.fields == ("id", "kind")


def test_the_fixtures_cover_the_closed_set_of_event_types() -> None:
    assert set(documents.event_data()) == set(event_schemas.DURABLE)


@pytest.mark.parametrize("kind", sorted(event_schemas.DURABLE))
def test_every_durable_type_is_read_and_its_data_kept(kind: str) -> None:
    data = documents.event_data()[kind]
    assert read_event(documents.event(5, kind, data)).data == data


@pytest.mark.requirement("client.strict")
@pytest.mark.parametrize("kind", sorted(event_schemas.DURABLE))
def test_every_durable_type_refuses_a_field_too_many_and_each_one_missing(kind: str) -> None:
    data = documents.event_data()[kind]
    with pytest.raises(ContractDrift) as caught:
        read_event(documents.event(5, kind, data | {"extra": 1}))
    assert caught.value.field == "data.extra"
    for field in data:
        rest = {name: value for name, value in data.items() if name != field}
        with pytest.raises(ContractDrift) as caught:
            read_event(documents.event(5, kind, rest))
        assert caught.value.field == f"data.{field}"


def test_an_event_of_an_unknown_type_is_drift() -> None:
    with pytest.raises(ContractDrift, match=r"type: 'run\.paused' is not an event"):
        read_event(documents.event(5, "run.paused", {}))


def test_drift_deep_in_a_journal_page_has_the_whole_path() -> None:
    page: Document = {
        "events": [documents.notice(1), documents.event(2, "run.accepted", {"run": documents.run(state="?")})],
        "last_seq": 2,
    }
    with pytest.raises(ContractDrift) as caught:
        decode.load(event_schemas.JournalPageSchema(), object, page, "GET /v1/journal")
    assert caught.value.field == "events.1.data.run.state"


def test_a_transient_event_is_strict_too() -> None:
    assert decode.read_transient("spinner", '{"text":"…"}', "here").data == {"text": "…"}
    with pytest.raises(ContractDrift, match=r"message_id"):
        decode.read_transient("delta.content", '{"text":"a"}', "here")
    with pytest.raises(ContractDrift, match=r"'delta\.audio'"):
        decode.read_transient("delta.audio", "{}", "here")


def test_thinking_is_required_when_asked_for_and_unknown_when_not() -> None:
    with pytest.raises(ContractDrift) as caught:
        decode.load(schemas.ThinkingMessageSchema(), Message, documents.message(), "here")
    assert caught.value.field == "thinking"
    with pytest.raises(ContractDrift) as caught:
        decode.load(schemas.MessageSchema(), Message, documents.message(thinking="hm"), "here")
    assert caught.value.field == "thinking"


@pytest.mark.parametrize("raw", [b"", b"<html>login</html>", b'{"a": NaN}', b'{"a": 1} {"b": 2}', b"[" * 100_000])
def test_what_is_not_one_json_document_is_drift(raw: bytes) -> None:
    with pytest.raises(ContractDrift, match="here"):
        decode.read_json(raw, "here")


@pytest.mark.parametrize("document", [None, 1, "text", ["list"]])
def test_a_document_that_is_not_an_object_is_drift(document: None | int | str | list[str]) -> None:
    with pytest.raises(ContractDrift, match="not a JSON object"):
        decode.load(schemas.RunSchema(), Run, document, "here")  # type: ignore[arg-type]


def test_another_api_version_is_drift() -> None:
    with pytest.raises(ContractDrift, match="2 is not the API version of this client, 1"):
        decode.load(schemas.ServerInfoSchema(), object, documents.server_info(api=2), "here")


def test_a_good_run_raises_nothing_and_a_bad_one_its_typed_error() -> None:
    good = decode.load(schemas.RunSchema(), Run, documents.persisted_run(), "here")
    good.raise_for_outcome()
    for code, kind in BY_CODE.items():
        document = documents.persisted_run(outcome="failed", error=documents.error(code=code))
        with pytest.raises(kind, match="something broke"):
            decode.load(schemas.RunSchema(), Run, document, "here").raise_for_outcome()


def test_a_failed_save_of_a_completed_run_is_raised() -> None:
    unsaved = documents.run(
        state="persist_failed", terminal=True, outcome="completed", persist_error=documents.error(code="persist_failed")
    )
    with pytest.raises(BY_CODE["persist_failed"]):
        decode.load(schemas.RunSchema(), Run, unsaved, "here").raise_for_outcome()
