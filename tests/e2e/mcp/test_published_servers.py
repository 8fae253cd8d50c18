"""The program with MCP servers that other people publish: the SDK's reference ones, on Node.js."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.published_mcp import server_program
from tests.support.serving import TOKEN, Running, Site, calls, until


def configure(site: Site, **servers: Mapping[str, Any]) -> None:
    """Write the file of MCP servers."""
    site.write("config/mcp/servers.yaml", yaml.safe_dump(dict(servers)))


def everything(**more: Any) -> dict[str, Any]:
    """Return an entry for server-everything."""
    entry = {"command": "node", "args": [str(server_program("server-everything")), "stdio"], "timeout": "60s"}
    return entry | {"required": True} | more


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a scripted call."""
    return {"id": call_id, "name": name, "arguments": arguments}


def finished(server: Running) -> list[dict[str, Any]]:
    """Return the data of every tool.finished."""
    return [dict(event.data) for event in server.events() if event.type == "tool.finished"]


def test_server_everything_works_over_stdio(site: Site) -> None:
    configure(site, everything=everything(env={"OWN": "its own"}))
    made = [
        call("c1", "mcp__everything__echo", message="hello"),
        call("c2", "mcp__everything__get-sum", a=2, b=40),
        call("c3", "mcp__everything__get-sum", a="no number"),
        call("c4", "mcp__everything__get-tiny-image"),
        call("c5", "mcp__everything__get-structured-content", location="Chicago"),
        call("c6", "mcp__everything__get-env"),
    ]
    site.script(calls(*made), {"content": "done"})
    server = site.launch()
    assert server.run("go").outcome == "completed"
    echo, total, wrong, image, structured, env = finished(server)
    assert echo["result"] == "Echo: hello"
    assert "42" in total["result"]
    assert wrong["status"] == "error"
    assert '"mimeType": "image/png"' in image["result"]
    assert json.loads(structured["result"])
    seen = json.loads(env["result"])
    assert seen["OWN"] == "its own"
    assert TOKEN not in env["result"]
    assert server.stop() == 0
    assert site.strays() == []


def test_server_everything_reports_progress_and_can_be_cancelled(site: Site) -> None:
    configure(site, everything=everything())
    tool = "mcp__everything__trigger-long-running-operation"
    site.script(
        calls(call("c1", tool, duration=1, steps=4)),
        calls(call("c2", tool, duration=60, steps=60)),
        calls(call("c3", "mcp__everything__echo", message="still there")),
        {"content": "done", "repeat": "forever"},
    )
    server = site.launch()
    first = server.client.submit("r1", prompt="go")
    lines: list[str] = []
    for event in server.client.events(transient=True):
        if event.type == "tool.output":
            lines.append(event.data["line"])
        if len(lines) > 4:
            break
    server.client.cancel(first.id)
    assert server.wait(first.id).outcome == "cancelled"
    assert [item["status"] for item in finished(server)] == ["ok", "error"]
    assert lines[0].startswith("1/4")
    assert server.run("more", "r2").outcome == "completed"
    assert finished(server)[-1]["result"] == "Echo: still there"


def test_server_everything_works_over_http(site: Site) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    program = ["node", str(server_program("server-everything")), "streamableHttp"]
    process = subprocess.Popen(program, env={**os.environ, "PORT": str(port)}, stderr=subprocess.DEVNULL)
    site.processes.append(process)

    def accepts() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    until(accepts, "the start of the HTTP server")
    configure(site, web={"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "required": True, "timeout": "60s"})
    site.script(calls(call("c1", "mcp__web__echo", message="hello")), {"content": "done"})
    server = site.launch()
    assert server.run("go").outcome == "completed"
    assert finished(server)[0]["result"] == "Echo: hello"
    assert server.stop() == 0


def test_server_filesystem_works_in_its_folder_only(site: Site) -> None:
    (site.work / "notes.txt").write_text("remember the milk")
    program = str(server_program("server-filesystem"))
    configure(site, files={"command": "node", "args": [program, "${WORK}"], "timeout": "60s", "required": True})
    made = [
        call("c1", "mcp__files__read_text_file", path=str(site.work / "notes.txt")),
        call("c2", "mcp__files__write_file", path=str(site.work / "new.txt"), content="bread"),
        call("c3", "mcp__files__read_text_file", path="/etc/hostname"),
    ]
    site.script(calls(*made), {"content": "done"})
    server = site.launch(environment={"WORK": str(site.work)})
    run = server.run("go")
    assert (run.outcome, run.stats.tool_errors) == ("completed", 1)
    read, written, outside = finished(server)
    assert read["result"] == "remember the milk"
    assert written["status"] == "ok"
    assert site.lines("new.txt") == ["bread"]
    assert "outside allowed directories" in outside["error"]
