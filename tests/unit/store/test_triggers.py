"""What the triggers refuse to somebody with an SQL prompt: the standard library's SQLite, its settings, no store open.

Each attack runs with foreign keys and recursive triggers off, as a stranger's connection has them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aura.store.open import open_store
from tests.unit.store.store_kit import NOW_MS, Keeper, header, messages_of


@pytest.fixture
def database(folder: Path) -> Path:
    """A closed store: `live` with a settled run and a live one, `base` with a fork, `ice` frozen."""
    store = open_store(folder)
    for name in ("live", "base", "ice"):
        store.create_session(header(name))
    keeper = Keeper(store, "live")
    keeper.complete("r1")
    keeper.accept("r2")
    base = Keeper(store, "base")
    base.save(messages_of("a", "b"))
    store.fork("base", "child", at_ms=NOW_MS)
    ice = Keeper(store, "ice")
    ice.complete("r3")
    for held in (keeper, base, ice):
        held.release()
    store.freeze("ice", at_ms=NOW_MS)
    store.close()
    return folder / "aura.db"


@pytest.fixture
def prompt(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA recursive_triggers = OFF")
        yield connection


def dump(connection: sqlite3.Connection) -> list[str]:
    return list(connection.iterdump())


ALL_EVENT = "id, sid, seq, at_ms, run, type, data, kind, ext, chain_hash"
REST = "at_ms, run, type, '[]', kind, ext, chain_hash"
ALL_RUN = (
    "run_id, sid, request_id, kind, text, on_input, request_digest, state, stats, "
    "accepted_seq, last_seq, accepted_at_ms"
)

ATTACKS = [
    # events
    "UPDATE event SET data = '{}'",
    "UPDATE OR REPLACE event SET seq = 1 WHERE seq = 2",
    "DELETE FROM event",
    "DELETE FROM event WHERE seq = 1",
    f"INSERT OR REPLACE INTO event ({ALL_EVENT}) SELECT id, sid, seq, {REST} FROM event",
    f"REPLACE INTO event ({ALL_EVENT}) SELECT NULL, sid, seq, {REST} FROM event",
    f"REPLACE INTO event ({ALL_EVENT}) SELECT 1, sid, 99, {REST} FROM event LIMIT 1",
    f"INSERT INTO event ({ALL_EVENT}) SELECT NULL, sid, 500, {REST} FROM event LIMIT 1",
    f"INSERT INTO event ({ALL_EVENT}) SELECT NULL, 77, 1, {REST} FROM event LIMIT 1",
    f"INSERT INTO event ({ALL_EVENT}) SELECT NULL, sid, 1 + max(seq), {REST} FROM event"
    " WHERE sid = (SELECT sid FROM session WHERE id = 'ice')",
    f"INSERT INTO event ({ALL_EVENT}) SELECT * FROM event WHERE seq = 1 ON CONFLICT DO UPDATE SET data = '[]'",
    # sessions
    "UPDATE session SET frozen = 0 WHERE id = 'ice'",
    "UPDATE session SET title = 'x' WHERE id = 'ice'",
    "UPDATE session SET id = 'other' WHERE id = 'live'",
    "UPDATE OR REPLACE session SET sid = (SELECT sid FROM session WHERE id = 'ice') WHERE id = 'live'",
    "UPDATE session SET last_seq = last_seq - 1 WHERE id = 'live'",
    "UPDATE session SET last_seq = last_seq + 1 WHERE id = 'live'",
    "UPDATE session SET epoch = epoch - 1 WHERE id = 'live'",
    "UPDATE session SET journal_floor = 1000 WHERE id = 'live'",
    "UPDATE session SET head = (SELECT head FROM session WHERE id = 'base') WHERE id = 'live'",
    "DELETE FROM session WHERE id = 'ice'",
    "DELETE FROM session WHERE id = 'live'",
    "REPLACE INTO session SELECT * FROM session WHERE id = 'live'",
    # conversations
    "UPDATE message SET body = '{}'",
    "DELETE FROM message WHERE idx = 0",
    "REPLACE INTO message SELECT * FROM message",
    "REPLACE INTO message (chain, idx, ordinal, role, body) SELECT chain, idx, ordinal, role, '{}' FROM message",
    "REPLACE INTO message (id, chain, idx, role, body) SELECT id, chain, idx + 100, role, '{}' FROM message",
    "INSERT INTO message (chain, idx, ordinal, role, body) SELECT r.chain, 50, 50, 'user', '{}' FROM revision r"
    " JOIN session s ON s.head = r.id WHERE s.id = 'ice'",
    "UPDATE revision SET tail = ''",
    "UPDATE OR REPLACE revision SET n = 1 WHERE n = 2",
    "DELETE FROM revision WHERE id = (SELECT head FROM session WHERE id = 'live')",
    "DELETE FROM revision WHERE sid = (SELECT sid FROM session WHERE id = 'ice')",
    "REPLACE INTO revision SELECT * FROM revision",
    "UPDATE chain SET base_length = 0",
    "DELETE FROM chain",
    "DELETE FROM chain WHERE id = (SELECT base FROM chain WHERE base IS NOT NULL)",
    "REPLACE INTO chain SELECT * FROM chain",
    "UPDATE prompt SET text = 'x'",
    "DELETE FROM prompt",
    "REPLACE INTO prompt SELECT id, sha256, 'x' FROM prompt",
    "REPLACE INTO prompt (sha256, text) SELECT sha256, 'x' FROM prompt",
    # runs
    "UPDATE run SET outcome = 'failed' WHERE state = 'persisted'",
    "UPDATE run SET state = 'running' WHERE state = 'persisted'",
    "UPDATE run SET run_id = 'run_x' WHERE state = 'accepted'",
    "UPDATE run SET text = 'x' WHERE state = 'accepted'",
    "UPDATE OR REPLACE run SET id = 1 WHERE state = 'accepted'",
    "DELETE FROM run",
    "REPLACE INTO run SELECT * FROM run",
    f"REPLACE INTO run ({ALL_RUN}) SELECT 'run_new', sid, 'r', kind, text, on_input, request_digest, 'accepted', stats,"
    " 99, 99, 1 FROM run WHERE state = 'accepted'",
    f"INSERT INTO run ({ALL_RUN}) SELECT 'run_new', sid, 'r', kind, text, on_input, request_digest, 'accepted', stats,"
    " 99, 99, 1 FROM run WHERE sid = (SELECT sid FROM session WHERE id = 'ice')",
    "UPDATE request SET run = 1",
    "DELETE FROM request",
    "REPLACE INTO request SELECT scope, request_id, 'x', run FROM request",
]  # fmt: skip


@pytest.mark.requirement("store.frozen.irreversible")
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_changes_nothing(prompt: sqlite3.Connection, attack: str) -> None:
    before = dump(prompt)
    with pytest.raises(sqlite3.IntegrityError):
        prompt.execute(attack)
    prompt.rollback()
    assert dump(prompt) == before


def test_every_attack_would_have_done_something_without_the_triggers(prompt: sqlite3.Connection) -> None:
    for (name,) in prompt.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        prompt.execute(f"DROP TRIGGER {name}")
    prompt.commit()
    for attack in ATTACKS:
        try:
            assert prompt.execute(attack).rowcount > 0, attack
        except sqlite3.IntegrityError:
            pass  # a constraint stands behind the trigger too
        prompt.rollback()


def test_events_below_the_floor_may_go_and_the_next_seq_is_kept(prompt: sqlite3.Connection, folder: Path) -> None:
    prompt.execute("UPDATE session SET journal_floor = last_seq + 1 WHERE id = 'base'")
    sid = "(SELECT sid FROM session WHERE id = 'base')"
    assert prompt.execute(f"DELETE FROM event WHERE sid = {sid}").rowcount == 1
    prompt.commit()
    prompt.close()
    store = open_store(folder)
    keeper = Keeper(store, "base")
    keeper.save(messages_of("c"))
    assert [row.seq for row in store.read_events("base", 1, 10)] == [2]
    keeper.release()
    store.close()
