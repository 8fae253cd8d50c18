"""The gateway as a process: what it tells of its agents, who may ask, and how it ends (streaming-guide.md)."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.gateway import Answer, Gateway, launch_gateway, read_until
from tests.support.serving import WAIT_S, Site, bash, calls, until

Launch = Callable[..., Gateway]
KEY = "a-key-that-nobody-guesses"
SECRETS = ("sekrit-path", "sekrit-query", "sekrit-header", "sekrit-arg", "sekrit-env")
MCP = """
[mcp.servers.logs]
transport = "http_streamable"
url = "https://logs.example.com:8443/sekrit-path?token=sekrit-query"
description = "Search logs."
headers = { authorization = "Bearer sekrit-header" }
[mcp.servers.fs]
transport = "stdio"
cmd = ["/opt/sekrit-path/fs-server", "--key", "sekrit-arg"]
env = { TOKEN = "sekrit-env" }
"""


def agent(name: str, more: str = "", root: str = "") -> str:
    return f"""
[agent]
name = "{name}"
system_prompt = "Help."
{more}
[agent.llm]
provider = "script"
file = "script.yaml"
model = "scripted"
{root}
"""


def test_information_is_free_of_credentials(site: Site, launch: Launch) -> None:
    site.write("toml/one.toml", agent("one", 'alias = "front"\ndescription = "The first."', MCP))
    site.write("toml/two.toml", agent("two", "hidden = true"))
    site.write("toml/script.yaml", "turns: [{content: ok, repeat: forever}]")
    gateway = launch("--agents", str(site.home / "toml"))
    info = gateway.get("/aura/info")
    front = next(item for item in info.json["agents"] if item["id"] == "front")
    assert front == {
        "id": "front",
        "description": "The first.",
        "model": "scripted",
        "mcp_servers": {
            "fs": {"transport": "stdio", "command": "fs-server"},
            "logs": {
                "transport": "http_streamable",
                "url": "https://logs.example.com:8443",
                "description": "Search logs.",
            },
        },
    }
    assert [item["id"] for item in info.json["agents"]] == ["front", "main"]
    models = gateway.get("/v1/models").json
    assert [(item["id"], item["object"], item["owned_by"]) for item in models["data"]] == [
        ("front", "model", "script"),
        ("main", "model", "script"),
    ]
    assert gateway.chat("hi", model="two").status == 200  # hidden ones answer to their name
    said = info.body.decode() + json.dumps(models) + gateway.log_text()
    assert [secret for secret in SECRETS if secret in said] == []


def test_health_is_open_and_says_how_the_store_is(launch: Launch) -> None:
    gateway = launch(key=KEY)
    wrong = {"Authorization": "Bearer nobody"}
    health = gateway.get("/health", **wrong)
    assert (health.status, health.json["status"], health.json["session_store"]["ping"]["ok"]) == (200, "healthy", True)


@pytest.mark.parametrize("header", ["Bearer nobody", "Basic x", "Bearer", ""])
def test_everything_else_wants_the_key(launch: Launch, header: str) -> None:
    gateway = launch(key=KEY)
    for path in ("/v1/models", "/aura/info", "/v1/nothing"):
        refused = gateway.get(path, Authorization=header)
        assert (refused.status, refused.error["type"]) == (401, "authentication_error")
    assert gateway.get("/v1/models").status == 200
    assert KEY not in gateway.log_text()


def test_the_key_is_in_no_childs_environment(site: Site, launch: Launch) -> None:
    site.script(calls(bash("env; tr '\\0' '\\n' < /proc/$PPID/environ")), {"content": "{{ last }}"})
    gateway = launch(key=KEY)
    shown = gateway.chat("go").json["choices"][0]["message"]["content"]
    assert "PATH=" in shown
    assert KEY not in shown


def test_a_host_that_others_reach_needs_a_key(site: Site) -> None:
    process = site.spawn("webserver", "--host", "0.0.0.0", "--port", "0")
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert b"--insecure" in err


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (("--port", "many"), {}, "--port"),
        ((), {"TOOL_RESULT_MODE": "loud"}, "TOOL_RESULT_MODE"),
        (("--default-agent", "nobody"), {}, "nobody"),
        (("--agents", "missing.toml"), {}, "missing.toml"),
    ],
)
def test_a_bad_start_says_why_also_in_the_ready_file(
    site: Site, words: tuple[str, ...], environment: dict[str, str], said: str
) -> None:
    ready = site.root / "ready.json"
    process = site.spawn("webserver", "--ready-file", str(ready), *words, environment=environment)
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert said in err.decode()
    assert json.loads(ready.read_bytes())["error"]["code"] in ("config_invalid", "startup_failed")


def test_a_dead_gateways_runs_are_lost_once_and_the_session_goes_on(site: Site, launch: Launch) -> None:
    site.script({"when": {"last": "slow"}, "content": "slow", "delay_ms": 60_000}, {"content": "here"})
    gateway = launch()
    _, response = gateway.open_chat("slow", metadata={"chat_session_id": "s1"})
    gateway.process.kill()
    gateway.process.wait(WAIT_S)
    response.close()
    again = launch()
    assert site.rows("SELECT state FROM run") == [("lost",)]
    assert again.chat("go on", headers={"X-Chat-Session-Id": "s1"}).status == 200
    assert site.rows("SELECT count(*) FROM event WHERE kind = 'run.lost'") == [(1,)]


# --- the end ---------------------------------------------------------------------------------------------------------


def ended(gateway: Gateway) -> dict[str, str]:
    """Return the fields of the last log line."""
    (line,) = [line for line in gateway.log_text().splitlines() if "shutdown complete" in line]
    return dict(re.findall(r"(\w+)=(\w+)", line))


def read_rest(response: Any, into: list[bytes]) -> threading.Thread:
    """Read a stream to its end on a thread of its own."""
    thread = threading.Thread(target=lambda: into.append(response.read()))
    thread.start()
    return thread


def test_in_the_grace_period_new_requests_are_refused_and_streams_go_on(site: Site, launch: Launch) -> None:
    site.script(calls(bash("until [ -e go ]; do sleep 0.05; done"), content="Wait."), {"content": "Done."})
    gateway = launch()
    _, response = gateway.open_chat("go")
    read_until(response, b"Wait.")
    gateway.process.send_signal(signal.SIGTERM)
    until(lambda: gateway.get("/health").status == 503, "the gate")
    refused = gateway.chat("hi")
    assert (refused.status, refused.error["type"]) == (503, "service_unavailable")
    assert refused.error["message"] == "Server is shutting down"
    (site.work / "go").touch()
    rest = Answer(200, {}, response.read())
    assert (rest.text, rest.frames[-1][1]) == ("\n\nDone.", "[DONE]")
    assert gateway.process.wait(WAIT_S) == 0
    assert ended(gateway) == {"clean_shutdown": "true", "unaborted_tasks": "false"}
    assert site.rows("SELECT outcome FROM run") == [("completed",)]


def test_after_the_grace_period_streams_are_drained(site: Site, launch: Launch) -> None:
    site.script(calls(bash("sleep 60"), content="Wait."))
    gateway = launch("--shutdown-timeout-secs", "1")
    _, response = gateway.open_chat("go")
    read_until(response, b"Wait.")
    gateway.process.send_signal(signal.SIGTERM)
    rest = Answer(200, {}, response.read())
    assert rest.frames[-1][1] == "[DONE]"
    assert rest.frames[-2][1]["choices"][0]["finish_reason"] == "stop"
    assert gateway.process.wait(WAIT_S) == 0
    assert ended(gateway) == {"clean_shutdown": "true", "unaborted_tasks": "false"}
    reasons = site.rows("SELECT state, outcome, json_extract(error, '$.details.reason') FROM run")
    assert reasons == [("persisted", "cancelled", "shutdown")]
    until(lambda: not site.strays(), "the end of the command")


def test_a_second_signal_aborts_at_once(site: Site, launch: Launch) -> None:
    site.script(calls(bash("trap '' TERM; touch up; while :; do sleep 0.1; done")))
    gateway = launch("--shutdown-timeout-secs", "60")
    _, response = gateway.open_chat("go")
    until((site.work / "up").exists, "the command's start")
    gateway.process.send_signal(signal.SIGTERM)
    until(lambda: gateway.get("/health").status == 503, "the gate")
    gateway.process.send_signal(signal.SIGTERM)
    assert gateway.process.wait(WAIT_S) in (0, 1)
    assert "Stream shutdown grace period expired, aborting stragglers" in gateway.log_text()
    assert ended(gateway)["clean_shutdown"] == "false"
    response.close()
    until(lambda: not site.strays(), "the end of the command")
    # What was not settled in time is, once the next one starts.
    launch_gateway(site)
    ((state,),) = site.rows("SELECT state FROM run")
    assert state in ("lost", "persisted")
