"""What a check finds: each kind of damage, made behind the store's back, and nothing in a store that is sound."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura import limits
from aura.store.care import CheckReport, no_progress
from aura.store.caretaker import find_caretaker
from aura.store.open import open_store
from aura.store.sqlite import check
from aura.store.sqlite.database import open_reader
from tests.unit.store.care_kit import fill, make
from tests.unit.store.store_kit import Keeper, header, messages_of, query, sha256, tamper


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("sound") / "sessions")


@pytest.fixture
def database(sound: Path, folder: Path) -> Path:
    """A copy of the sound store, to be damaged."""
    folder.mkdir(parents=True)
    return Path(shutil.copy(sound, folder / "aura.db"))


def checked(database: Path, *, quick: bool = False) -> CheckReport:
    caretaker = find_caretaker(database.parent)
    assert caretaker is not None
    return caretaker.check(quick=quick, progress=no_progress)


def codes(report: CheckReport) -> set[str]:
    return {finding.code for finding in report.findings}


def test_a_sound_store_is_clean_and_everything_in_it_was_looked_at(database: Path) -> None:
    report = checked(database)
    assert report.findings == ()
    assert report.clean and report.skipped == ()
    assert report.checked["sessions"] == 5
    assert report.checked["runs"] == 4
    assert report.checked["events"] > 40
    assert report.checked["revisions"] >= 12


def test_a_quick_check_says_what_it_left_out(database: Path) -> None:
    report = checked(database, quick=True)
    assert report.clean
    assert {item.why for item in report.skipped} == {"--quick"}
    assert "revisions" not in report.checked


SID = "(SELECT sid FROM session WHERE id = 'work')"
BARE = "(SELECT sid FROM session WHERE id = 'bare')"
R2 = "(SELECT id FROM run WHERE request_id = 'r2')"
EMPTY = sha256(b"")
MESSAGE = "chain, idx, ordinal, role, body"
DAMAGES = [
    # code, the table that it is said to be in, what was done
    ("seq_gap", "event", f"DELETE FROM event WHERE sid = {SID} AND seq = 5"),
    ("chain_hash", "event", f"UPDATE event SET data = replace(data, 'done', 'nice') WHERE sid = {SID}"),
    ("chain_hash", "event", f"UPDATE event SET at_ms = at_ms + 1000 WHERE sid = {SID} AND seq = 4"),
    ("chain_hash", "event", f"UPDATE event SET type = 'notice' WHERE sid = {SID} AND seq = 4"),
    ("chain_hash", "event", f"UPDATE event SET run = NULL WHERE sid = {SID} AND seq = 4"),
    ("chain_hash", "session", f"UPDATE session SET chain_hash = x'00' WHERE sid = {SID}"),
    ("event_unreadable", "event", f"UPDATE event SET data = '[]' WHERE sid = {SID} AND seq = 3"),
    ("last_seq", "session", f"UPDATE session SET last_seq = last_seq + 1 WHERE sid = {SID}"),
    ("persisted_seq", "session", f"UPDATE session SET persisted_seq = 2 WHERE sid = {SID}"),
    ("anchor", "journal_anchor", f"UPDATE session SET journal_floor = 5 WHERE sid = {SID}"),
    ("run_record", "run", "UPDATE run SET outcome = 'failed' WHERE request_id = 'r1'"),
    ("run_record", "run", "UPDATE run SET last_seq = 5 WHERE request_id = 'r1'"),
    ("run_record", "run", "UPDATE run SET stats = '{\"iterations\":0,\"tool_calls\":{},\"tool_errors\":0}'"),
    ("run_record", "run", "UPDATE run SET state = 'running' WHERE request_id = 'r2'"),
    ("run_unowned", "run", "UPDATE run SET state = 'running' WHERE request_id = 'r2'"),
    ("tool_call", "tool_call", "DELETE FROM tool_call WHERE call_id = 'c_r2'"),
    ("tool_call", "tool_call", "UPDATE tool_call SET status = 'unknown' WHERE call_id = 'c_r2'"),
    ("tool_call", "tool_call", "UPDATE tool_call SET result_bytes = 1 WHERE call_id = 'x'"),
    ("usage", "usage", "UPDATE usage SET input_tokens = 1"),
    ("usage", "usage", "UPDATE usage SET cost_usd = 1"),
    ("input", "input", "UPDATE input SET answered_by = 'nobody'"),
    ("input", "input", "DELETE FROM input"),
    ("request", "run", "DELETE FROM request"),
    ("request", "run", "UPDATE request SET digest = 'x'"),
    ("revision_hash", "revision", "UPDATE revision SET tail = replace(tail, 'A title', 'B title') WHERE n = 1"),
    ("revision_hash", "revision", "UPDATE revision SET sha256 = replace(sha256, '1', '2') WHERE n = 2"),
    ("revision_hash", "revision", "UPDATE message SET body = replace(body, '\"a\"', '\"b\"')"),
    ("message", "message", "UPDATE message SET role = 'tool' WHERE idx = 0"),
    ("message", "message", "UPDATE message SET ordinal = ordinal + 1 WHERE idx = 1"),
    ("message", "message", "UPDATE message SET body = '{' WHERE idx = 1"),
    ("message_missing", "message", "DELETE FROM message WHERE idx = 1"),
    ("message_missing", "message", "DELETE FROM message"),
    ("prompt_hash", "prompt", "UPDATE prompt SET text = text || '!'"),
    ("session_row", "session", f"UPDATE session SET title = 'x' WHERE sid = {SID}"),
    ("session_row", "session", f"UPDATE session SET messages = 99 WHERE sid = {SID}"),
    ("session_row", "session", "UPDATE session SET frozen = 0 WHERE id = 'ice'"),
    ("session_row", "session", "UPDATE session SET parent_id = 'ice' WHERE id = 'fork'"),
    ("head", "session", f"UPDATE session SET head = NULL WHERE sid = {SID}"),
    ("head", "session", "UPDATE session SET head = (SELECT min(id) FROM revision WHERE sid = session.sid)"),
    ("chain", "chain", "UPDATE chain SET base = 999 WHERE base IS NOT NULL"),
    ("foreign_key", "chain", "UPDATE chain SET base = 999 WHERE base IS NOT NULL"),
    ("orphan", "event", f"DELETE FROM session WHERE sid = {SID}"),
    ("orphan", "revision", f"DELETE FROM session WHERE sid = {SID}"),
    ("orphan", "run", f"DELETE FROM session WHERE sid = {SID}"),
    ("orphan", "chain", f"DELETE FROM session WHERE sid = {SID}"),
    ("orphan", "request", "DELETE FROM run WHERE request_id = 'r2'"),
    ("orphan", "tool_call", "DELETE FROM run WHERE request_id = 'r2'"),
    ("orphan", "usage", "DELETE FROM run WHERE request_id = 'r2'"),
    ("orphan", "input", "DELETE FROM run WHERE request_id = 'r2'"),
    ("foreign_key", "event", "DELETE FROM run WHERE request_id = 'r2'"),
    ("orphan", "message", "DELETE FROM chain WHERE id = 1"),
    ("orphan", "message", f"INSERT INTO message ({MESSAGE}) SELECT chain, 99, 9, role, body FROM message LIMIT 1"),
    ("orphan", "message", f"INSERT INTO chain (sid) VALUES ({SID})"),
    ("orphan", "prompt", f"INSERT INTO prompt (sha256, text) VALUES ('{EMPTY}', '')"),
    ("orphan", "journal_anchor", "INSERT INTO journal_anchor VALUES (999, 1, x'00')"),
    ("owner", "event", f"UPDATE event SET run = {R2} WHERE sid <> {SID}"),
    ("owner", "tool_call", f"UPDATE tool_call SET sid = {BARE}"),
    ("owner", "usage", f"UPDATE usage SET sid = {BARE}"),
    ("owner", "input", f"UPDATE input SET sid = {BARE}"),
    ("owner", "revision", "UPDATE revision SET chain = (SELECT max(id) FROM chain) WHERE n = 1"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "table", "statement"), DAMAGES)
def test_damage_is_found_under_its_code(database: Path, code: str, table: str, statement: str) -> None:
    tamper(database, statement)
    report = checked(database)
    assert (code, table) in {(finding.code, finding.table) for finding in report.findings}
    assert not report.clean


def test_two_live_runs_are_found_where_even_the_index_is_gone(database: Path) -> None:
    tamper(database, "DROP INDEX run_live", "UPDATE run SET state = 'running'")
    assert "run_live_twice" in codes(checked(database))


def test_a_quick_check_finds_what_needs_no_hash(database: Path) -> None:
    tamper(
        database, "DELETE FROM event WHERE seq = 5", "DELETE FROM request", "DELETE FROM run WHERE request_id = 'r2'"
    )
    assert codes(checked(database, quick=True)) >= {"seq_gap", "request", "orphan"}


def test_a_changed_page_is_found_as_damage_and_the_rest_is_still_checked(database: Path) -> None:
    pages = query(database, "SELECT pageno FROM dbstat WHERE name = 'event' AND pagetype = 'leaf'")
    tamper(database, "DELETE FROM tool_call WHERE call_id = 'c_r2'")
    data = bytearray(database.read_bytes())
    for (number,) in pages:
        assert isinstance(number, int)
        data[(number - 1) * 4096 : number * 4096] = b"\xff" * 4096
    database.write_bytes(data)
    report = checked(database)
    assert {finding.table for finding in report.findings if finding.code == "damaged"} >= {"event"}
    assert report.checked["revisions"] >= 12


def test_an_index_that_disagrees_with_its_table_can_be_repaired(database: Path) -> None:
    damage = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA writable_schema = ON")
change = "sql = replace(sql, '(sid, id)', '(sid, accepted_seq)')"
connection.execute(f"UPDATE sqlite_schema SET {change} WHERE name = 'run_session'")
connection.commit()
"""
    subprocess.run([sys.executable, "-c", damage, str(database)], check=True)
    found = [finding for finding in checked(database).findings if finding.code == "damaged"]
    assert found and all(finding.repairable for finding in found)


def test_findings_are_bounded_and_all_are_counted(database: Path) -> None:
    statement = f"""
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {limits.CHECK_FINDINGS_MAX_COUNT + 5})
        INSERT INTO prompt (sha256, text) SELECT i, '' FROM n
    """
    tamper(database, statement)
    report = checked(database)
    assert len(report.findings) == limits.CHECK_FINDINGS_MAX_COUNT
    assert report.finding_count > limits.CHECK_FINDINGS_MAX_COUNT


def test_a_live_run_is_no_finding_while_a_process_holds_its_session(folder: Path) -> None:
    store = open_store(folder)
    fill(store)
    keeper = Keeper(store, "work")
    assert codes(checked(folder / "aura.db")) == set()
    keeper.release()
    (finding,) = checked(folder / "aura.db").findings
    assert (finding.code, finding.session_id, finding.repairable) == ("run_unowned", "work", True)
    store.close()


def test_a_long_statement_is_given_up_when_the_wal_has_grown_too_large(folder: Path) -> None:
    store = open_store(folder)
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    for _ in range(4):
        keeper.save(messages_of(*(f"{number} {'x' * 500}" for number in range(1000))))
    connection = open_reader(folder / "aura.db")
    try:
        report = check.inspect(connection, folder / "aura.db", wal_max_bytes=0)
    finally:
        connection.close()
    assert report.clean
    assert any("check a backup" in item.why for item in report.skipped)
    keeper.release()
    store.close()


@pytest.fixture
def long_session(folder: Path) -> Iterator[Keeper]:
    store = open_store(folder)
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    for number in range(300):
        keeper.save(messages_of(str(number)))
    yield keeper
    keeper.release()
    store.close()


def test_each_message_is_hashed_once_however_many_revisions_contain_it(long_session: Keeper, folder: Path) -> None:
    report = checked(folder / "aura.db")
    assert report.clean
    assert (report.checked["messages"], report.checked["revisions"]) == (300, 301)
