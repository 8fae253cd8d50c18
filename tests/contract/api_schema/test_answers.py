"""What a live server serves, in all the ways that a run can go, fits the schemas to the last key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from marshmallow import Schema

from aura.wire.schemas import event_data, records
from tests.support.raw_server import SCRIPT, Served, lay_home, serve

MORE_TURNS = """turns:
  - {when: {last: "^write$"}, repeat: forever, calls: [{name: Write, arguments: {path: note, content: "x"}}]}
  - {when: {last: "^bash$"}, repeat: forever, thinking: "hm", calls: [{name: Bash, arguments: {command: "echo line"}}]}
  - {when: {last: "^read$"}, repeat: forever, calls: [{name: Read, arguments: {path: missing}}]}
  - {when: {last: "^down$"}, repeat: forever, error: {kind: http, status: 503, message: down, retry_after_ms: 10}}
"""


@pytest.fixture(scope="module", params=["gevent", "waitress"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(lay_site(tmp_path_factory.mktemp("site")), request.param) as server:
        yield server


def lay_site(root: Path) -> Path:
    lay_home(root / "home")
    (root / "workspace").mkdir()
    provider = "script: {type: script, file: script.yaml, retry: {max_attempts: 0}}\n"
    (root / "home/config/providers/script.yaml").write_text(provider)
    for folder in (root / "home", root / "home/config"):
        (folder / "script.yaml").write_text(SCRIPT.replace("turns:\n", MORE_TURNS, 1))
    return root


def check(schema: type[Schema], value: Any) -> None:
    assert schema().validate(value) == {}, json.dumps(value)


def check_journal(served: Served) -> set[str]:
    """Check the whole journal and return its types."""
    page = served.get("/v1/journal?limit=5000").json
    check(event_data.JournalPageSchema, page)
    assert [event["seq"] for event in page["events"]] == list(range(1, page["last_seq"] + 1))
    return {event["type"] for event in page["events"]}


def outcome(run: dict[str, Any]) -> tuple[str, str | None]:
    check(records.RunSchema, run)
    return run["outcome"], run["error"] and run["error"]["code"]


@pytest.mark.requirement("store.checkpoints.turn", "runs.record")
def test_runs_and_their_events_fit_however_they_end(served: Served) -> None:
    assert outcome(served.run("hello")) == ("completed", None)
    assert outcome(served.run("bash")) == ("completed", None)
    assert outcome(served.run("read")) == ("completed", None)
    assert outcome(served.run("down")) == ("failed", "provider_server")
    assert outcome(served.run(" ")) == ("rejected", "input_rejected")
    assert outcome(served.run("ask")) == ("blocked", "input_required")
    for command, end in (("/stats", ("completed", None)), ("/help nothing", ("failed", "command_failed"))):
        answer = served.post("/v1/runs", {"request_id": command, "command": command})
        check(records.RunSchema, answer.json)
        assert outcome(served.finish(answer.json)) == end
    hanging = served.submit("hang")
    check(records.SessionInfoSchema, served.get("/v1/session").json)
    check(records.RunSchema, served.post(f"/v1/runs/{hanging['id']}/cancel").json)
    assert outcome(served.finish(hanging)) == ("cancelled", "cancelled")
    after = served.last_seq()
    writing = served.submit("write", on_input="wait")
    asked = served.wait_event("input.required", after)
    inputs = f"/v1/runs/{writing['id']}/inputs/{asked['data']['input_id']}"
    check(records.NothingDoneSchema, served.post(inputs, {"action": "allow"}).json)
    assert outcome(served.finish(writing)) == ("completed", None)
    never = {
        "server.stopping", "run.persist_failed", "session.persist_failed", "run.lost", "notice",
    }  # fmt: skip
    assert set(event_data.DURABLE) - check_journal(served) == never


def test_an_answer_of_thousands_of_digits_is_taken_as_text(served: Served) -> None:
    after, run = served.last_seq(), served.submit("ask", on_input="wait")
    input_id = served.wait_event("input.required", after)["data"]["input_id"]
    digits = "1" * 5000
    check(records.NothingDoneSchema, served.post(f"/v1/runs/{run['id']}/inputs/{input_id}", {"answer": digits}).json)
    assert served.wait_event("input.resolved", after)["data"]["answer"] == digits
    served.finish(run)


@pytest.mark.requirement("http.session")
def test_what_is_read_fits(served: Served) -> None:
    check(records.ServerInfoSchema, served.get("/v1/server").json)
    served.run("bash")
    check(records.SessionInfoSchema, served.get("/v1/session").json)
    plain, thinking = (served.get(f"/v1/session/messages{query}").json for query in ("", "?thinking=true"))
    check(records.MessagePageSchema, plain)
    check(records.ThinkingMessagePageSchema, thinking)
    assert any(message["thinking"] for message in thinking["messages"])


@pytest.mark.requirement("http.error-shape")
@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/v1/journal?limit=x", "bad_request"),
        ("GET", "/v1/runs/none", "not_found"),
        ("GET", "/nowhere", "not_found"),
        ("DELETE", "/v1/runs", "bad_request"),
        ("GET", "/v1/events?after=99999", "cursor_out_of_range"),
        ("POST", "/v1/runs", "bad_request"),
    ],
)
def test_errors_fit(served: Served, method: str, path: str, code: str) -> None:
    failure = served.request(method, path).json
    check(records.FailureSchema, failure)
    assert failure["error"]["code"] == code
    unknown = served.request(method, path, Authorization="Bearer no").json
    check(records.FailureSchema, unknown)


def test_a_stream_fits_with_its_live_items(served: Served) -> None:
    seen = set()
    with served.stream(f"?after={served.last_seq()}&transient=true&thinking=true&heartbeat=1") as stream:
        for prompt in ("slow", "bash"):
            served.submit(prompt)
            for frame in stream.until("run.persisted"):
                seen.add(check_frame(frame))
        seen.update(check_frame(frame) for frame in stream.until("heartbeat"))
    assert set(event_data.LIVE) <= seen


def check_frame(frame: dict[str, str]) -> str:
    """Check one frame of a stream and return its type."""
    data = json.loads(frame["data"])
    if frame["event"] in event_data.LIVE:
        assert set(frame) == {"event", "data"}
        check(event_data.LIVE[frame["event"]], data)
    else:
        assert (frame["id"], frame["event"]) == (str(data["seq"]), data["type"])
        check(event_data.EventSchema, data)
    return frame["event"]


@pytest.mark.requirement("serve.ready-file.content", "serve.failure.document")
def test_a_lost_run_and_the_ready_files_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_site(tmp_path)
    with serve(tmp_path, "gevent") as first:
        check(records.ReadySchema, json.loads((tmp_path / "ready.json").read_text()))
        session_id = first.get("/v1/server").json["session_id"]
        hanging = first.submit("hang")
        first.wait_event("run.started", 0)
        first.process.kill()
        first.process.wait()
    (tmp_path / "ready.json").unlink()
    monkeypatch.setenv("AURA_RESUME", session_id)
    with serve(tmp_path, "gevent") as second:
        run = second.get(f"/v1/runs/{hanging['id']}").json
        assert (run["state"], *outcome(run)) == ("lost", None, "server_lost")
        assert "run.lost" in check_journal(second)
    (tmp_path / "ready.json").unlink()
    monkeypatch.setenv("AURA_RESUME", "no-such-session")
    with pytest.raises(AssertionError), serve(tmp_path, "gevent"):
        pass
    check(records.FailedReadySchema, json.loads((tmp_path / "ready.json").read_text()))
