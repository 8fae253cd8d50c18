"""Single statements of the contract that the other tests leave: where prompts are not, what a fork begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from aura.cli.serve import command
from tests.support.serving import Site, bash, calls, until


@pytest.mark.requirement("process.prompts-in-bodies")
def test_a_prompt_is_in_no_process_arguments(site: Site) -> None:
    site.script(calls(bash("echo up > up; until [ -e go ]; do sleep 0.01; done")), {"content": "done"})
    server = site.launch()
    run = server.client.submit("r1", prompt="a-prompt-like-no-other")
    until(lambda: site.lines("up"), "the command's start")
    pids = [server.pid, *site.strays()]
    arguments = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids]
    (site.work / "go").touch()
    assert server.wait(run.id).outcome == "completed"
    assert any(b"until [ -e go ]" in text for text in arguments), "the command was looked at too"
    assert not any(b"a-prompt-like-no-other" in text for text in arguments)
    assert server.client.messages().messages[0].content == "a-prompt-like-no-other"


@pytest.mark.requirement("serve.output.transcript", "serve.output.truncated")
def test_a_served_sessions_transcript_has_the_thinking_and_is_begun_anew_by_each_process(site: Site) -> None:
    site.script({"content": "Done.", "thinking": "I wonder."})
    path = site.root / "transcript.txt"
    path.write_text("of an earlier process")
    server = site.launch(flags=["--output", str(path)])
    server.run("please")
    assert server.stop() == 0
    text = path.read_text()
    assert "earlier process" not in text
    assert text.index("please") < text.index("I wonder.") < text.index("Done.")
    assert "I wonder." not in str(site.rows("SELECT data FROM event"))
    assert site.launch(server.session_id, flags=["--output", str(path)]).stop() == 0
    assert "I wonder." not in path.read_text()


@pytest.mark.requirement("serve.stop.settle-bound")
def test_a_run_has_sixty_seconds_to_settle() -> None:
    assert [option.default for option in command.params if option.name == "settle_ms"] == [60_000]


@pytest.mark.requirement("serve.stop.questions-dismissed")
def test_a_shutdown_dismisses_a_pending_question(site: Site) -> None:
    site.script(calls({"id": "ask_1", "name": "Ask", "arguments": {"question": "Which?"}}))
    server = site.launch()
    run = server.client.submit("r1", prompt="go", on_input="wait")
    question = server.event("input.required")
    assert server.stop() == 0
    again = site.launch(server.session_id)
    done = again.client.run(run.id)
    assert done.error is not None
    assert (done.state, done.outcome, done.error.details) == ("persisted", "cancelled", {"reason": "shutdown"})
    assert again.event("input.resolved").data == {"input_id": question.data["input_id"], "answer": None}


@pytest.mark.requirement("runs.recovery")
def test_a_new_request_goes_on_after_a_lost_run(site: Site) -> None:
    site.script({"content": "slow", "delay_ms": 60_000})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    server.event("run.started")
    server.kill()
    site.script({"content": "there"})
    again = site.launch(server.session_id)
    assert again.client.submit("r1", prompt="go").state == "lost"
    assert again.run("go on", "r2").outcome == "completed"
    assert again.client.run(run.id).state == "lost"
    assert again.types().count("run.started") == 2


@pytest.mark.requirement("journal.forks")
def test_a_forked_sessions_journal_begins_anew(site: Site) -> None:
    server = site.launch()
    server.run("hello")
    assert server.stop() == 0
    site.store.fork(server.session_id, "child")
    child = site.launch("child")
    events = child.events()
    assert [(event.seq, event.type) for event in events] == [(1, "server.started"), (2, "session.persisted")]
    assert {event.session_id for event in events} == {"child"}
    assert child.client.messages().total == 2
