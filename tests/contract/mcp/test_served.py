"""The contract's section on MCP servers, with the real program: start-up, tools in runs, cancellation, shutdown."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.odd_mcp import Odd, is_alive
from tests.support.serving import Running, Site, calls, until

SECRET = "a-very-secret-value"


def configure(site: Site, **servers: Mapping[str, Any]) -> None:
    """Write the file of MCP servers."""
    site.write("config/mcp/servers.yaml", yaml.safe_dump(dict(servers)))


def call(tool: str, call_id: str = "call_1", server: str = "odd", **arguments: Any) -> dict[str, Any]:
    """Return a scripted call of an MCP tool."""
    return {"id": call_id, "name": f"mcp__{server}__{tool}", "arguments": arguments}


def finished(server: Running) -> list[dict[str, Any]]:
    """Return the data of every tool.finished."""
    return [dict(event.data) for event in server.events() if event.type == "tool.finished"]


def inspect(server: Running) -> dict[str, Any]:
    """Return what the odd server says of its process; the script calls `inspect` first."""
    answer = json.loads(finished(server)[0]["result"])
    assert isinstance(answer, dict)
    return answer


@pytest.mark.requirement("mcp.is-error")
def test_a_run_uses_the_tools_of_a_server(site: Site, odd: Odd) -> None:
    configure(site, Odd=odd.entry())
    made = [call("echo", "c1", text="hello"), call("fail", "c2", text="broken"), call("nothing", "c3")]
    site.script(calls(*made), {"content": "done"})
    server = site.launch()
    run = server.run("go")
    assert (run.outcome, run.stats.tool_errors) == ("completed", 2)
    ok, failed, unknown = finished(server)
    assert (ok["name"], ok["status"], ok["result"], ok["error"]) == ("mcp__odd__echo", "ok", "you said hello", None)
    assert (failed["status"], failed["error"]) == ("error", "broken\nsecond part")
    assert "there is no tool named 'mcp__odd__nothing'" in unknown["error"]
    assert server.stop() == 0
    assert odd.received()[-1] == "end of input"


@pytest.mark.requirement("process.same-engine.run")
def test_aura_run_uses_them_too(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.script(calls(call("echo", text="hello")), {"content": "It said: {{ last }}"})
    process = site.spawn("run", "go")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"It said: you said hello\n"), err.decode()
    assert odd.received()[-1] == "end of input"


@pytest.mark.requirement("serve.ready-file.after-mcp", "serve.failure.mcp-unavailable", "mcp.required")
@pytest.mark.parametrize(
    ("mode", "more", "problem"),
    [
        ("crash", {}, "it ended before it could initialize"),
        ("refuse", {}, "it could not initialize: go away, […]"),
        ("silent", {"timeout": "1s"}, "it did not initialize within 1000 ms"),
        ("", {"command": "no-such-program-${ODD_SECRET}"}, "its command is not an executable program"),
    ],
)
def test_a_required_server_that_fails_stops_the_start(
    site: Site, odd: Odd, mode: str, more: Mapping[str, Any], problem: str
) -> None:
    entry = odd.entry(mode, required=True, env={"ODD_SECRET": "${ODD_SECRET}"}) | more
    configure(site, odd=entry)
    exit_code, ready, err = site.serve(prefix=("env", f"ODD_SECRET={SECRET}"))
    message = f"the MCP server odd is not available: {problem}"
    assert exit_code == 1
    assert ready == {
        "api": 1,
        "error": {
            "code": "mcp_unavailable",
            "message": message,
            "retryable": False,
            "details": {"server": "odd"},
        },
    }
    assert message in err
    assert SECRET not in err
    assert site.strays() == []
    assert not site.sessions.exists()


@pytest.mark.requirement("mcp.required.every-path")
def test_a_required_server_that_fails_stops_aura_run(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry("crash", required=True))
    process = site.spawn("run", "go")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, b"")
    assert "error: the MCP server odd is not available" in err.decode()


def test_an_optional_server_that_fails_is_a_notice_at_the_start(site: Site, odd: Odd) -> None:
    configure(
        site, odd=odd.entry(), broken=Odd(odd.folder, "broken").entry("crash", env={"ODD_SECRET": "${ODD_SECRET}"})
    )
    site.script(calls(call("echo", text="hello")), {"content": "done"})
    server = site.launch(environment={"ODD_SECRET": SECRET})
    assert server.types()[:3] == ["server.started", "notice", "session.persisted"]
    assert dict(server.events()[1].data) == {
        "level": "warning",
        "source": "mcp",
        "message": "the MCP server broken is not available: it ended before it could initialize",
    }
    assert server.run("go").outcome == "completed"
    server.stop()
    log = server.log.read_text()
    assert "the secret is […]" in log
    assert SECRET not in log


@pytest.mark.requirement("serve.ready-file.after-mcp")
def test_a_resumed_session_connects_before_it_is_ready(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    first = site.launch()
    first.stop()
    configure(site, odd=odd.entry("crash"))
    second = site.launch(first.session_id)
    assert "notice" in second.types()
    second.stop()
    configure(site, odd=odd.entry("crash", required=True))
    exit_code, ready, _ = site.serve(flags=("--resume", first.session_id))
    assert exit_code == 1
    assert ready is not None
    assert ready["error"]["code"] == "mcp_unavailable"
    configure(site)
    assert site.launch(first.session_id).run("go").outcome == "completed"


@pytest.mark.requirement("mcp.cancelled")
def test_a_cancel_reaches_the_server_and_the_run_settles(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.script(calls(call("slow", seconds=60)), {"content": "done", "repeat": "forever"})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    until(lambda: odd.call_ids("slow"), "the call")
    server.client.cancel(run.id)
    assert server.wait(run.id).outcome == "cancelled"
    assert [(item["status"], item["error"]) for item in finished(server)] == [("error", "cancelled")]
    until(lambda: odd.cancelled() == odd.call_ids("slow"), "notifications/cancelled")
    assert server.run("more", "r2").outcome == "completed"


def test_a_shutdown_cancels_the_call_first_and_then_ends_the_server(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.script(calls(call("slow", seconds=60)), {"content": "done"})
    server = site.launch()
    server.client.submit("r1", prompt="go")
    until(lambda: odd.call_ids("slow"), "the call")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert odd.cancelled() == odd.call_ids("slow")
    assert odd.received()[-1] == "end of input"
    assert site.rows("SELECT outcome FROM v_run") == [("cancelled",)]


def test_servers_that_failed_or_were_lost_come_back_on_request(site: Site, odd: Odd) -> None:
    late = site.work / "late-server"
    configure(site, odd=odd.entry(), late=odd.entry() | {"command": str(late)})
    site.script(calls(call("crash", "c1")), {"content": "gone"}, calls(call("echo", "c2", text="hi")), {"content": "x"})
    server = site.launch()

    def mcp(command: str) -> list[str]:
        run = server.wait(server.client.submit(command, command=command).id)
        assert run.outcome == "completed" and run.result is not None
        return run.result.content.splitlines()

    server.run("go", "r1")
    (first,) = mcp("/mcp")
    assert first.startswith("odd: "), "what failed at the start is left out"
    late.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    late.chmod(0o700)
    assert mcp("/mcp reconnect odd") == [first], "only the server that was named"
    assert mcp("/mcp reconnect") == [first.replace("odd: ", "late: ", 1), first]
    server.run("again", "r2")
    assert [item["status"] for item in finished(server)] == ["error", "ok"]


@pytest.mark.parametrize("mode", ["", "stubborn"])
def test_no_server_outlives_an_aura_that_is_killed(site: Site, odd: Odd, mode: str) -> None:
    configure(site, odd=odd.entry(mode))
    site.script(calls(call("inspect")), {"content": "done"})
    server = site.launch()
    server.run("go")
    process = inspect(server)
    assert process["cwd"] == str(site.work)
    assert process["group"] == process["pid"] != server.pid
    server.kill()
    until(lambda: not is_alive(process["pid"]), "the end of the MCP server")
    until(lambda: not site.strays(), "the end of its guard")


@pytest.mark.requirement("serve.token.hidden")
def test_a_server_sees_no_token_of_ours_and_keeps_its_own_from_bash(site: Site, odd: Odd) -> None:
    configure(
        site,
        odd=odd.entry(env={"OWN": "${OWN_TOKEN}"}),
        web={"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}},
    )
    site.provider(retry={"max_attempts": 0})
    names = ["AURA_SERVE_TOKEN", "AURA_PROVIDERS_SCRIPT_TOKEN", "WEB_TOKEN", "OWN"]
    bash = {"id": "c9", "name": "Bash", "arguments": {"command": "env; tr '\\0' '\\n' </proc/$PPID/environ"}}
    site.script(
        calls(*(call("environment", f"c{n}", name=name) for n, name in enumerate(names)), bash), {"content": "x"}
    )
    tokens = {"OWN_TOKEN": "own-token-value", "WEB_TOKEN": "web-token-value", "AURA_PROVIDERS_SCRIPT_TOKEN": "p-token"}
    server = site.launch(environment=tokens)
    server.run("go")
    *seen, shell = [item["result"] for item in finished(server)]
    assert seen == ["not set", "not set", "not set", "own-token-value"]
    assert "web-token-value" not in shell


def test_policy_patterns_match_the_tools_of_a_server(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.agent(
        tools={"policy": {"deny": ["mcp__odd__f*"], "confirm": ["mcp__*__slow"]}, "disabled": ["mcp__odd__mixed"]}
    )
    made = [
        call("echo", "c1", text="a"),
        call("fail", "c2", text="b"),
        call("mixed", "c3"),
        call("slow", "c4", seconds=0),
    ]
    site.script(calls(*made), {"content": "done"})
    server = site.launch()
    run = server.client.submit("r1", prompt="go", on_input="wait")
    asked = server.event("input.required").data
    assert (asked["tool"], asked["pattern"]) == ("mcp__odd__slow", "mcp__odd__slow")
    server.client.decide(run.id, asked["input_id"], action="allow")
    server.wait(run.id)
    echo, fail, mixed, slow = finished(server)
    assert echo["status"] == slow["status"] == "ok"
    assert fail["error"] == "mcp__odd__fail is denied by policy (mcp__odd__f*)"
    assert mixed["error"] == "the tool mcp__odd__mixed is disabled for this agent"
    assert [len(odd.call_ids(tool)) for tool in ("echo", "fail", "mixed", "slow")] == [1, 0, 0, 1]


def test_progress_is_live_only(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.script(calls(call("slow", seconds=1)), {"content": "done"})
    server = site.launch()
    lines = []
    for event in server.client.events(transient=True):
        if event.type == "session.persisted" and event.data["reason"] == "start":
            server.client.submit("r1", prompt="go")  # not before somebody watches: live items are not replayed
        if event.type == "tool.output":
            lines.append(event.data)
        if event.type == "run.persisted":
            break
    assert lines == [{"name": "mcp__odd__slow", "line": "1/2 half of it"}]


def test_a_huge_result_is_replaced_by_a_remark(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.script(calls(call("huge", size=2_000_000)), {"content": "done"})
    server = site.launch()
    assert server.run("go").outcome == "completed"
    (result,) = finished(server)
    assert result["status"] == "ok"
    assert len(result["result"]) < 1000


def test_a_reload_connects_new_and_lost_servers_and_lets_others_go(site: Site, odd: Odd) -> None:
    new = Odd(odd.folder, "new")
    configure(site, odd=odd.entry())
    site.script(
        calls(call("crash")),
        {"content": "lost"},
        calls(call("echo", text="a"), call("echo", "c2", server="new", text="b")),
        {"content": "back"},
    )
    server = site.launch()
    server.run("go")
    configure(site, odd=odd.entry(), new=new.entry(), broken=Odd(odd.folder, "broken").entry("crash"))
    server.wait(server.client.submit("r2", command="/reload").id)
    notices = [event.data for event in server.events() if event.type == "notice"]
    assert [(notice["source"], "server broken is not available" in notice["message"]) for notice in notices] == [
        ("mcp", True)
    ]
    server.run("more", "r3")
    assert [item["status"] for item in finished(server)] == ["error", "ok", "ok"]
    configure(site, new=new.entry())
    server.wait(server.client.submit("r4", command="/reload").id)
    until(lambda: odd.received()[-1] == "end of input", "the end of the server that is not configured any more")


@pytest.mark.requirement("mcp.required.every-path")
def test_a_reload_that_needs_a_server_which_fails_changes_nothing(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.script(calls(call("echo", text="a")), {"content": "done"})
    server = site.launch()
    configure(site, odd=odd.entry(), broken=Odd(odd.folder, "broken").entry("crash", required=True))
    run = server.wait(server.client.submit("r1", command="/reload").id)
    assert run.error is not None
    assert "the MCP server broken is not available" in run.error.message
    server.run("go", "r2")
    assert [item["status"] for item in finished(server)] == ["ok"]


def modules(pid: int) -> str:
    """Return the libraries and the resident memory of a process, as the kernel tells."""
    return Path(f"/proc/{pid}/maps").read_text()


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def test_the_sdk_is_loaded_only_when_a_server_is_configured(site: Site, odd: Odd) -> None:
    plain = site.launch()
    assert "pydantic_core" not in modules(plain.pid)
    plain.stop()
    configure(site, odd=odd.entry(), off={"command": "x", "disabled": True})
    assert "pydantic_core" in modules(site.launch().pid)


def test_memory_with_mcp_and_openai_loaded_is_bounded(site: Site, odd: Odd) -> None:
    configure(site, odd=odd.entry())
    site.write("config/providers/cloud.yaml", "cloud: {type: openai, url: 'http://127.0.0.1:9/v1', token: x}\n")
    site.agent(model={"provider": "cloud", "name": "gpt"})
    server = site.launch()
    run = server.run("go")
    assert run.error is not None
    assert run.error.code == "provider_network"
    assert resident_mib(server.pid) <= 160
