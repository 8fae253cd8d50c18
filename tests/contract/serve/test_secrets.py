"""Where the server's token and the provider's tokens are never found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.serving import TOKEN, Site, bash, calls

PROVIDER_TOKEN = "provider-token-provider-token"


def proc(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


@pytest.mark.requirement("serve.token.hidden")
def test_tokens_are_in_no_environment_no_argument_no_database_and_no_log(site: Site) -> None:
    site.write(
        "config/providers/other.yaml", "other: {type: llamacpp, url: 'http://127.0.0.1:1', token: '${SECRET}'}\n"
    )
    look = "env; cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'; echo looked"
    site.script(calls(bash(look)), {"content": "done"})
    server = site.launch(environment={"SECRET": PROVIDER_TOKEN, "PLAIN": "visible"}, flags=["--debug"])
    run = server.run("go")
    assert run.outcome == "completed"
    result = str(server.event("tool.finished").data["result"])
    assert "PLAIN=visible" in result
    assert "looked" in result
    for place in ("environ", "cmdline"):
        assert TOKEN.encode() not in proc(server.pid, place)
        assert PROVIDER_TOKEN.encode() not in proc(server.pid, place)
    assert b"PLAIN=visible" in proc(server.pid, "environ")
    server.stop()
    texts = [result.encode(), server.log.read_bytes(), site.ready_file.read_bytes()]
    texts += [path.read_bytes() for path in site.sessions.rglob("*") if path.is_file()]
    assert len(texts) > 4
    for secret in (TOKEN, PROVIDER_TOKEN):
        assert not any(secret.encode() in text for text in texts)


def test_a_resumed_server_hides_its_token_from_the_first_command_on(site: Site) -> None:
    site.script(calls(bash("tr '\\0' '\\n' < /proc/$PPID/environ; env")), {"content": "done", "repeat": "forever"})
    first = site.launch()
    first.stop()
    server = site.launch(first.session_id)
    server.run("go")
    result = str(server.event("tool.finished").data["result"])
    assert TOKEN not in result
    assert "PATH=" in result
