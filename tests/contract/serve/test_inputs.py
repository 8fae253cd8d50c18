"""Questions and approvals: blocked, answered, dismissed."""

from __future__ import annotations

from typing import Any

import pytest

from aura_automation import BadRequest, Event, NotFound, NotPending, Run
from tests.support.serving import Running, Site, bash, calls


def ask(**more: Any) -> dict[str, Any]:
    options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
    return {"id": "ask_1", "name": "Ask", "arguments": {"question": "Which colour?", "options": options} | more}


def pending(server: Running, prompt: str = "go", request_id: str = "r1") -> tuple[Run, Event]:
    """Submit a prompt that will wait for an answer; return the run and its question."""
    after = server.client.server().last_seq
    run = server.client.submit(request_id, prompt=prompt, on_input="wait")
    return run, server.event("input.required", after)


def result(server: Running, after: int = 0) -> str:
    return str(server.event("tool.finished", after).data["result"])


@pytest.mark.requirement("runs.outcome.input-required", "inputs.block")
@pytest.mark.parametrize("by", ["ask", "confirm"])
def test_under_block_the_run_ends_blocked_and_the_rest_of_the_batch_is_not_run(site: Site, by: str) -> None:
    site.agent(tools={"policy": {"confirm": ["Bash:touch *"]}})
    asking = ask() if by == "ask" else bash("touch asked", "ask_1")
    site.script(calls(bash("touch before", "b"), asking, bash("echo x > after", "c")), {"content": "never"})
    if by == "confirm":
        site.script(calls(bash("echo x > before", "b"), asking, bash("echo x > after", "c")), {"content": "never"})
    else:
        site.agent()
    server = site.launch()
    run = server.run("go")
    assert (run.state, run.outcome, run.cancel_requested) == ("persisted", "blocked", False)
    assert run.error is not None
    assert (run.error.code, run.error.retryable) == ("input_required", False)
    assert "input.required" not in server.types()
    finished = [event.data for event in server.events() if event.type == "tool.finished"]
    assert [data["status"] for data in finished] == ["ok", "error", "error"]
    messages = server.client.messages().messages
    assert [message.tool_call_id for message in messages if message.role == "tool"] == ["b", "ask_1", "c"]
    assert (site.work / "before").exists()
    assert not (site.work / "asked").exists()
    assert not (site.work / "after").exists()
    assert run.stats.tool_errors == 2


@pytest.mark.requirement("inputs.wait", "inputs.answers", "events.input.required", "events.input.resolved")
@pytest.mark.parametrize(("answer", "seen"), [("blue", "blue"), ("1", "red"), ("9", "9"), ("dark green", "dark green")])
def test_a_question_takes_a_label_a_number_or_free_text(site: Site, answer: str, seen: str) -> None:
    site.script(calls(ask()), {"content": "so it is {{last}}"})
    server = site.launch()
    run, question = pending(server)
    data = question.data
    assert (data["kind"], data["question"], data["multi_select"]) == ("ask", "Which colour?", False)
    assert data["options"] == [
        {"label": "red", "description": "warm"},
        {"label": "blue", "description": "cold"},
    ]
    server.client.answer(run.id, data["input_id"], answer=answer)
    done = server.wait(run.id)
    assert done.outcome == "completed"
    resolved = server.event("input.resolved")
    assert resolved.data == {"input_id": data["input_id"], "answer": seen}
    assert seen in result(server)
    with pytest.raises(NotPending):
        server.client.answer(run.id, data["input_id"], answer="red")


def test_inputs_that_do_not_exist_or_do_not_fit_are_refused(site: Site) -> None:
    site.script(calls(ask()), {"content": "ok"})
    server = site.launch()
    run, question = pending(server)
    input_id = question.data["input_id"]
    with pytest.raises(NotFound):
        server.client.answer(run.id, "inp_unknown", answer="red")
    with pytest.raises(NotFound):
        server.client.answer("run_unknown", input_id, answer="red")
    with pytest.raises(BadRequest):
        server.client.decide(run.id, input_id, action="allow")
    server.client.answer(run.id, input_id, answer="red")
    assert server.wait(run.id).outcome == "completed"


@pytest.mark.requirement("inputs.wait", "events.input.required")
@pytest.mark.parametrize(("action", "ran"), [("allow", True), ("allow_session", True), ("deny", False)])
def test_an_approval_is_allowed_or_denied(site: Site, action: Any, ran: bool) -> None:
    site.agent(tools={"policy": {"confirm": ["Bash:touch *"]}})
    site.script(calls(bash("touch made", "a")), {"content": "ok"}, calls(bash("touch other", "b")), {"content": "ok"})
    server = site.launch()
    run, question = pending(server)
    assert (question.data["kind"], question.data["tool"], question.data["detail"]) == ("confirm", "Bash", "touch made")
    assert "tool.started" not in server.types()
    with pytest.raises(BadRequest):
        server.client.answer(run.id, question.data["input_id"], answer="allow")
    server.client.decide(run.id, question.data["input_id"], action=action)
    assert server.wait(run.id).outcome == "completed"
    assert server.event("input.resolved").data["answer"] == action
    assert (site.work / "made").exists() is ran
    if action == "allow_session":
        assert server.run("again", "r2").outcome == "completed"
        server.stop()
        site.script(calls(bash("touch third")), {"content": "ok"})
        server = site.launch(server.session_id)
        assert server.run("and later", "r3").outcome == "completed"
        assert (site.work / "third").exists()
    else:
        assert server.run("again", "r2").outcome == "blocked"
        assert not (site.work / "other").exists()


def test_a_cancel_dismisses_a_question_and_denies_an_approval(site: Site) -> None:
    site.agent(tools={"policy": {"confirm": ["Bash:*"]}})
    site.script(calls(ask()), calls(bash("touch made")))
    server = site.launch()
    for number, answer in ((1, None), (2, "deny")):
        run, question = pending(server, request_id=f"r{number}")
        server.client.cancel(run.id)
        assert server.wait(run.id).outcome == "cancelled"
        resolved = server.event("input.resolved", question.seq)
        assert resolved.data == {"input_id": question.data["input_id"], "answer": answer}
        with pytest.raises(NotPending):
            server.client.decide(run.id, question.data["input_id"], action="allow") if answer else server.client.answer(
                run.id, question.data["input_id"], answer="red"
            )
    assert not (site.work / "made").exists()


@pytest.mark.requirement("serve.stop.approvals-denied")
def test_a_shutdown_denies_what_is_pending(site: Site) -> None:
    site.agent(tools={"policy": {"confirm": ["Bash:*"]}})
    site.script(calls(bash("touch made")))
    server = site.launch()
    run, question = pending(server)
    assert server.stop() == 0
    again = site.launch(server.session_id)
    done = again.client.run(run.id)
    assert done.error is not None
    assert (done.state, done.outcome, done.error.details) == ("persisted", "cancelled", {"reason": "shutdown"})
    assert again.event("input.resolved").data == {"input_id": question.data["input_id"], "answer": "deny"}
    assert not (site.work / "made").exists()


@pytest.mark.requirement("runs.state-machine.lost")
def test_a_killed_server_leaves_no_pending_input_behind(site: Site) -> None:
    site.script(calls(ask()))
    server = site.launch()
    run, question = pending(server)
    server.kill()
    again = site.launch(server.session_id)
    done = again.client.run(run.id)
    assert done.error is not None
    assert (done.state, done.outcome, done.error.code) == ("lost", None, "server_lost")
    kinds = again.types(question.seq)
    assert kinds == ["server.started", "input.resolved", "run.lost", "session.persisted"]
    assert again.event("input.resolved").data["answer"] is None
    with pytest.raises(NotPending):
        again.client.answer(run.id, question.data["input_id"], answer="red")
