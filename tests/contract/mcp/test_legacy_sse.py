"""Servers that speak the transport before streamable HTTP: results, cancellation, and every way to lose them."""

from __future__ import annotations

import json
import logging
import socket
import threading

import pytest

from aura.engine.call import CANCELLED
from tests.support.bench import Bench
from tests.support.odd_mcp import Connected, Odd, StartHttp, http_spec
from tests.support.serving import until


def test_results_and_errors_reach_the_model_as_text(connected: Connected, start_http: StartHttp) -> None:
    bench = connected.bench(http_spec(start_http(legacy=True).url))
    assert bench.ok("mcp__web__echo", text="hé 日本") == "you said hé 日本"
    assert bench.error("mcp__web__fail", text="it is broken") == "it is broken\nsecond part"
    assert json.loads(bench.ok("mcp__web__mixed").split("\n")[1])["type"] == "image"


def test_its_status_names_the_transport(connected: Connected, start_http: StartHttp) -> None:
    spec = http_spec(start_http(legacy=True).url)
    connected.connect(spec)
    (status,) = connected.servers.describe([spec])
    assert (status.transport, status.status) == ("sse", "connected")


def test_a_cancel_is_told_to_the_server_and_the_connection_stays(
    connected: Connected, start_http: StartHttp, odd: Odd
) -> None:
    bench = connected.bench(http_spec(start_http(legacy=True).url))

    def cancel() -> None:
        until(lambda: odd.call_ids("slow"), "the call")
        bench.lane.scope.cancel("request")

    canceller = threading.Thread(target=cancel)
    canceller.start()
    assert bench.error("mcp__web__slow", seconds=60) == CANCELLED
    canceller.join()
    until(lambda: odd.cancelled() == odd.call_ids("slow"), "the notification")
    again = Bench(bench.workdir, options={"tools": bench.toolbox.tools})
    assert again.ok("mcp__web__echo", text="again") == "you said again"


def test_headers_are_sent_and_a_refusal_is_a_notice_without_secrets(
    connected: Connected, start_http: StartHttp, caplog: pytest.LogCaptureFixture
) -> None:
    url = start_http(token="open-sesame", legacy=True).url
    with caplog.at_level(logging.DEBUG):
        bench = connected.bench(http_spec(url, Authorization="Bearer open-sesame"))
        assert bench.ok("mcp__web__echo", text="x") == "you said x"
        assert connected.connect(http_spec(url, "other", Authorization="Bearer wrong-word")) == ()
    (notice,) = connected.servers.take_notices()
    assert notice == "the MCP server other is not available: it could not open its stream: it answered HTTP 401"
    assert "wrong-word" not in notice + caplog.text
    assert "open-sesame" not in caplog.text


def test_a_message_that_cannot_be_posted_ends_the_call(connected: Connected, start_http: StartHttp) -> None:
    bench = connected.bench(http_spec(start_http(legacy=True, refuse="tools/call").url))
    assert "was lost; whether the call took effect is unknown" in bench.error("mcp__web__echo", text="x")
    assert bench.error("mcp__web__echo", text="x") == "the MCP server web is not connected any more"


def test_a_server_that_refuses_to_initialize_is_a_notice(connected: Connected, start_http: StartHttp) -> None:
    assert connected.connect(http_spec(start_http(legacy=True, refuse="initialize").url)) == ()
    (notice,) = connected.servers.take_notices()
    assert notice == "the MCP server web is not available: it could not initialize: it answered HTTP 400"


def test_a_server_that_dies_ends_the_call(connected: Connected, start_http: StartHttp) -> None:
    bench = connected.bench(http_spec(start_http(legacy=True).url))
    assert "whether the call took effect is unknown" in bench.error("mcp__web__crash")
    until(lambda: "not connected" in (bench.call("mcp__web__echo", text="x").error or ""), "the loss")


def test_a_result_beyond_the_transports_limit_ends_the_connection(connected: Connected, start_http: StartHttp) -> None:
    bench = connected.bench(http_spec(start_http(legacy=True).url))
    assert len(bench.ok("mcp__web__huge", size=50_000)) == 50_000
    assert "whether the call took effect is unknown" in bench.error("mcp__web__huge", size=3_000_000)


def test_nobody_at_the_address_is_a_notice(connected: Connected) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/sse"
        assert connected.connect(http_spec(url)) == ()
    assert connected.servers.take_notices() == ("the MCP server web is not available: it cannot be reached",)


def test_tools_that_are_not_accepted_are_left_out(connected: Connected, start_http: StartHttp, odd: Odd) -> None:
    specs = (odd.spec(), http_spec(start_http(legacy=True).url))
    tools = connected.servers.connect(specs, {}, lambda name: name in ("echo", "fail"))
    assert [tool.spec.name for tool in tools] == [
        "mcp__odd__echo",
        "mcp__odd__fail",
        "mcp__web__echo",
        "mcp__web__fail",
    ]
    assert connected.servers.connect(specs, {}, lambda name: False) == ()
