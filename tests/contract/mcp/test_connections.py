"""Connections to real servers by both transports: results, errors, cancellation, loss, and the way down."""

from __future__ import annotations

import json
import logging
import os
import threading
import time

import pytest

from aura.engine.call import CANCELLED
from aura.errors import McpUnavailable
from aura.events import ToolProgress
from tests.support.bench import Bench
from tests.support.odd_mcp import Connected, Odd, StartHttp, http_spec, is_alive
from tests.support.serving import until


@pytest.fixture(params=["stdio", "http"])
def bench(request: pytest.FixtureRequest, connected: Connected, odd: Odd, start_http: StartHttp) -> Bench:
    """A bench with the odd server's tools, by each transport; their names begin with mcp__odd__ or mcp__web__."""
    if request.param == "stdio":
        return connected.bench(odd.spec())
    return connected.bench(http_spec(start_http().url))


def name(bench: Bench, tool: str) -> str:
    """Return the model's name of a tool."""
    return next(spec.name for spec in bench.toolbox.definitions() if spec.name.endswith(f"__{tool}"))


@pytest.mark.requirement("mcp.is-error")
def test_results_and_errors_reach_the_model_as_text(bench: Bench) -> None:
    assert bench.ok(name(bench, "echo"), text="hé 日本") == "you said hé 日本"
    assert bench.error(name(bench, "fail"), text="it is broken") == "it is broken\nsecond part"
    before, image, after = bench.ok(name(bench, "mixed")).split("\n")
    assert (before, after) == ("before", "after")
    assert json.loads(image) == {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def test_the_server_checks_the_arguments(bench: Bench) -> None:
    assert "validation error" in bench.error(name(bench, "echo"), wrong=1)
    assert bench.error(name(bench, "echo"), text="\ud800") == "the arguments hold half of a surrogate pair"
    assert bench.ok(name(bench, "echo"), text="still there") == "you said still there"


def test_only_what_the_server_calls_read_only_is(bench: Bench) -> None:
    specs = {tool.spec.name.rpartition("__")[2]: tool.spec for tool in bench.toolbox.tools}
    assert {key for key, spec in specs.items() if spec.read_only} == {"echo"}
    assert specs["echo"].parameters["required"] == ["text"]


def test_progress_is_shown_live(bench: Bench) -> None:
    assert bench.ok(name(bench, "slow"), seconds=0) == "done at last"
    (shown,) = [item for item in bench.lane.shown if isinstance(item, ToolProgress)]
    assert (shown.progress, shown.total, shown.message, shown.text) == (1, 2, "half of it", "1/2 half of it")


@pytest.mark.requirement("mcp.cancelled")
def test_a_cancel_is_told_to_the_server_and_the_connection_stays(bench: Bench, odd: Odd) -> None:
    def cancel() -> None:
        until(lambda: odd.call_ids("slow"), "the call")
        bench.lane.scope.cancel("request")

    canceller = threading.Thread(target=cancel)
    canceller.start()
    assert bench.error(name(bench, "slow"), seconds=60) == CANCELLED
    canceller.join()
    until(lambda: odd.cancelled() == odd.call_ids("slow"), "the notification")
    again = Bench(bench.workdir, options={"tools": bench.toolbox.tools})
    assert again.ok(name(again, "echo"), text="again") == "you said again"


def test_a_huge_result_arrives_whole(bench: Bench) -> None:
    tool = next(tool for tool in bench.toolbox.tools if tool.spec.name.endswith("__huge"))
    site = Bench(bench.workdir, options={"tools": (tool,), "filters": ()})
    assert site.ok(tool.spec.name, size=3_000_000) == "x" * 3_000_000


def test_a_crash_in_the_middle_of_a_call_is_an_error_and_stays_one(connected: Connected, odd: Odd) -> None:
    bench = connected.bench(odd.spec())
    pid = json.loads(bench.ok("mcp__odd__inspect"))["pid"]
    assert "was lost; whether the call took effect is unknown" in bench.error("mcp__odd__crash")
    assert bench.error("mcp__odd__echo", text="x") == "the MCP server odd is not connected any more"
    until(lambda: not is_alive(pid), "the end of the process")
    assert len(odd.call_ids("crash")) == 1


def test_one_server_that_dies_leaves_the_others_alone(connected: Connected, odd: Odd) -> None:
    other = Odd(odd.folder, "other")
    bench = connected.bench(odd.spec(), other.spec())
    os.kill(json.loads(bench.ok("mcp__odd__inspect"))["pid"], 9)
    until(lambda: "not connected" in (bench.call("mcp__odd__echo", text="x").error or ""), "the loss")
    assert bench.ok("mcp__other__echo", text="x") == "you said x"


def test_an_http_server_that_is_gone_is_an_error(connected: Connected, start_http: StartHttp) -> None:
    server = start_http()
    bench = connected.bench(http_spec(server.url))
    server.kill()
    assert "web" in bench.error("mcp__web__echo", text="x")


def test_headers_are_sent_and_a_refusal_names_its_status(
    connected: Connected, start_http: StartHttp, caplog: pytest.LogCaptureFixture
) -> None:
    url = start_http(token="open-sesame").url
    bench = connected.bench(http_spec(url, Authorization="Bearer open-sesame"))
    assert bench.ok("mcp__web__echo", text="x") == "you said x"
    assert connected.connect(http_spec(url, "other", Authorization="Bearer wrong-word")) == ()
    (notice,) = connected.servers.take_notices()
    assert notice.startswith("the MCP server other is not available: it could not initialize: ")
    assert notice.endswith("(HTTP 401)")
    assert "wrong-word" not in notice + caplog.text


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("crash", "it ended before it could initialize"),
        ("refuse", "it could not initialize: go away, […]"),
        ("silent", "it did not initialize within 1500 ms"),
    ],
)
def test_a_server_that_fails_to_start_is_a_notice_without_its_secrets(
    connected: Connected, odd: Odd, mode: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    timeout_ms = 1500 if mode == "silent" else 30_000
    with caplog.at_level(logging.DEBUG):
        assert connected.connect(odd.spec(mode, secret="hush-hush", timeout_ms=timeout_ms)) == ()
        assert connected.servers.take_notices() == (f"the MCP server odd is not available: {text}",)
        connected.servers.close()
    assert "hush-hush" not in caplog.text
    if mode == "crash":
        assert "it wrote last: the secret is […]" in caplog.text


def test_servers_start_side_by_side(connected: Connected, odd: Odd) -> None:
    silent = [Odd(odd.folder, f"s{n}").spec("silent", timeout_ms=1500) for n in range(4)]
    before = time.monotonic()
    assert connected.connect(*silent) == ()
    assert time.monotonic() - before < 4 * 1.5
    assert len(connected.servers.take_notices()) == 4


@pytest.mark.requirement("mcp.required")
def test_a_required_server_that_fails_is_unavailable_and_named(connected: Connected, odd: Odd) -> None:
    with pytest.raises(McpUnavailable) as caught:
        connected.connect(odd.spec("crash", required=True, secret="hush-hush"))
    assert caught.value.details == {"server": "odd"}
    assert caught.value.message == "the MCP server odd is not available: it ended before it could initialize"


def test_what_is_not_mcp_on_standard_output_is_passed_over(connected: Connected, odd: Odd) -> None:
    assert connected.bench(odd.spec("chatty")).ok("mcp__odd__echo", text="x") == "you said x"


def test_closing_ends_a_server_by_the_end_of_its_input(connected: Connected, odd: Odd) -> None:
    pid = json.loads(connected.bench(odd.spec()).ok("mcp__odd__inspect"))["pid"]
    connected.servers.close()
    assert not is_alive(pid)
    assert odd.received()[-1] == "end of input"


def test_closing_ends_a_stubborn_server_in_bounded_time(connected: Connected, odd: Odd) -> None:
    pid = json.loads(connected.bench(odd.spec("stubborn")).ok("mcp__odd__inspect"))["pid"]
    before = time.monotonic()
    connected.servers.close()
    assert not is_alive(pid)
    assert time.monotonic() - before < 10


def test_a_failed_server_is_tried_again_only_when_its_failure_is_forgotten(connected: Connected, odd: Odd) -> None:
    spec = odd.spec("crash")
    assert connected.connect(spec) == connected.connect(spec) == ()
    assert len(connected.servers.take_notices()) == 1
    connected.servers.forget_failures()
    assert connected.connect(spec) == ()
    assert len(connected.servers.take_notices()) == 1


def test_a_lost_server_is_connected_again_when_its_loss_is_forgotten(connected: Connected, odd: Odd) -> None:
    bench = connected.bench(odd.spec())
    bench.error("mcp__odd__crash")
    assert connected.connect(odd.spec()) == bench.toolbox.tools
    connected.servers.forget_failures()
    assert connected.bench(odd.spec()).ok("mcp__odd__echo", text="x") == "you said x"


def test_servers_that_nobody_uses_any_more_are_closed(connected: Connected, odd: Odd) -> None:
    other = Odd(odd.folder, "other")
    bench = connected.bench(odd.spec(), other.spec())
    connected.servers.keep([other.spec()])
    until(lambda: odd.received()[-1] == "end of input", "the end of the server")
    assert bench.ok("mcp__other__echo", text="x") == "you said x"
    assert connected.bench(odd.spec()).ok("mcp__odd__echo", text="again") == "you said again"
