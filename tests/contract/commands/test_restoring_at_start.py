"""What a server restores of an earlier one's commands, and the start-up errors when it cannot."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from aura_automation import ResumeFailed
from tests.contract.commands.conftest import Typist
from tests.support.serving import Site, bash, calls


class _Props(BaseHTTPRequestHandler):
    """Answers /props of llama.cpp with the server's present status."""

    def do_GET(self) -> None:
        status: int = self.server.status  # type: ignore[attr-defined]
        ok = b'{"default_generation_settings":{"n_ctx":4096}}'
        body = ok if status == 200 else b'{"error":{"message":"the engine is not running"}}'
        self.server.asked += 1  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def llama() -> Iterator[Any]:
    """A model server that only knows its metadata; `status` is what it answers, `asked` how often it was asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Props)
    server.status, server.asked = 200, 0  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def refused(site: Site, *flags: str) -> dict[str, Any]:
    code, ready, _ = site.serve(flags=flags)
    assert code == 1
    assert ready is not None
    error = ready["error"]
    assert isinstance(error, dict)
    return error


def test_agent_model_and_policies_survive_a_restart(typist: Typist, site: Site) -> None:
    server = typist.launch()
    typist.ok("/agent helper")
    typist.ok("/model scripted")
    typist.ok("/set think=high readbefore.write=off auto=on done=on")
    server.stop()
    again = typist.launch(server.session_id)
    session = again.client.session()
    assert (session.status.agent, session.status.model) == ("Helper", "scripted")
    assert session.meta["think"] == "high"
    assert session.meta["read_before_policy"] == {"Write": False}
    assert typist.ok("/set").splitlines() == [
        "agent=Helper",
        "auto=off",
        "context=131072",
        "done=off",
        "model=script/scripted",
        "readbefore.write=off",
        "think=high",
    ]
    saved = again.client.session().session.revision
    assert saved == site.store.show(server.session_id).revision


def test_approvals_survive_a_restart(typist: Typist, site: Site) -> None:
    site.agent(tools={"policy": {"confirm": ["Bash"]}})
    site.script(calls(bash("echo one")), {"content": "x"}, models=["scripted", "second"])
    server = typist.launch()
    run = server.client.submit("r1", prompt="go", on_input="wait")
    asked = server.event("input.required")
    server.client.decide(run.id, asked.data["input_id"], action="allow_session")
    server.wait(run.id)
    assert "approved: Bash:echo*" in typist.ok("/policy")
    server.stop()
    typist.launch(server.session_id)
    assert "approved: Bash:echo*" in typist.ok("/policy")


@pytest.mark.requirement("serve.failure.resume-failed")
def test_a_stored_agent_that_is_gone_fails_the_start_unless_another_is_named(typist: Typist, site: Site) -> None:
    server = typist.launch()
    typist.ok("/agent helper")
    server.stop()
    (site.home / "config/agents/helper.md").unlink()
    with pytest.raises(ResumeFailed):
        site.launch(server.session_id)
    assert refused(site, "--resume", server.session_id)["code"] == "resume_failed"
    again = typist.launch(server.session_id, "--agent", "main")
    assert again.client.session().meta["agent"] == "main"


@pytest.mark.requirement("serve.no-early-contact")
def test_a_restored_model_is_asked_for_and_only_then(typist: Typist, site: Site, llama: Any) -> None:
    port = llama.server_address[1]
    site.write("config/providers/llama.yaml", f"llama: {{type: llamacpp, url: 'http://127.0.0.1:{port}'}}\n")
    server = typist.launch()
    assert llama.asked == 0
    assert typist.ok("/model llama/qwen") == "model llama/qwen, 4096 tokens of context"
    server.stop()
    asked = llama.asked
    typist.launch(server.session_id).stop()
    assert llama.asked == asked + 1
    typist.launch(server.session_id, "--agent", "main").stop()
    assert llama.asked == asked + 1
    typist.launch(server.session_id).stop()
    assert llama.asked == asked + 1


@pytest.mark.requirement("serve.failure.provider", "runs.provider.native-endpoints")
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (503, "provider_server", True),
        (429, "provider_rate_limit", True),
        (401, "provider_auth", False),
        (404, "provider_model_unavailable", False),
    ],
)
def test_a_provider_that_is_away_at_a_restore_has_its_own_start_up_code(
    typist: Typist, site: Site, llama: Any, status: int, code: str, retryable: bool
) -> None:
    port = llama.server_address[1]
    site.write("config/providers/llama.yaml", f"llama: {{type: llamacpp, url: 'http://127.0.0.1:{port}'}}\n")
    server = typist.launch()
    typist.ok("/model llama/qwen")
    llama.status = status
    message = typist.fails("/model llama/other")
    assert message == "the engine is not running"
    server.stop()
    error = refused(site, "--resume", server.session_id)
    assert (error["code"], error["retryable"], error["message"]) == (code, retryable, "the engine is not running")
    assert (error["details"]["status"], error["details"]["provider"]) == (status, "llamacpp")
    llama.status = 200
    typist.launch(server.session_id)
    assert typist.server.client.session().status.model == "qwen"


@pytest.mark.requirement("serve.failure.provider", "runs.provider.native-endpoints")
def test_an_unreachable_provider_is_worth_another_try(typist: Typist, site: Site, llama: Any) -> None:
    port = llama.server_address[1]
    site.write("config/providers/llama.yaml", f"llama: {{type: llamacpp, url: 'http://127.0.0.1:{port}'}}\n")
    server = typist.launch()
    typist.ok("/model llama/qwen")
    server.stop()
    site.write("config/providers/llama.yaml", "llama: {type: llamacpp, url: 'http://127.0.0.1:1'}\n")
    error = refused(site, "--resume", server.session_id)
    assert (error["code"], error["retryable"]) == ("provider_network", True)
    other = typist.launch(server.session_id, "--provider", "script", "--model", "second")
    assert other.client.session().status.model == "second"


def test_what_else_cannot_be_restored_is_a_notice(typist: Typist, site: Site) -> None:
    site.write("config/providers/more.yaml", "more: {type: script, file: script.yaml}\n")
    server = typist.launch()
    typist.ok("/model more/second")
    server.stop()
    (site.home / "config/providers/more.yaml").unlink()
    again = typist.launch(server.session_id)
    notices = [event.data for event in again.events(server_end(again)) if event.type == "notice"]
    assert [(notice["level"], notice["source"]) for notice in notices] == [("warning", "resume")]
    assert "no provider named" in notices[0]["message"]
    assert again.client.session().status.model == "scripted"


def server_end(server: Any) -> int:
    """Return the seq before the events of the server's own start."""
    starts = [event.seq for event in server.events() if event.type == "server.started"]
    return int(starts[-1]) - 1
