"""The contract's table against a real server: every route once, with what it refuses."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.raw_server import Served

RUN_KEYS = {
    "id", "request_id", "kind", "request_digest", "on_input", "session_id", "state", "terminal", "outcome", "error",
    "persist_error", "cancel_requested", "result", "persisted", "stats", "accepted_seq", "accepted_at", "started_at",
    "finished_at", "settled_at",
}  # fmt: skip


@pytest.mark.requirement("http.server")
def test_the_server_describes_itself(served: Served) -> None:
    info = served.get("/v1/server").json
    assert set(info) == {
        "api", "aura_version", "commit", "pid", "session_id", "workdir", "write_home", "url", "started_at", "state",
        "last_seq",
    }  # fmt: skip
    assert info["pid"] == served.process.pid
    assert info["state"] == "ready"
    assert info["last_seq"] >= 2


@pytest.mark.requirement("http.session", "runs.record.result", "runs.outcome.completed")
def test_a_prompt_runs_to_a_terminal_record_and_its_messages_are_stored(served: Served) -> None:
    before = served.get("/v1/session/messages").json["total"]
    run = served.run("hello")
    assert set(run) == RUN_KEYS
    assert (run["outcome"], run["result"]) == ("completed", {"content": "echo: hello"})
    session = served.get("/v1/session").json
    assert session["session"]["revision"] == run["persisted"]["revision"]
    assert session["persisted_seq"] == run["persisted"]["seq"]
    assert session["run"] is None
    page = served.get(f"/v1/session/messages?after={before - 1}").json
    assert [message["content"] for message in page["messages"]] == ["hello", "echo: hello"]
    assert page["total"] == before + 2
    assert "thinking" in served.get("/v1/session/messages?thinking=true").json["messages"][0]


@pytest.mark.requirement("http.command.known")
def test_a_command_runs_without_a_model(served: Served) -> None:
    answer = served.post("/v1/runs", {"request_id": secrets.token_hex(4), "command": "/help"})
    assert answer.status == 202
    run = served.finish(answer.json)
    assert (run["kind"], run["outcome"], run["started_at"]) == ("command", "completed", None)
    for command in ("help", "/nonsense", "/clear", "/quit now", ""):
        body = {"request_id": secrets.token_hex(4), "command": command}
        served.post("/v1/runs", body).failure(400, "bad_request")


@pytest.mark.requirement("http.prompt-with-slash")
def test_a_prompt_may_start_with_a_slash_and_must_not_be_empty(served: Served) -> None:
    assert served.run("/quit")["result"] == {"content": "echo: /quit"}
    served.post("/v1/runs", {"request_id": "e", "prompt": ""}).failure(400, "bad_request")


@pytest.mark.requirement("http.runs.submit", "http.errors.request-conflict")
def test_a_request_id_makes_one_run_however_often_it_comes(served: Served) -> None:
    body = {"request_id": secrets.token_hex(8), "prompt": "once"}
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: served.post("/v1/runs", body), range(20)))
    assert sorted(answer.status for answer in answers) == [200] * 19 + [202]
    assert len({answer.json["id"] for answer in answers}) == 1
    for answer in answers:
        assert answer.headers.get("Idempotent-Replay") == ("true" if answer.status == 200 else None)
    served.finish(answers[0].json)
    again = served.post("/v1/runs", body)
    assert (again.status, again.json["terminal"]) == (200, True)
    served.post("/v1/runs", {**body, "prompt": "other"}).failure(409, "request_conflict")
    served.post("/v1/runs", {**body, "on_input": "wait"}).failure(409, "request_conflict")
    assert served.get(f"/v1/runs?request_id={body['request_id']}").json == again.json


@pytest.mark.requirement("http.runs.cancel", "http.errors.busy", "runs.cancel.settled")
def test_a_second_run_is_busy_and_a_cancel_ends_the_first(served: Served) -> None:
    run = served.submit("hang")
    assert served.get("/v1/session").json["run"]["id"] == run["id"]
    error = served.post("/v1/runs", {"request_id": secrets.token_hex(4), "prompt": "x"}).failure(409, "busy")
    assert error["details"] == {"run_id": run["id"]}
    cancel = served.post(f"/v1/runs/{run['id']}/cancel")
    assert (cancel.status, cancel.json["cancel_requested"]) == (202, True)
    record = served.finish(run)
    assert (record["outcome"], record["error"]["details"]) == ("cancelled", {"reason": "request"})
    assert served.post(f"/v1/runs/{run['id']}/cancel", {}).json == record


@pytest.mark.requirement("http.runs.inputs", "http.errors.not-pending")
def test_a_question_is_answered_once(served: Served) -> None:
    after = served.last_seq()
    run = served.submit("ask", on_input="wait")
    required = served.wait_event("input.required", after)
    path = f"/v1/runs/{run['id']}/inputs/{required['data']['input_id']}"
    served.post(path, {"action": "allow"}).failure(400, "bad_request")
    served.post(f"/v1/runs/{run['id']}/inputs/inp_unknown", {"answer": "1"}).failure(404, "not_found")
    answer = served.post(path, {"answer": "2"})
    assert (answer.status, answer.json) == (200, {})
    served.post(path, {"answer": "1"}).failure(409, "not_pending")
    assert served.wait_event("input.resolved", after)["data"]["answer"] == "blue"
    assert served.finish(run)["outcome"] == "completed"


@pytest.mark.requirement("inputs.block")
def test_a_question_ends_a_run_that_must_not_wait(served: Served) -> None:
    assert served.run("ask")["outcome"] == "blocked"


@pytest.mark.requirement("http.error-shape", "http.errors.not-found")
def test_what_does_not_exist_is_not_found_in_the_error_shape(served: Served) -> None:
    for path in ("/v1/runs/run_x", "/v1/runs?request_id=never", "/v1/x", "/", "/v1/runs/%FF%00"):
        served.get(path).failure(404, "not_found")
    served.post("/v1/runs/run_x/cancel").failure(404, "not_found")
    served.post("/v1/runs/run_x/inputs/inp_x", {"answer": "1"}).failure(404, "not_found")
    served.request("PUT", "/v1/runs", {}).failure(405, "bad_request")


@pytest.mark.requirement("http.auth", "http.errors.unauthorized")
def test_a_wrong_token_is_refused_everywhere(served: Served) -> None:
    for path in ("/v1/server", "/v1/events", "/nothing"):
        answer = served.get(path, Authorization="Bearer wrong")
        answer.failure(401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.requirement("http.journal", "http.errors.cursor-out-of-range", "journal.contiguous")
def test_the_journal_pages_are_contiguous_and_end_at_the_last_seq(served: Served) -> None:
    events = served.journal()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    last_seq = served.last_seq()
    assert events[-1]["seq"] == last_seq
    assert served.get(f"/v1/journal?after={last_seq}").json == {"events": [], "last_seq": last_seq}
    for after in (-1, last_seq + 1):
        error = served.get(f"/v1/journal?after={after}").failure(409, "cursor_out_of_range")
        assert error["details"] == {"last_seq": last_seq}
        served.get(f"/v1/events?after={after}").failure(409, "cursor_out_of_range")
