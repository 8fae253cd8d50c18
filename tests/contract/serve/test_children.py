"""Processes that a run starts end with it: with its command, its cancellation, its server, however that ends."""

from __future__ import annotations

import signal

import pytest

from tests.support.serving import Running, Site, bash, calls, until

TREE = "trap '' TERM HUP; (trap '' TERM HUP; while :; do sleep 0.1; done) & echo up > up; wait"


def start_tree(site: Site) -> tuple[Running, str]:
    """Start a run whose command and its child ignore every friendly signal."""
    site.script(calls(bash(TREE)), {"content": "done", "repeat": "forever"})
    server = site.launch()
    run = server.client.submit("r1", prompt="go")
    until(lambda: site.lines("up"), "the command's start")
    assert len(site.strays()) >= 2
    return server, run.id


@pytest.mark.parametrize("end", ["cancel", "shutdown", "kill"])
def test_stubborn_processes_do_not_outlive_their_run(site: Site, end: str) -> None:
    server, run_id = start_tree(site)
    if end == "cancel":
        server.client.cancel(run_id)
        assert server.wait(run_id).outcome == "cancelled"
        assert site.strays() == []
    elif end == "shutdown":
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert site.strays() == []
    else:
        server.kill()
        until(lambda: not site.strays(), "the end of the processes")


def test_what_a_command_leaves_in_the_background_ends_with_it(site: Site) -> None:
    site.script(calls(bash("sleep 60 & echo started")), {"content": "done"})
    server = site.launch()
    assert server.run("go").outcome == "completed"
    assert site.strays() == []


def test_the_next_server_finds_no_process_of_a_killed_one(site: Site) -> None:
    server, run_id = start_tree(site)
    server.kill()
    site.script({"content": "done"})
    again = site.launch(server.session_id)
    assert again.client.run(run_id).state == "lost"
    until(lambda: not site.strays(), "the end of the processes")
    assert again.run("more", "r2").outcome == "completed"
    calls_left = site.rows("SELECT status FROM v_tool_call ORDER BY started_seq")
    assert calls_left == [("unknown",)]
