"""The mirror of a served session: files that are what an export writes, and servers that do not mind its failures."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.serving import Running, Site, until


@pytest.fixture
def mirrored(site: Site) -> Site:
    site.write("config/features/mirror.yaml", yaml.safe_dump({"mirror": {"enabled": True}}))
    return site


def files(site: Site, session_id: str) -> tuple[Path, Path]:
    return site.sessions / f"{session_id}.json", site.sessions / "journal" / f"{session_id}.jsonl"


def exports(site: Site, session_id: str, kind: str) -> bytes:
    process = site.spawn(kind, "export", session_id, "--output", "-")
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return out


def is_current(site: Site, session_id: str) -> bool:
    document, journal = files(site, session_id)
    if not document.exists() or not journal.exists():
        return False
    return document.read_bytes() == exports(site, session_id, "session") and journal.read_bytes() == exports(
        site, session_id, "journal"
    )


def notices(server: Running) -> list[str]:
    return [e.data["message"] for e in server.events() if e.type == "notice" and e.data["source"] == "mirror"]


def test_files_are_current_after_each_run_and_at_the_end(mirrored: Site) -> None:
    server = mirrored.launch()
    for request in ("r1", "r2"):
        server.run("hello", request)
        until(lambda: is_current(mirrored, server.session_id), "the mirror after a run")
    assert server.stop() == 0
    assert is_current(mirrored, server.session_id)
    assert b'"server.stopping"' in files(mirrored, server.session_id)[1].read_bytes()


def test_without_the_feature_there_are_no_files(site: Site) -> None:
    server = site.launch()
    server.run("hello")
    assert server.stop() == 0
    document, journal = files(site, server.session_id)
    assert not document.exists() and not journal.parent.exists()


def test_a_failure_is_a_notice_and_the_next_run_makes_up_for_it(mirrored: Site) -> None:
    mirrored.sessions.mkdir(parents=True)
    (mirrored.sessions / "journal").write_text("in the way")
    server = mirrored.launch()
    run = server.run("hello", "r1")
    assert (run.state, run.outcome) == ("persisted", "completed")
    until(lambda: notices(server), "a notice")
    assert set(notices(server)) == {f"journal/{server.session_id}.jsonl is not up to date: Not a directory"}
    (mirrored.sessions / "journal").unlink()
    server.run("hello", "r2")
    until(lambda: is_current(mirrored, server.session_id), "the mirror after the next run")
    assert server.stop() == 0
    assert is_current(mirrored, server.session_id)


def test_a_failing_mirror_does_not_keep_a_server_from_ending_well(mirrored: Site) -> None:
    server = mirrored.launch()
    document = files(mirrored, server.session_id)[0]
    until(document.exists, "the mirror after the start")
    document.unlink()
    document.mkdir()
    assert server.run("hello").state == "persisted"
    until(lambda: notices(server), "a notice")
    assert server.stop() == 0


def test_what_a_killed_server_left_behind_is_made_good_by_the_next_and_never_read(mirrored: Site) -> None:
    server = mirrored.launch()
    server.run("hello", "r1")
    until(lambda: is_current(mirrored, server.session_id), "the mirror after a run")
    server.kill()
    document, journal = files(mirrored, server.session_id)
    document.write_text('{"id":"somebody else"}')
    journal.write_text('{"seq":1,"torn')
    again = mirrored.launch(server.session_id)
    until(lambda: is_current(mirrored, server.session_id), "the mirror after the start")
    assert again.run("hello", "r1").state == "persisted"
    assert again.stop() == 0
    assert is_current(mirrored, server.session_id)


def test_an_agent_cannot_switch_the_servers_mirror(site: Site) -> None:
    site.agent(features={"mirror": {"enabled": True}})
    code, ready, err = site.serve()
    assert code == 1 and ready is not None
    assert ready["error"]["code"] == "config_invalid"
    assert "features.mirror: switching the mirror for one agent is not supported" in err
