"""Runs as a controller sees them: the order of events, idempotency, one run at a time, cancellation."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from aura_automation import BadRequest, Busy, Call, NotFound, RequestConflict, StopRequested
from tests.support.serving import Site, bash, calls, until


def digest(text: str, on_input: str = "block", kind: str = "prompt") -> str:
    body = f'{{"kind":"{kind}","on_input":"{on_input}","text":"{text}"}}'
    return hashlib.sha256(body.encode()).hexdigest()


@pytest.mark.requirement(
    "store.checkpoints.iteration",
    "runs.persisted.after-save",
    "journal.run-id",
    "events.run.started",
    "events.message",
    "events.tool",
    "events.session.persisted",
    "events.order",
)
def test_a_run_with_one_tool_call_has_the_contracts_events_in_the_contracts_order(site: Site) -> None:
    site.script(
        calls(bash("echo hi"), content="Let me look.", thinking="hm"),
        {"content": "It says {{last}}", "usage": {"input": 30, "output": 4}},
    )
    server = site.launch()
    run = server.run("say hi")
    events = [event for event in server.events() if event.type != "status"]
    assert [event.type for event in events] == [
        "server.started",
        "session.persisted",
        "run.accepted",
        "message.user",
        "run.started",
        "message.assistant",
        "tool.started",
        "tool.finished",
        "session.persisted",
        "message.assistant",
        "run.finished",
        "session.persisted",
        "run.persisted",
    ]
    assert [event.seq for event in server.events()] == list(range(1, server.client.server().last_seq + 1))
    _, _, accepted, user, started, asked, tool, finished, checkpoint, _, ended, saved, settled = events
    assert [event.run_id for event in events] == [None, None] + [run.id] * 11
    assert accepted.data["run"]["state"] == "accepted"
    assert user.data["content"] == "say hi"
    assert started.data == {"run_id": run.id, "message_id": user.data["message_id"]}
    assert asked.data["content"] == "Let me look."
    assert asked.data["tool_calls"] == [{"call_id": "call_1", "name": "Bash", "args": {"command": "echo hi"}}]
    assert tool.data == {"call_id": "call_1", "name": "Bash", "args": {"command": "echo hi"}}
    assert finished.data == {"call_id": "call_1", "name": "Bash", "status": "ok", "result": "hi\n", "error": None}
    assert (checkpoint.data["reason"], checkpoint.data["messages"], checkpoint.data["changed"]) == (
        "checkpoint",
        3,
        True,
    )
    assert (ended.data["run"]["state"], ended.data["run"]["outcome"]) == ("finished", "completed")
    assert (saved.data["reason"], saved.data["messages"]) == ("run", 4)
    assert settled.data["run"]["settled_at"] == run.settled_at
    assert run == server.client.run(run.id)

    assert (run.state, run.terminal, run.outcome, run.error, run.persist_error) == (
        "persisted",
        True,
        "completed",
        None,
        None,
    )
    assert run.result is not None
    assert run.result.content == "It says hi\n"
    assert run.persisted is not None
    assert (run.persisted.revision, run.persisted.messages, run.persisted.seq) == (
        saved.data["revision"],
        4,
        saved.seq,
    )
    assert (run.stats.iterations, run.stats.tool_calls, run.stats.tool_errors) == (2, {"Bash": 1}, 0)
    assert (run.request_digest, run.accepted_seq) == (digest("say hi"), accepted.seq)
    assert run.accepted_at <= (run.started_at or "") <= (run.finished_at or "") <= (run.settled_at or "")
    session = server.client.session()
    assert (session.session.revision, session.session.messages) == (run.persisted.revision, 4)
    assert (session.persisted_seq, session.run) == (saved.seq, None)
    assert site.store.show(server.session_id) == session.session


@pytest.mark.requirement("http.messages", "http.messages.thinking", "journal.no-thinking")
def test_messages_have_the_ids_of_the_journal_and_thinking_only_on_request(site: Site) -> None:
    site.script(calls(bash("echo hi"), thinking="a secret thought"), {"content": "done"})
    server = site.launch()
    server.run("go")
    page = server.client.messages()
    assert [message.role for message in page.messages] == ["user", "assistant", "tool", "assistant"]
    assert [message.index for message in page.messages] == [0, 1, 2, 3]
    assert page.total == 4
    assert page.messages[1].calls == (Call("call_1", "Bash", {"command": "echo hi"}),)
    assert page.messages[2].tool_call_id == "call_1"
    assert {message.thinking for message in page.messages} == {None}
    assert server.client.messages(thinking=True).messages[1].thinking == "a secret thought"
    assert server.client.messages(2).messages == page.messages[3:]
    assert server.client.messages(3).messages == server.client.messages(99).messages == ()
    with pytest.raises(BadRequest):
        server.client.messages(-2)
    journal = {event.data["message_id"] for event in server.events() if event.type.startswith("message.")}
    assert journal == {message.message_id for message in page.messages if message.role != "tool"}
    assert "a secret thought" not in str(server.events())
    assert "a secret thought" not in str(site.rows("SELECT data, ext FROM event"))


@pytest.mark.requirement("runs.idempotency", "runs.idempotency.conflict")
def test_the_same_request_returns_the_same_run_and_another_body_is_a_conflict(site: Site) -> None:
    server = site.launch()
    run = server.run("hello", "r1")
    last_seq = server.client.server().last_seq
    assert server.client.submit("r1", prompt="hello") == run
    assert server.client.find_run("r1") == run
    assert server.client.find_run("r2") is None
    for changed in ({"prompt": "other"}, {"prompt": "hello", "on_input": "wait"}, {"command": "/help"}):
        with pytest.raises(RequestConflict):
            server.client.submit("r1", **changed)
    assert server.client.server().last_seq == last_seq
    server.stop()
    again = site.launch(server.session_id)
    assert again.client.submit("r1", prompt="hello") == run
    with pytest.raises(RequestConflict):
        again.client.submit("r1", prompt="other")
    assert again.types().count("run.accepted") == 1
    assert again.run("hello", "r2").id != run.id


@pytest.mark.requirement("runs.idempotency")
def test_twenty_submissions_at_once_with_one_request_id_make_one_run(site: Site) -> None:
    site.script({"content": "ok", "delay_ms": 100, "repeat": "forever"})
    server = site.launch()
    with ThreadPoolExecutor(20) as pool:
        runs = list(pool.map(lambda _: server.client.submit("one", prompt="hello"), range(20)))
    assert len({run.id for run in runs}) == 1
    run = server.wait(runs[0].id)
    assert run.outcome == "completed"
    assert run.stats.iterations == 1
    assert server.types().count("run.accepted") == server.types().count("run.persisted") == 1


@pytest.mark.requirement("http.errors.busy")
def test_a_second_run_is_refused_until_the_first_has_settled(site: Site) -> None:
    # By its prompt, not by its turn: the first run may be cancelled before it asks the model.
    site.script({"when": {"last": "slow"}, "content": "slow", "delay_ms": 60_000}, {"content": "next"})
    server = site.launch()
    first = server.client.submit("r1", prompt="slow")
    with pytest.raises(Busy) as busy:
        server.client.submit("r2", prompt="hello")
    assert busy.value.details["run_id"] == first.id
    assert server.client.find_run("r2") is None
    live = server.client.session().run
    assert live is not None
    assert live.id == first.id
    server.client.cancel(first.id)
    assert server.wait(first.id).outcome == "cancelled"
    assert server.run("hello", "r2").outcome == "completed"


@pytest.mark.requirement(
    "runs.outcome.cancelled", "runs.cancel.journaled", "runs.cancel.authoritative", "runs.cancel.settled"
)
def test_a_cancel_in_the_middle_of_an_answer_settles_the_run_and_adds_no_answer(site: Site) -> None:
    site.script({"chunks": ["a", "b"], "chunk_delay_ms": 60_000})
    server = site.launch()
    run = server.client.submit("r1", prompt="hello")
    server.event("status")
    assert server.client.cancel(run.id).cancel_requested is True
    done = server.wait(run.id)
    assert (done.state, done.outcome, done.cancel_requested) == ("persisted", "cancelled", True)
    assert done.error is not None
    assert (done.error.code, done.error.details, done.error.retryable) == ("cancelled", {"reason": "request"}, False)
    assert server.types().count("run.cancel_requested") == 1
    assert [message.role for message in server.client.messages().messages] == ["user"]
    assert server.client.cancel(run.id) == done
    with pytest.raises(NotFound):
        server.client.cancel("run_01890000-0000-7000-8000-000000000000")


@pytest.mark.requirement("store.checkpoints.pairs", "runs.cancel.results", "events.tool")
def test_a_cancel_in_the_middle_of_a_command_gives_every_call_its_result(site: Site) -> None:
    site.script(calls(bash("echo one; sleep 60", "a"), bash("echo two", "b")))
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    server.event("tool.started")
    server.client.cancel(run.id)
    done = server.wait(run.id)
    assert (done.outcome, done.stats.tool_errors) == ("cancelled", 2)
    finished = [event.data for event in server.events() if event.type == "tool.finished"]
    assert [(data["call_id"], data["status"]) for data in finished] == [("a", "error"), ("b", "error")]
    messages = server.client.messages().messages
    assert [(message.role, message.tool_call_id) for message in messages[2:]] == [("tool", "a"), ("tool", "b")]
    assert [message.content for message in messages[2:]] == [data["result"] for data in finished]
    assert until(lambda: not site.strays(), "the end of the command")


@pytest.mark.requirement("client.end-to-end")
def test_a_wait_can_be_left_and_taken_up_without_losing_an_event(site: Site) -> None:
    site.script(*[calls(bash("sleep 0.05", f"c{n}")) for n in range(5)], {"content": "done"})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    seen: list[int] = []
    with pytest.raises(StopRequested) as stopped:
        server.client.wait(run.id, on_event=lambda event: seen.append(event.seq), stop=lambda: len(seen) >= 4)
    done = server.client.wait(run.id, on_event=lambda event: seen.append(event.seq), after=stopped.value.after)
    assert done.outcome == "completed"
    assert seen == list(range(done.accepted_seq, server.client.server().last_seq + 1))


@pytest.mark.requirement("process.no-switching", "http.command.refused", "runs.record.result")
def test_commands_answer_without_a_model_call_and_those_that_change_the_session_are_refused(site: Site) -> None:
    server = site.launch()
    run = server.wait(server.client.submit("r1", command="/help").id)
    assert (run.kind, run.outcome, run.state, run.started_at) == ("command", "completed", "persisted", None)
    assert run.result is not None
    assert "/tools" in run.result.content
    assert run.stats.iterations == 0
    kinds = server.types()
    assert kinds[2:] == ["run.accepted", "command.result", "run.finished", "session.persisted", "run.persisted"]
    assert server.events()[-2].data["reason"] == "command"
    failed = server.wait(server.client.submit("r2", command="/help nothing").id)
    assert failed.error is not None
    assert (failed.outcome, failed.error.code) == ("failed", "command_failed")
    for command in ("/resume", "/load x", "/fork", "/name x", "/clear", "/new", "/exit", "/quit", "/nonsense", "help"):
        with pytest.raises(BadRequest):
            server.client.submit("r3", command=command)
    assert server.client.find_run("r3") is None
    assert server.client.messages().total == 0


@pytest.mark.requirement("http.prompt-with-slash")
def test_a_prompt_may_begin_with_a_slash(site: Site) -> None:
    server = site.launch()
    run = server.run("/help")
    assert (run.kind, run.outcome) == ("prompt", "completed")
    assert server.client.messages().messages[0].content == "/help"
