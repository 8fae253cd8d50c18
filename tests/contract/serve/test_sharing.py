"""Several processes on one store: servers side by side, one server per session, offline commands meanwhile."""

from __future__ import annotations

import hashlib
import time

import pytest

from aura_automation import Exists, SessionLocked
from tests.support.serving import Site, bash, calls


@pytest.mark.requirement("process.one-session")
def test_two_servers_on_two_sessions_of_one_store_work_at_once(site: Site) -> None:
    site.script(*[calls(bash("sleep 0.02; echo hi", f"c{n}")) for n in range(10)], {"content": "done"})
    first = site.launch(ready_file=site.root / "first.json")
    second = site.launch(ready_file=site.root / "second.json")
    runs = [(server, server.client.submit("r1", prompt="go")) for server in (first, second)]
    done = [server.wait(run.id) for server, run in runs]
    assert [run.outcome for run in done] == ["completed", "completed"]
    assert len({run.session_id for run in done}) == 2
    assert all(run.stats.tool_calls == {"Bash": 10} for run in done)
    for server, run in zip((first, second), done, strict=True):
        events = server.events()
        assert {event.session_id for event in events} == {server.session_id}
        assert {event.run_id for event in events} == {None, run.id}
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.requirement("process.one-session", "store.lease.released")
def test_a_session_has_one_server_and_is_free_at_once_after_its_death(site: Site) -> None:
    first = site.launch()
    with pytest.raises(SessionLocked) as caught:
        site.launch(first.session_id, ready_file=site.root / "second.json")
    assert caught.value.retryable is False
    assert first.run("still here").outcome == "completed"
    first.kill()
    begun = time.monotonic()
    second = site.launch(first.session_id)
    assert time.monotonic() - begun < 10
    assert second.run("here now", "r2").outcome == "completed"
    assert second.client.messages().total == 4


def test_offline_commands_read_a_session_while_a_server_holds_it(site: Site) -> None:
    site.script({"content": "first"}, {"content": "slow", "delay_ms": 60_000})
    server = site.launch()
    server.run("hello")
    live = server.client.submit("r2", prompt="more")
    server.event("run.started", server.client.server().last_seq - 3)
    summary = site.store.show(server.session_id)
    assert site.store.list().sessions == (summary,)
    exported = site.store.export(server.session_id, site.root / "export.json")
    assert hashlib.sha256((site.root / "export.json").read_bytes()).hexdigest() == exported.sha256 == summary.revision
    forked = site.store.fork(server.session_id, "child", expect_revision=summary.revision)
    assert forked.session.parent is not None
    assert forked.session.parent.revision == summary.revision
    with pytest.raises(SessionLocked):
        site.store.freeze(server.session_id)
    with pytest.raises(SessionLocked):
        site.store.import_(site.root / "export.json", freeze=True)
    assert site.store.import_(site.root / "export.json").created is False
    (site.root / "other.json").write_text((site.root / "export.json").read_text().replace("first", "other"))
    with pytest.raises(Exists):
        site.store.import_(site.root / "other.json")
    child = site.launch("child", ready_file=site.root / "child.json")
    assert child.client.messages().total == 2
    server.client.cancel(live.id)
    assert server.wait(live.id).outcome == "cancelled"
    assert server.stop() == 0
    assert site.store.freeze(server.session_id).changed is True


@pytest.mark.requirement("store.revision")
def test_every_revision_that_was_reported_can_be_exported_and_hashes_to_its_name(site: Site) -> None:
    site.script(*[calls(bash(f"echo {n}", f"c{n}"), thinking="hm") for n in range(4)], {"content": "done"})
    server = site.launch()
    server.run("go")
    reported = [str(event.data["revision"]) for event in server.events() if event.type == "session.persisted"]
    assert len(reported) == 6
    stored = [sha256 for (sha256,) in site.rows("SELECT sha256 FROM revision ORDER BY n")]
    assert stored[1:] == reported  # the first is the empty session before it was given an agent
    assert_all_revisions_hash(site)


def assert_all_revisions_hash(site: Site) -> None:
    from aura.store.open import open_store

    store = open_store(site.sessions)
    try:
        for session_id, sha256 in site.rows("SELECT s.id, v.sha256 FROM revision v JOIN session s ON s.sid = v.sid"):
            digest = hashlib.sha256()
            for piece in store.export(session_id, sha256)[1]:
                digest.update(piece)
            assert digest.hexdigest() == sha256
    finally:
        store.close()
