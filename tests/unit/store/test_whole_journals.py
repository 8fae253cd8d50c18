"""Journals as a whole: lines built by SQL, chains that are checked, numbers. What tampering is, is done by another
process with plain SQL."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura import events as e
from aura import limits
from aura.clock import format_time
from aura.errors import CursorOutOfRange, NotFound, StoreUnavailable
from aura.store.journals import GENESIS_HASH, EventFilter
from aura.store.sqlite.journal_lines import LINE
from aura.store.sqlite.store import SqliteStore
from aura.wire.automation import envelope
from tests.unit.store.store_kit import Keeper, header, query

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
TAMPER = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
    connection.execute(f"DROP TRIGGER {name}")
for statement in json.loads(sys.argv[2]):
    connection.execute(statement)
connection.commit()
connection.close()
"""


def tamper(folder: Path, *statements: str) -> None:
    """Change the database from another process, without triggers in the way."""
    words = [sys.executable, "-c", TAMPER, str(folder / "aura.db"), json.dumps(statements)]
    subprocess.run(words, check=True, timeout=60, stdin=subprocess.DEVNULL)


def notices(keeper: Keeper, *texts: str, run_id: str | None = None) -> None:
    keeper.commit([e.Notice(level="info", origin="test", message=text) for text in texts], run_id)


def exported(store: SqliteStore, after: int = 0, session_id: str = "s1") -> bytes:
    return b"".join(page.lines for page in store.iterate_journal(store.read_journal(session_id), after))


def served(store: SqliteStore, after: int = 0) -> bytes:
    return b"".join(row.line + b"\n" for row in store.read_events("s1", after, 5000))


def fill(keeper: Keeper) -> None:
    """Write two runs and what is between them: 15 events."""
    keeper.commit([e.ServerStarted(pid=1, version="0.1.0", resumed_revision=None)])
    keeper.complete("r1", 'a "quoted" text\n\u00e9 \U0001f600')
    keeper.complete("r2")


# --- lines ---------------------------------------------------------------------------------------------------------


def test_a_line_of_sql_is_the_line_that_was_hashed_when_the_event_was_committed(
    keeper: Keeper, store: SqliteStore
) -> None:
    fill(keeper)
    chain = GENESIS_HASH
    lines = exported(store).splitlines()
    assert len(lines) == 15
    for line in lines:
        chain = hashlib.sha256(chain + line).digest()
    assert chain == store.read_journal("s1").head
    assert exported(store) == served(store)
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 16))


@given(at_ms=st.integers(FIRST_MS, LAST_MS))
def test_sql_writes_a_time_as_python_does(at_ms: int) -> None:
    import apsw

    connection = apsw.Connection(":memory:")
    sql = f"""
        SELECT {LINE} FROM (SELECT 7 AS seq, ?2 AS at_ms, 'notice' AS type, '{{}}' AS data) e
        LEFT JOIN (SELECT NULL AS run_id) r ON 1
    """
    ((line,),) = connection.execute(sql, ("s1", at_ms)).fetchall()
    connection.close()
    assert line.encode() == envelope(7, at_ms, "notice", "s1", None, b"{}")
    assert format_time(at_ms) in line


@pytest.mark.parametrize("after", [0, 1, 6, 14, 15])
def test_an_export_after_an_event_has_the_lines_after_it(keeper: Keeper, store: SqliteStore, after: int) -> None:
    fill(keeper)
    assert exported(store, after) == served(store, after)


def test_large_events_are_read_in_small_pages_and_one_too_large_for_a_page_alone(
    keeper: Keeper, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOURNAL_PAGE_BYTES", 10_000)
    notices(keeper, *("x" * 2_000 for _ in range(20)), "y" * 50_000, *("z" for _ in range(20)))
    pages = list(store.iterate_journal(store.read_journal("s1")))
    assert sum(page.count for page in pages) == 41
    assert [page.count for page in pages if len(page.lines) > 10_000] == [1]
    assert b"".join(page.lines for page in pages) == served(store)
    assert store.read_journal_page("s1", 0, 41).lines + b"\n" == served(store).replace(b"}\n{", b"},{")
    page = store.read_matching("s1", 0, 41, EventFilter(types=("notice",)), 41)
    assert 0 < page.count < 6
    assert served(store).startswith(page.lines)


def test_an_export_of_a_journal_that_lacks_an_event_fails_instead_of_leaving_it_out(
    keeper: Keeper, store: SqliteStore, folder: Path
) -> None:
    fill(keeper)
    tamper(folder, "DELETE FROM event WHERE seq = 5")
    with pytest.raises(StoreUnavailable, match="is not in the store"):
        exported(store)


def test_an_export_has_what_was_there_when_it_began(keeper: Keeper, store: SqliteStore) -> None:
    fill(keeper)
    state = store.read_journal("s1")
    notices(keeper, "later")
    assert len(b"".join(page.lines for page in store.iterate_journal(state)).splitlines()) == 15


def test_a_page_of_the_api_is_bounded_and_refuses_a_cursor_beyond_the_end(keeper: Keeper, store: SqliteStore) -> None:
    fill(keeper)
    page = store.read_journal_page("s1", 3, 4)
    assert (page.count, page.last_seq) == (4, 7)
    assert [json.loads(f"[{page.lines.decode()}]")[i]["seq"] for i in range(4)] == [4, 5, 6, 7]
    empty = store.read_journal_page("s1", 15, 4)
    assert (empty.count, empty.last_seq, empty.lines) == (0, 15, b"")
    for after in (16, -1, 1 << 63):
        with pytest.raises(CursorOutOfRange):
            store.read_journal_page("s1", after, 4)
    with pytest.raises(NotFound):
        store.read_journal_page("nobody", 0, 4)


# --- selections ----------------------------------------------------------------------------------------------------


def test_events_are_selected_by_type_and_run(keeper: Keeper, store: SqliteStore) -> None:
    fill(keeper)
    run_id = store.read_events("s1", 8, 1)[0].run_id
    where = EventFilter(types=("run.accepted", "run.persisted"), run_id=run_id)
    page = store.read_matching("s1", 0, 15, where, 100)
    assert [json.loads(line)["seq"] for line in page.lines.splitlines()] == [9, 15]
    assert page.last_seq == 15
    first = store.read_matching("s1", 0, 15, where, 1)
    assert (first.count, first.last_seq) == (1, 9)


@pytest.mark.parametrize(("count", "start"), [(0, 15), (1, 14), (2, 7), (3, 7)])
def test_the_start_of_the_last_matching_events_is_found(
    keeper: Keeper, store: SqliteStore, count: int, start: int
) -> None:
    fill(keeper)
    where = EventFilter(types=("run.persisted",))
    assert store.find_start_of_last("s1", 15, where, count) == start


def test_the_poll_notices_commits_of_anybody_and_nothing_else(keeper: Keeper, store: SqliteStore) -> None:
    poll = store.poll_changes()
    assert [poll.changed(), poll.changed()] == [True, False]
    notices(keeper, "one")
    assert [poll.changed(), poll.changed()] == [True, False]
    poll.close()


# --- verification --------------------------------------------------------------------------------------------------


def test_a_journal_as_it_was_written_verifies_and_its_head_is_the_sessions(keeper: Keeper, store: SqliteStore) -> None:
    assert store.verify_journal("s1").problems == ()
    fill(keeper)
    found = store.verify_journal("s1")
    text = exported(store)
    assert (found.problems, found.events, found.size_bytes) == ((), 15, len(text))
    assert found.sha256 == hashlib.sha256(text).hexdigest()
    assert (found.state.first_seq, found.state.last_seq, found.state.covered) == (1, 15, True)
    assert found.state.head == query(store._path, "SELECT chain_hash FROM session")[0][0]


SHIFT = "UPDATE event SET seq = -seq WHERE seq > {0}", "UPDATE event SET seq = -seq {1} WHERE seq < 0"
ATTACKS = {
    "changed data": (["UPDATE event SET data = replace(data, 'hello', 'hullo') WHERE seq = 3"], {3}),
    "changed time": (["UPDATE event SET at_ms = at_ms + 1 WHERE seq = 9"], {9}),
    "changed type": (["UPDATE event SET type = 'notice' WHERE seq = 9"], {9}),
    "changed run": (["UPDATE event SET run = 1 WHERE seq = 9"], {9}),
    "no run": (["UPDATE event SET run = NULL WHERE seq = 9"], {9}),
    "changed run id": (["UPDATE run SET run_id = 'run_x' WHERE id = 1"], {2, 3, 4, 5, 6, 7, 8}),
    "appended behind a NUL": (["UPDATE event SET data = data || char(0) || 'more' WHERE seq = 4"], {4}),
    "changed hash": (["UPDATE event SET chain_hash = zeroblob(32) WHERE seq = 4"], {4, 5}),
    "removed": (["DELETE FROM event WHERE seq = 6"], {6, 7}),
    "removed first": (["DELETE FROM event WHERE seq = 1"], {1, 2}),
    "removed last": (["DELETE FROM event WHERE seq = 15"], {15}),
    "removed last, session adjusted": (
        ["DELETE FROM event WHERE seq = 15", "UPDATE session SET last_seq = 14"],
        {14},
    ),
    "removed and closed up": (
        ["DELETE FROM event WHERE seq = 6", *(part.format(6, "- 1") for part in SHIFT)]
        + ["UPDATE session SET last_seq = 14"],
        set(range(6, 15)),
    ),
    "inserted": (
        [part.format(6, "+ 1") for part in SHIFT]
        + [
            "INSERT INTO event (sid, seq, at_ms, type, data, kind, chain_hash)"
            " SELECT sid, 7, at_ms, 'notice', '{}', 'notice', chain_hash FROM event WHERE seq = 6",
            "UPDATE session SET last_seq = 16",
        ],
        set(range(7, 17)),
    ),
    "inserted at the end": (
        [
            "INSERT INTO event (sid, seq, at_ms, type, data, kind, chain_hash)"
            " SELECT sid, 16, at_ms, 'notice', '{}', 'notice', chain_hash FROM event WHERE seq = 15",
        ],
        {16},
    ),
    "swapped": (
        [
            "UPDATE event SET seq = -1 WHERE seq = 4",
            "UPDATE event SET seq = 4 WHERE seq = 9",
            "UPDATE event SET seq = 9 WHERE seq = -1",
        ],
        {4, 5, 9, 10},
    ),
    "moved to another session": (["UPDATE session SET id = 's2'"], set(range(1, 16))),
    "head": (["UPDATE session SET chain_hash = zeroblob(32)"], {15}),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_another_process_changed_is_found_where_it_is(keeper: Keeper, attack: str) -> None:
    store = keeper.store
    fill(keeper)
    noted = store.verify_journal("s1").state
    statements, seqs = ATTACKS[attack]
    tamper(store._path.parent, *statements)
    session_id = "s2" if attack == "moved to another session" else "s1"
    found = store.verify_journal(session_id)
    assert {problem.seq for problem in found.problems} == seqs, found.problems
    assert noted.last_seq == 15


def test_a_forger_who_rewrites_all_hashes_is_betrayed_by_one_that_was_noted(keeper: Keeper, folder: Path) -> None:
    store = keeper.store
    fill(keeper)
    middle = query(store._path, "SELECT chain_hash FROM event WHERE seq = 7")[0][0]
    before = query(store._path, "SELECT chain_hash FROM event WHERE seq = 2")[0][0]
    noted = store.verify_journal("s1").state.head
    chain, statements = bytes(before), []  # type: ignore[call-overload]
    for line in exported(store, 2).splitlines():
        seq = json.loads(line)["seq"]
        chain = hashlib.sha256(chain + line.replace(b"hello", b"hullo")).digest()
        statements.append(f"UPDATE event SET chain_hash = x'{chain.hex()}' WHERE seq = {seq}")
    statements.append("UPDATE event SET data = replace(data, 'hello', 'hullo') WHERE seq > 2")
    statements.append(f"UPDATE session SET chain_hash = x'{chain.hex()}'")
    tamper(folder, *statements)
    assert store.verify_journal("s1").problems == ()
    for expected, seq in ((noted, None), (noted, 15), (middle, 7)):
        assert [p.fault for p in store.verify_journal("s1", expected, seq).problems] == ["head"]  # type: ignore[arg-type]
    assert store.verify_journal("s1", bytes(before), 2).problems == ()  # type: ignore[call-overload]


def test_a_noted_hash_is_found_again_after_the_journal_has_grown(keeper: Keeper, store: SqliteStore) -> None:
    fill(keeper)
    noted = store.verify_journal("s1").state
    notices(keeper, "later")
    for seq in (None, 15):
        found = store.verify_journal("s1", noted.head, seq)
        assert found.problems == () and found.expected is not None and found.expected.seq == 15
    assert store.verify_journal("s1", noted.head, 14).problems
    assert store.verify_journal("s1", GENESIS_HASH, 0).problems == ()


# --- pruned journals -----------------------------------------------------------------------------------------------


PRUNE = ("UPDATE session SET journal_floor = 7", "DELETE FROM event WHERE seq < 7")


def test_a_pruned_journal_verifies_from_the_hash_that_was_kept(keeper: Keeper, folder: Path) -> None:
    fill(keeper)
    store = keeper.store
    tamper(
        folder,
        "CREATE TABLE IF NOT EXISTS journal_anchor (sid INTEGER, seq INTEGER, chain_hash BLOB)",
        "INSERT INTO journal_anchor SELECT sid, seq, chain_hash FROM event WHERE seq = 6",
        *PRUNE,
    )
    found = store.verify_journal("s1")
    assert (found.problems, found.events, found.state.first_seq, found.state.covered) == ((), 9, 7, True)
    assert exported(store) == served(store, 6)
    assert json.loads(exported(store).splitlines()[0])["seq"] == 7
    tamper(folder, "UPDATE event SET data = '{}' WHERE seq = 7")
    assert [p.seq for p in store.verify_journal("s1").problems] == [7]


def test_without_that_hash_the_first_event_is_taken_on_trust_and_no_other(keeper: Keeper, folder: Path) -> None:
    fill(keeper)
    store = keeper.store
    tamper(folder, "DROP TABLE IF EXISTS journal_anchor", *PRUNE)
    found = store.verify_journal("s1")
    assert (found.problems, found.state.covered, found.state.start.seq) == ((), False, 7)
    tamper(folder, "UPDATE event SET data = '{}' WHERE seq = 8")
    assert [p.seq for p in store.verify_journal("s1").problems] == [8]


def test_events_pruned_during_a_check_are_no_problem(keeper: Keeper, folder: Path) -> None:
    fill(keeper)
    store = keeper.store
    asked: list[int] = []
    inner = store._reader

    def prune_at_the_second_statement():  # type: ignore[no-untyped-def]
        asked.append(1)
        if len(asked) == 2:
            tamper(folder, *PRUNE)
        return inner()

    store._reader = prune_at_the_second_statement  # type: ignore[method-assign]
    found = store.verify_journal("s1")
    assert (found.problems, found.state.first_seq) == ((), 7)


# --- numbers -------------------------------------------------------------------------------------------------------


def test_the_numbers_of_a_journal_add_up_to_its_export(keeper: Keeper, store: SqliteStore) -> None:
    fill(keeper)
    stats = store.read_journal_stats("s1")
    text = exported(store)
    assert (stats.events, stats.size_bytes) == (15, len(text))
    assert sum(item.size_bytes for item in stats.runs) == len(text)
    assert [item.run_id is None for item in stats.runs] == [True, False, False]
    assert [(item.first_seq, item.last_seq) for item in stats.runs] == [(1, 1), (2, 8), (9, 15)]
    by_type = {item.type: item.events for item in stats.types}
    assert by_type["run.accepted"] == 2 and by_type["server.started"] == 1


def test_an_empty_journal_has_numbers_and_verifies(store: SqliteStore) -> None:
    store.create_session(header("s9"))
    stats = store.read_journal_stats("s9")
    assert (stats.events, stats.size_bytes, stats.first_at_ms, stats.types, stats.runs) == (0, 0, None, (), ())
    assert exported(store, session_id="s9") == b""
    with pytest.raises(NotFound):
        store.read_journal_stats("nobody")
    with pytest.raises(NotFound):
        store.verify_journal("nobody")
