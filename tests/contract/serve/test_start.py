"""Starting: the events and the ready file of a good start, the codes of a bad one."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
from pathlib import Path

import pytest

import aura_automation as client
from tests.support.serving import TOKEN, Site, bash, calls

IS_ROOT = os.geteuid() == 0


def refused(site: Site, code: str, *words: str, token: str | None = TOKEN, flags: tuple[str, ...] = ()) -> dict:
    """Start a server that must fail with `code`, said in one line and in the ready file; return its error."""
    exit_code, document, err = site.serve(*words, token=token, flags=flags)
    assert (exit_code, list(document or {})) == (1, ["api", "error"]), err
    assert document is not None
    assert document["api"] == 1
    error = document["error"]
    assert list(error) == ["code", "message", "retryable", "details"]
    assert (error["code"], error["retryable"]) == (code, False), err
    said = [line for line in err.splitlines() if line.startswith("error: ")]
    assert said == [f"error: {error['message']}"]
    assert "Traceback" not in err
    assert TOKEN not in err
    return error


def make_session(site: Site, session_id: str, **more: object) -> None:
    """Import an empty session."""
    document = {
        "messages": [],
        "id": session_id,
        "title": "",
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z",
    }
    path = site.root / "document.json"
    path.write_text(json.dumps(document | more))
    site.store.import_(path)


@pytest.mark.requirement(
    "store.location",
    "serve.fresh-session",
    "serve.ready-file.content",
    "serve.ready-file.mode",
    "serve.ready-file.after-session",
    "events.server.started",
)
def test_a_fresh_session_is_saved_before_the_ready_file_appears(site: Site) -> None:
    server = site.launch()
    ready = site.read_ready()
    assert ready is not None
    assert list(ready) == ["api", "url", "pid", "session_id", "aura_version", "commit", "workdir", "write_home"]
    assert (ready["api"], ready["pid"], ready["session_id"]) == (1, server.pid, server.session_id)
    assert (ready["workdir"], ready["write_home"]) == (str(site.work), str(site.home))
    assert stat.S_IMODE(site.ready_file.stat().st_mode) == 0o600
    info = server.client.server()
    assert (info.url, info.pid, info.session_id) == (ready["url"], server.pid, server.session_id)
    assert (info.commit, info.workdir, info.state) == (ready["commit"], ready["workdir"], "ready")
    started, saved = server.events()
    assert started.data == {"pid": server.pid, "version": info.aura_version, "resumed_revision": None}
    assert (saved.type, saved.data["reason"], saved.data["messages"]) == ("session.persisted", "start", 0)
    assert saved.data["revision"] == site.store.show(server.session_id).revision


@pytest.mark.requirement("journal.contiguous", "events.server.started", "events.session.persisted")
def test_a_resumed_session_goes_on_where_it_was(site: Site) -> None:
    server = site.launch()
    first = server.run("hello")
    last_seq = server.client.server().last_seq
    server.stop()
    revision = site.store.show(server.session_id).revision
    again = site.launch(server.session_id[:8])
    assert again.session_id == server.session_id
    events = again.events(last_seq)
    assert [event.type for event in events] == [
        "server.stopping",
        "session.persisted",
        "server.started",
        "session.persisted",
    ]
    assert events[2].data["resumed_revision"] == revision
    assert (events[3].data["revision"], events[3].data["changed"]) == (revision, False)
    assert again.client.messages().total == 2
    assert again.client.run(first.id) == first
    assert again.run("more", "r2").outcome == "completed"
    assert [event.seq for event in again.events()] == list(range(1, again.client.server().last_seq + 1))


@pytest.mark.requirement(
    "serve.ready-file.after-session", "runs.state-machine.lost", "runs.lost.unfinished", "events.notice.warnings"
)
def test_notices_and_lost_runs_stand_between_the_start_and_its_save(site: Site) -> None:
    site.script({"content": "slow", "delay_ms": 60_000})
    site.write("config/sandbox/on.yaml", "sandbox: {enabled: true, required: false}\n")
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    server.event("run.started")
    cursor = server.client.server().last_seq
    server.kill()
    again = site.launch(server.session_id)
    events = again.events()
    position = max(number for number, event in enumerate(events) if event.type == "server.started")
    assert events[position].seq > cursor
    assert [event.type for event in events[position:]] == ["server.started", "notice", "run.lost", "session.persisted"]
    notice, lost = events[position + 1 : position + 3]
    assert (notice.data["level"], notice.data["source"]) == ("warning", "config")
    record = again.client.submit("r1", prompt="go")
    assert record == again.client.run(run.id)
    assert (record.state, record.terminal, record.outcome, record.persist_error) == ("lost", True, None, None)
    assert record.error is not None
    assert (record.error.code, record.error.retryable) == ("server_lost", False)
    assert record.persisted is not None
    assert (record.persisted.messages, record.persisted.seq) == (0, 3)  # saved at the start, before the run
    assert (lost.data["run"]["id"], lost.data["run"]["state"]) == (run.id, "lost")


@pytest.mark.requirement("serve.ready-file.atomic")
def test_a_stale_ready_file_is_gone_before_anything_else_happens(site: Site) -> None:
    site.ready_file.write_text('{"api":1,"url":"http://127.0.0.1:1"}')
    error = refused(site, "unauthorized", token=None)
    assert "not set" in error["message"]


def test_a_ready_file_that_cannot_be_written_is_said_on_standard_error(site: Site) -> None:
    process = site.spawn(
        "serve", "--ready-file", str(site.root / "no" / "ready.json"), environment={"AURA_SERVE_TOKEN": TOKEN}
    )
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err.decode().startswith("error: the ready file")
    assert b"hint: " in err
    assert not site.sessions.exists()


@pytest.mark.requirement("serve.token.required", "serve.failure.unauthorized")
@pytest.mark.parametrize("token", [None, "", "x" * 31, "x" * 32 + "\x07", "with a space " * 5, "ünïcode" * 10])
def test_a_token_that_is_missing_short_or_unusable_is_unauthorized(site: Site, token: str | None) -> None:
    refused(site, "unauthorized", token=token)
    assert not site.sessions.exists()


@pytest.mark.requirement(
    "store.lease.exclusive", "store.frozen.resume", "serve.failure.document", "serve.failure.session"
)
def test_sessions_that_cannot_be_resumed_have_their_codes(site: Site) -> None:
    for session_id in ("task-1", "task-2"):
        make_session(site, session_id)
    make_session(site, "frozen-1", frozen=True)
    refused(site, "not_found", flags=("--resume", "nothing"))
    refused(site, "invalid_id", flags=("--resume", "../x"))
    refused(site, "session_frozen", flags=("--resume", "frozen-1"))
    ambiguous = refused(site, "not_found", flags=("--resume", "task"))
    assert ambiguous["details"]["candidates"] == ["task-1", "task-2"]
    assert len(site.store.list().sessions) == 3
    with pytest.raises(client.SessionFrozen):
        site.launch("frozen-1")
    assert site.launch("task-1").session_id == "task-1"
    locked = refused(site, "session_locked", flags=("--resume", "task-1"))
    assert "task-1" in locked["message"]


@pytest.mark.requirement("serve.failure.resume-failed")
def test_an_agent_that_is_no_longer_configured_is_resume_failed(site: Site) -> None:
    make_session(site, "task-1", meta={"agent": "gone"})
    error = refused(site, "resume_failed", flags=("--resume", "task-1"))
    assert "gone" in error["message"]
    server = site.launch("task-1", flags=["--agent", "main"])
    assert server.client.session().meta["agent"] == "main"


@pytest.mark.requirement("serve.failure.config-invalid")
def test_a_bad_configuration_is_config_invalid_and_makes_no_session(site: Site) -> None:
    for text in ("turns: [{contents: x}]", "turns: [", "turns: [{content: '{{ nothing }}'}]"):
        site.write("script.yaml", text)
        error = refused(site, "config_invalid")
        assert "script.yaml" in error["message"]
    site.script({"content": "ok"})
    refused(site, "config_invalid", flags=("--agent", "nobody"))
    refused(site, "config_invalid", flags=("--workdir", str(site.root / "nowhere")))
    site.agent(tools={"policy": {"allow": []}})
    refused(site, "config_invalid")
    assert not site.sessions.exists(), "what could not start has made nothing"


@pytest.mark.requirement("serve.failure.session")
def test_resuming_without_a_store_is_not_found_and_makes_none(site: Site) -> None:
    site.script({"content": "ok"})
    refused(site, "not_found", flags=("--resume", "task-1"))
    refused(site, "invalid_id", flags=("--resume", "../task"))
    assert not site.sessions.exists()


@pytest.mark.requirement("serve.failure.startup-failed")
def test_addresses_that_cannot_be_bound_are_startup_failures(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        error = refused(site, "startup_failed", "--bind", f"127.0.0.1:{taken.getsockname()[1]}")
        assert "cannot listen" in error["message"]
    for bind in ("127.0.0.1", "127.0.0.1:99999", ":0", "127.0.0.1:http", "256.0.0.1:0"):
        refused(site, "startup_failed", "--bind", bind)
    assert not site.sessions.exists()


@pytest.mark.requirement("serve.failure.startup-failed")
def test_a_store_that_cannot_be_used_is_a_startup_failure(site: Site) -> None:
    site.sessions.mkdir(parents=True)
    database = site.sessions / "aura.db"
    database.write_bytes(b"this is no database " * 500)
    assert "damaged" in refused(site, "startup_failed")["message"]
    database.unlink()
    site.launch().stop()
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 9999")
    connection.commit()
    connection.close()
    before = database.read_bytes()
    assert "schema 9999" in refused(site, "startup_failed")["message"]
    assert database.read_bytes() == before


def test_a_write_home_that_is_a_file_is_a_startup_failure(site: Site) -> None:
    site.sessions.write_text("in the way")
    refused(site, "startup_failed")


@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
def test_a_write_home_without_permission_is_a_startup_failure(site: Site) -> None:
    site.home.chmod(0o500)
    try:
        refused(site, "startup_failed")
    finally:
        site.home.chmod(0o700)


@pytest.mark.requirement("serve.ready-file.after-listener", "client.attach")
def test_a_server_can_be_found_again_by_its_ready_file(site: Site) -> None:
    server = site.launch()
    found = client.Server.attach(ready_file=site.ready_file, token=TOKEN)
    assert (found.pid, found.session_id) == (server.pid, server.session_id)
    with pytest.raises(client.Unauthorized):
        client.Server.attach(ready_file=site.ready_file, token=TOKEN[::-1])
    found.stop()
    assert server.wait_exit() == 0


@pytest.mark.requirement("serve.no-early-contact")
def test_the_model_is_not_contacted_before_the_first_run(site: Site, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(0)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        site.write("config/providers/script.yaml", f"script: {{type: llamacpp, url: '{url}'}}\n")
        site.launch()
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.requirement("store.checkpoints.iteration", "runs.persisted.in-flight", "runs.lost.persisted")
def test_a_session_survives_a_server_that_dies_between_tool_calls(site: Site) -> None:
    site.script(calls(bash("echo kept"), content="first"), {"content": "slow", "delay_ms": 60_000})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    saved = server.event("session.persisted", 4)
    server.kill()
    again = site.launch(server.session_id)
    lost = again.client.run(run.id)
    assert lost.persisted is not None
    assert (lost.state, lost.persisted.seq, lost.persisted.messages) == ("lost", saved.seq, 3)
    assert lost.persisted.revision == saved.data["revision"]
    assert [message.role for message in again.client.messages().messages] == ["user", "assistant", "tool"]
