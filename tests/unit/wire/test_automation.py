"""The contract's shapes: every event kind has one, with exactly its keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aura import events as e
from aura.conversation import Call, Message
from aura.runs import NewRun, RunError, accept
from aura.wire import automation, canonical
from aura.wire.catalogue import CATALOGUE, CONTRACT_TYPES, encode_event

RUN = accept(NewRun("run_1", "r1", "prompt", "hi", "block", "d" * 64, 0), "s1", 1)
ERROR = RunError("provider_server", "down", retryable=True, details={"status": 503, "reason": None})
ERROR_JSON = {"code": "provider_server", "message": "down", "retryable": True, "details": {"status": 503}}

EXAMPLES: list[tuple[e.Event, Any]] = [
    (e.ServerStarted(pid=1, version="1", resumed_revision=None), {"pid": 1, "version": "1", "resumed_revision": None}),
    (e.ServerStopping(reason="sigint"), {"reason": "sigint"}),
    (e.RunStarted(run_id="run_1", message_id="m"), {"run_id": "run_1", "message_id": "m"}),
    (e.MessageUser(message_id="m", content="c"), {"message_id": "m", "content": "c"}),
    (
        e.MessageAssistant(message_id="m", content="", tool_calls=(Call("c", "n", {"a": 1}),)),
        {"message_id": "m", "content": "", "tool_calls": [{"call_id": "c", "name": "n", "args": {"a": 1}}]},
    ),
    (e.ToolStarted(call_id="c", name="n", args={}), {"call_id": "c", "name": "n", "args": {}}),
    (
        e.ToolFinished(call_id="c", name="n", status="error", result="r", error="e"),
        {"call_id": "c", "name": "n", "status": "error", "result": "r", "error": "e"},
    ),
    (e.Notice(level="info", origin="o", message="m"), {"level": "info", "source": "o", "message": "m"}),
    (
        e.StatusChanged(agent="a", mode=None, provider="p", model="m", iteration=1, tokens_used=2, tokens_max=3),
        {"agent": "a", "mode": None, "provider": "p", "model": "m", "iteration": 1, "tokens_used": 2, "tokens_max": 3},
    ),
    (
        e.InputRequired(input_id="i", input_kind="ask", question="?", options=(e.Option("l", "d"),)),
        {
            "input_id": "i", "kind": "ask", "question": "?", "options": [{"label": "l", "description": "d"}],
            "multi_select": False, "tool": None, "detail": None, "pattern": None,
        },
    ),
    (e.InputResolved(input_id="i", answer=[1], answered_by="x"), {"input_id": "i", "answer": [1]}),
    (e.CommandResult(command="/x", message="m"), {"command": "/x", "message": "m", "error": None}),
    (
        e.SessionPersisted(revision="r", messages=1, reason="run", changed=True),
        {"revision": "r", "messages": 1, "reason": "run", "changed": True},
    ),
    (e.SessionPersistFailed(error=ERROR, reason="run"), {"error": ERROR_JSON, "reason": "run"}),
]  # fmt: skip
WITH_RUN = [
    e.RunAccepted(),
    e.RunCancelRequested(),
    e.RunFinished(outcome="completed"),
    e.RunPersisted(),
    e.RunPersistFailed(error=ERROR),
    e.RunLost(revision="r", messages=0, persisted_seq=0),
]


@pytest.mark.requirement("events.session.persist-failed")
@pytest.mark.parametrize(("event", "data"), EXAMPLES)
def test_an_event_has_exactly_the_contracts_data(event: e.Event, data: dict[str, Any]) -> None:
    encoded = encode_event(event, None)
    assert (encoded.type, encoded.kind) == (event.kind, event.kind)
    assert encoded.data == canonical.encode(data)
    assert list(json.loads(encoded.data)) == list(data)


@pytest.mark.requirement("events.run")
@pytest.mark.parametrize("event", WITH_RUN)
def test_a_run_event_carries_the_record(event: e.Event) -> None:
    assert json.loads(encode_event(event, RUN).data) == {"run": automation.run_fields(RUN)}


@pytest.mark.requirement("events.closed-set")
def test_every_kind_of_the_catalogue_is_shown_above() -> None:
    shown = {event.kind for event, _ in EXAMPLES} | {event.kind for event in WITH_RUN}
    known = {kind for kind, entry in CATALOGUE.items() if not entry.event.full}
    assert shown == known == set(CONTRACT_TYPES)


@pytest.mark.requirement("runs.record")
def test_a_run_has_the_contracts_keys_in_order() -> None:
    fields = automation.run_fields(RUN)
    assert list(fields) == [
        "id", "request_id", "kind", "request_digest", "on_input", "session_id", "state", "terminal", "outcome", "error",
        "persist_error", "cancel_requested", "result", "persisted", "stats", "accepted_seq", "accepted_at",
        "started_at",
        "finished_at", "settled_at",
    ]  # fmt: skip
    assert (fields["state"], fields["terminal"], fields["accepted_at"]) == (
        "accepted",
        False,
        "1970-01-01T00:00:00.000Z",
    )


def test_a_message_is_served_with_nulls_where_it_is_empty() -> None:
    fields = automation.message_fields(Message("user", "", thinking="t"), 3)
    assert fields == {
        "index": 3, "message_id": None, "role": "user", "content": None, "calls": None, "tool_call_id": None,
        "tool_name": None, "type": 0, "created_at": None,
    }  # fmt: skip
    assert automation.message_fields(Message("user", "", thinking="t"), 3, thinking=True)["thinking"] == "t"


def test_the_digest_of_a_request_is_that_of_its_canonical_json() -> None:
    import hashlib

    expected = hashlib.sha256('{"kind":"prompt","on_input":"block","text":"é"}'.encode()).hexdigest()
    assert automation.request_digest("prompt", "block", "é") == expected


def test_a_page_is_spliced_json() -> None:
    one = automation.envelope(1, 0, "notice", "s", None, b"{}")
    two = automation.envelope(2, 0, "notice", "s", "run_1", b'{"a":1}')
    assert json.loads(automation.page([], 0)) == {"events": [], "last_seq": 0}
    assert json.loads(automation.page([one, two], 2)) == {"events": [json.loads(one), json.loads(two)], "last_seq": 2}


@pytest.mark.requirement("sse.transient.tool-output")
def test_live_events_have_their_names() -> None:
    assert automation.transient_fields(e.Delta("m", 0, "t")) == ("delta.content", {"message_id": "m", "text": "t"})
    assert automation.transient_fields(e.Delta("m", 0, "t", thinking=True))[0] == "delta.thinking"
    assert automation.transient_fields(e.ToolOutput("n", "l")) == ("tool.output", {"name": "n", "line": "l"})
    assert automation.transient_fields(e.Spinner("s")) == ("spinner", {"text": "s"})
