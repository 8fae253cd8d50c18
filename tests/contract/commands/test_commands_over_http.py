"""Slash commands as a controller sees them: events in order, what is saved, and what is refused before a run exists."""

from __future__ import annotations

import json

import pytest

from aura_automation import BadRequest, Busy, RequestConflict
from tests.contract.commands.conftest import Typist
from tests.support.serving import Site, bash, calls, until

EVERY = [
    ("/help", "/drop [n|all]"),
    ("/agent helper", "agent Helper, model script/second"),
    ("/model scripted", "model script/scripted, 131072 tokens"),
    ("/think high", "think: high"),
    ("/auto on", "auto: on"),
    ("/done on", "done: on"),
    ("/set think=low auto=off", "think=low"),
    ("/readbefore write off", "write: off"),
    ("/stats", "messages: 2"),
    ("/ctx", "window: 131072 tokens"),
    ("/tools", "Done"),
    ("/tools debug", "line_start"),
    ("/policy", "confirm: -"),
    ("/todo", "There are no todos."),
    ("/mcp list", "no MCP servers"),
    ("/save A title", "saved as 'A title'"),
    ("/export jsonl", '"role":"user"'),
    ("/export notes.md", "wrote notes.md"),
    ("/reload", "agents: 2"),
    ("/drop 1", "messages dropped: 1, left: 1"),
]
ORDER = ["run.accepted", "command.result", "run.finished", "session.persisted", "run.persisted"]


@pytest.mark.requirement("store.checkpoints.command", "http.command.known", "events.command.result")
def test_every_command_answers_with_one_result_and_a_saved_session(typist: Typist) -> None:
    server = typist.launch()
    server.run("hello")
    for command, expected in EVERY:
        after = server.client.server().last_seq
        run = typist.run(command)
        events = server.events(after)
        assert (run.kind, run.state, run.outcome, run.started_at) == ("command", "persisted", "completed", None), (
            command
        )
        assert run.result is not None
        assert expected in run.result.content, command
        assert [event.type for event in events if event.type != "status"] == ORDER, command
        assert {event.run_id for event in events} == {run.id}
        result, saved = next(event for event in events if event.type == "command.result"), events[-2]
        assert result.data == {"command": command, "message": run.result.content, "error": None}
        assert saved.data["reason"] == "command"
        assert run.persisted is not None
        assert run.persisted.revision == saved.data["revision"]
        assert run.stats.iterations == 0
    assert (typist.site.work / "notes.md").read_text().startswith("# A title")
    assert typist.site.store.show(server.session_id).title == "A title"


def test_a_report_changes_nothing_and_a_switch_makes_a_new_revision(typist: Typist) -> None:
    typist.launch()
    start = typist.server.client.session().session.revision
    typist.ok("/stats")
    saved = typist.server.events()[-2]
    assert (saved.data["changed"], saved.data["revision"]) == (False, start)
    typist.ok("/agent helper")
    session = typist.server.client.session()
    assert session.session.revision != start
    assert (session.meta["agent"], session.meta["model"]) == ("Helper", "second")
    assert (session.status.agent, session.status.model) == ("Helper", "second")
    document = json.loads(
        typist.site.spawn("session", "export", typist.server.session_id, "--output", "-").communicate()[0]
    )
    assert document["system"] == "Help."


def test_the_next_prompt_is_worked_on_by_the_new_agent(typist: Typist) -> None:
    server = typist.launch()
    server.run("first")
    typist.ok("/agent helper")
    after = server.client.server().last_seq
    run = server.run("again", "r2")
    assert run.result is not None
    assert run.result.content == "You said: again"
    agents = {event.data["agent"] for event in server.events(after) if event.type == "status"}
    assert agents == {"Helper"}
    assert server.client.messages().total == 4


@pytest.mark.requirement("runs.outcome.command-failed", "events.command.result")
def test_a_command_that_fails_says_why_and_is_saved(typist: Typist) -> None:
    server = typist.launch()
    after = server.client.server().last_seq
    message = typist.fails("/model nothing")
    assert "model 'nothing' not found" in message
    events = server.events(after)
    assert [event.type for event in events] == ORDER
    assert events[1].data == {"command": "/model nothing", "message": "", "error": message}
    assert server.client.session().meta["model"] == "scripted"


@pytest.mark.requirement("process.no-switching")
def test_refused_commands_make_no_run(typist: Typist) -> None:
    server = typist.launch()
    before = server.client.server().last_seq
    rejected = ("/resume", "/load x", "/fork", "/NAME x", "/clear", "/new", "/exit", "/quit")
    for command in (
        *rejected,
        "/mode plan",
        "/compact",
        "/until x",
        "/assert x",
        "/nothing",
        "/",
        "help",
        " /help",
        "",
    ):
        with pytest.raises(BadRequest):
            server.client.submit("r1", command=command)
    assert server.client.find_run("r1") is None
    assert server.client.server().last_seq == before


def test_a_command_under_the_same_request_id_runs_once(typist: Typist) -> None:
    server = typist.launch()
    server.run("hello")
    first = server.wait(server.client.submit("c1", command="/drop").id)
    assert server.client.submit("c1", command="/drop") == first
    assert server.client.messages().total == 1
    with pytest.raises(RequestConflict):
        server.client.submit("c1", command="/drop all")
    with pytest.raises(RequestConflict):
        server.client.submit("c1", prompt="/drop")


def test_a_command_waits_for_no_run(typist: Typist, site: Site) -> None:
    site.script({"content": "late", "delay_ms": 60_000})
    server = typist.launch()
    run = server.client.submit("r1", prompt="go")
    with pytest.raises(Busy) as busy:
        typist.submit("/stats")
    assert busy.value.details["run_id"] == run.id
    server.client.cancel(run.id)
    server.wait(run.id)
    typist.ok("/stats")


def test_a_custom_command_is_a_run_of_the_model(typist: Typist, site: Site) -> None:
    site.script(calls(bash("echo seen")), {"content": "You said: {{ user }}"})
    server = typist.launch()
    after = server.client.server().last_seq
    run = typist.run("/review 'a b.py'")
    assert (run.kind, run.outcome, run.state, run.stats.iterations) == ("command", "completed", "persisted", 2)
    assert run.started_at is not None
    assert run.result is not None
    assert run.result.content == "You said: Review a b.py."
    events = [event for event in server.events(after) if event.type != "status"]
    assert [event.type for event in events] == [
        "run.accepted",
        "command.result",
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
    assert events[1].data == {"command": "/review 'a b.py'", "message": "", "error": None}
    assert [event.data["reason"] for event in events if event.type == "session.persisted"] == ["checkpoint", "command"]
    assert server.client.messages().messages[0].content == "Review a b.py."


def test_a_custom_command_can_be_cancelled(typist: Typist, site: Site) -> None:
    site.script({"content": "late", "delay_ms": 60_000})
    server = typist.launch()
    run = typist.submit("/review x")
    until(lambda: server.client.run(run.id).state == "running", "the run has started")
    server.client.cancel(run.id)
    done = server.wait(run.id)
    assert (done.outcome, done.error and done.error.code, done.cancel_requested) == ("cancelled", "cancelled", True)
    assert done.error is not None
    assert done.error.details["reason"] == "request"
    assert server.client.messages().total == 1


def test_dropped_messages_stay_in_older_revisions(typist: Typist, site: Site) -> None:
    server = typist.launch()
    before = server.run("remember this")
    assert before.persisted is not None
    typist.ok("/drop all")
    assert server.client.messages().messages == ()
    again = server.run("after", "r2")
    assert again.result is not None
    assert again.result.content == "You said: after"
    words = ("session", "export", server.session_id, "--output", "-")
    old = site.spawn(*words, "--revision", before.persisted.revision).communicate()[0]
    assert json.loads(old)["messages"][0]["Content"] == "remember this"
    server.stop()
    contents = [message.content for message in site.launch(server.session_id).client.messages().messages]
    assert contents == ["after", "You said: after"]


def test_reload_takes_new_files_and_keeps_the_old_configuration_when_they_are_bad(typist: Typist, site: Site) -> None:
    typist.launch()
    path = site.write("config/commands/extra.md", "---\nname: extra\nhint: x\n---\nDo it.\n")
    with pytest.raises(BadRequest):
        typist.submit("/extra")
    assert "extra.md:3: hint" in typist.fails("/reload")
    path.write_text("---\nname: extra\n---\nDo it.\n")
    assert "custom commands: 2" in typist.ok("/reload")
    assert typist.ok("/extra") == "You said: Do it."


def test_a_token_that_a_reload_makes_one_is_kept_from_commands(site: Site) -> None:
    look = bash("echo [$MY_KEY]; tr '\\0' '\\n' < /proc/$PPID/environ | grep -c MY_KEY=hush")
    site.script(calls(look), {"content": "{{ last }}"}, calls(look), {"content": "{{ last }}"})
    server = site.launch(environment={"MY_KEY": "hush-hush"})
    first = server.run("look")
    assert first.result is not None
    assert "[hush-hush]" in first.result.content
    site.write("config/providers/more.yaml", "more: {type: openai, token: $MY_KEY}\n")
    server.wait(server.client.submit("c1", command="/reload").id)
    second = server.run("look", "r2")
    assert second.result is not None
    assert second.result.content.splitlines()[:2] == ["[]", "0"]


def test_a_command_whose_name_is_taken_is_a_notice_at_the_start(typist: Typist, site: Site) -> None:
    for name in ("stats", "clear", "mode", "rb"):
        site.write(f"config/commands/{name}.md", f"---\nname: {name}\n---\nnever\n")
    server = typist.launch()
    notices = [event.data["message"] for event in server.events() if event.type == "notice"]
    assert len(notices) == 4
    assert all("is a command already" in notice for notice in notices)
    assert typist.ok("/stats").startswith("messages: 0")
