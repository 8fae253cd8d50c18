"""What a run costs the disk: transactions, counted in a host inside this process (DESIGN.md section 8)."""

from __future__ import annotations

import io
from pathlib import Path

from aura.clock import SystemClock
from aura.config.homes import Homes
from aura.runtime.assembly import Assembly, Plan, assemble
from aura.runtime.follow import follow_run
from aura.runtime.log import Log
from aura.runtime.signals import ThreadSignal
from aura.store.sqlite.store import SqliteStore
from tests.support.serving import WAIT_S, Site, bash, calls

RUN_MAX_COMMITS = 6


def open_host(site: Site, log: io.StringIO) -> Assembly:
    homes = Homes((site.home,), site.home, site.work)
    clock = SystemClock()
    return assemble(Plan(homes, site.work), url=None, make_signal=ThreadSignal, clock=clock, log=Log(clock, log))


def run_one(assembly: Assembly, request_id: str) -> tuple[str | None, int]:
    """Run a prompt to its end; return (outcome, transactions)."""
    service = assembly.service
    store = service._store
    assert isinstance(store, SqliteStore)
    before = store.commit_count
    feed = service.open_feed()
    run = service.submit(request_id, "prompt", "go", "block").run
    for _ in follow_run(service, feed, run.id, run.accepted_seq - 1, lambda: None):
        pass
    service.release_feed(feed)
    return service.get_run(run.id).outcome, store.commit_count - before


def test_a_run_with_one_tool_call_takes_at_most_six_commits_and_a_repeat_none(site: Site, tmp_path: Path) -> None:
    turns = [calls(bash("echo hi"), content="Let me look."), {"content": "It is done."}]
    site.script(*turns, *turns)
    log = io.StringIO()
    assembly = open_host(site, log)
    try:
        counts = []
        for number in (1, 2):
            outcome, count = run_one(assembly, f"r{number}")
            assert outcome == "completed"
            counts.append(count)
        assert max(counts) <= RUN_MAX_COMMITS, counts
        store = assembly.service._store
        assert isinstance(store, SqliteStore)
        before = store.commit_count
        assert assembly.service.submit("r1", "prompt", "go", "block").created is False
        assert store.commit_count == before
    finally:
        assembly.service.stop("request")
        assert assembly.service.wait_stopped(WAIT_S * 1000)
        assembly.close()
    assert assembly.service.saved
    assert log.getvalue() == ""
