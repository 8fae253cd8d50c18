"""The journal's promises (dense seq, exact lines, hash chain) and who may write it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from aura import events as e
from aura.clock import format_time
from aura.errors import CursorOutOfRange, LeaseLost, SessionLocked
from aura.store import protocol as p
from aura.store.sqlite.journal import GENESIS_HASH
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import ME, NOW_MS, Keeper, Reopen, header, messages_of, persisted, query, stamp


def notice(text: str) -> e.Notice:
    return e.Notice(level="info", origin="test", message=text)


@pytest.mark.requirement("journal.line")
def test_seq_is_dense_and_lines_are_exact(keeper: Keeper) -> None:
    receipt = keeper.commit([notice("é\u2028\x00\ud83d"), notice('"\\')])
    assert (receipt.first_seq, receipt.last_seq, receipt.run) == (1, 2, None)
    keeper.accept()
    rows = keeper.store.read_events("s1", 0, 10)
    assert [row.seq for row in rows] == [1, 2, 3]
    head = f'{{"seq":1,"time":"{format_time(NOW_MS)}","type":"notice","session_id":"s1","run_id":null,"data":'
    body = '{"level":"info","source":"test","message":"é\u2028\\u0000\ufffd"}}'
    assert rows[0].line == (head + body).encode()
    for row in rows:
        value = json.loads(row.line)
        assert list(value) == ["seq", "time", "type", "session_id", "run_id", "data"]
        assert (value["seq"], value["type"], value["run_id"]) == (row.seq, row.type, row.run_id)


def test_the_hash_chain_can_be_recomputed_from_the_served_lines(keeper: Keeper, folder: Path) -> None:
    keeper.complete("r1")
    keeper.complete("r2")
    expected = GENESIS_HASH
    stored = query(folder / "aura.db", "SELECT chain_hash FROM event ORDER BY seq")
    rows = keeper.store.read_events("s1", 0, 100)
    assert len(rows) == len(stored) == 14
    for row, (chain_hash,) in zip(rows, stored, strict=True):
        expected = hashlib.sha256(expected + row.line).digest()
        assert chain_hash == expected
    assert query(folder / "aura.db", "SELECT chain_hash, last_seq FROM session") == [(expected, 14)]


def test_events_are_paged_and_a_cursor_beyond_the_end_is_out_of_range(keeper: Keeper) -> None:
    keeper.commit([notice(str(index)) for index in range(600)])
    assert [row.seq for row in keeper.store.read_events("s1", 598, 10)] == [599, 600]
    assert [row.seq for row in keeper.store.read_events("s1", 0, 3)] == [1, 2, 3]
    assert keeper.store.read_events("s1", 600, 10) == []
    for after in (601, -1, 10**30, -(10**30)):
        with pytest.raises(CursorOutOfRange) as caught:
            keeper.store.read_events("s1", after, 10)
        assert caught.value.details == {"last_seq": 600}
    assert keeper.store.read_last_seq("s1") == 600


def test_a_batch_that_is_repeated_is_stored_once_and_answered_alike(keeper: Keeper) -> None:
    run = keeper.accept()
    saved = keeper.checkpoint(messages_of("a"))
    batch = p.Batch("b1", stamp([e.RunStarted(run_id=run.id, message_id="m"), persisted(saved)], run.id), saved)
    first = keeper.store.commit(keeper.lease, batch).result(10)
    again = keeper.store.commit(keeper.lease, batch).result(10)
    assert again == first
    keeper.store.request_cancel(run.id, reason="request", message=None, at_ms=NOW_MS)
    later = keeper.store.commit(keeper.lease, batch).result(10)
    assert (later.first_seq, later.last_seq) == (first.first_seq, first.last_seq) == (2, 3)
    assert keeper.store.read_last_seq("s1") == 4
    assert len(keeper.store.list_revisions("s1")) == 2


def test_a_save_without_events_is_dated_by_its_header(keeper: Keeper) -> None:
    keeper.commit([], None, keeper.checkpoint(messages_of("a")))
    assert keeper.store.list_revisions("s1")[0].at_ms == keeper.store.get_session("s1").updated_at_ms
    assert keeper.store.read_last_seq("s1") == 0


def test_the_seq_of_the_latest_save_is_known(keeper: Keeper) -> None:
    keeper.commit([notice("x")])
    keeper.save(messages_of("a"))
    keeper.commit([notice("y")])
    stored = keeper.store.load_conversation("s1")
    assert (stored.persisted_seq, stored.last_seq) == (2, 3)


@pytest.mark.requirement("store.lease.exclusive")
def test_a_session_is_held_once(keeper: Keeper, reopen: Reopen) -> None:
    other = reopen()
    for store in (keeper.store, other):
        with pytest.raises(SessionLocked):
            store.acquire("s1", ME)
    assert other.find_holder("s1") is not None
    keeper.commit([notice("claims the epoch")])
    assert other.find_holder("s1") == ME
    keeper.release()
    assert other.find_holder("s1") is None
    lease = other.acquire("s1", p.Holder(1))
    other.release(lease)
    other.release(lease)


def test_a_holder_whose_session_was_claimed_by_another_writes_nothing(store: SqliteStore, reopen: Reopen) -> None:
    store.create_session(header("s1"))
    late = Keeper(store, "s1")
    late.commit([notice("first holder")])
    late.lease.lock.close()  # as if the system had let its lock go under it
    late = _with_open_lock(late)
    other_store = reopen()
    new = Keeper(other_store, "s1")
    new.commit([notice("second holder")])
    with pytest.raises(LeaseLost):
        late.commit([notice("too late")])
    with pytest.raises(LeaseLost):
        late.accept()
    with pytest.raises(LeaseLost):
        late.save(messages_of("too late"))
    assert store.read_last_seq("s1") == 2
    assert store.get_session("s1").messages == 0
    assert store.list_runs(p.RunFilter("s1")).items == ()
    new.commit([notice("goes on")])
    new.release()


def test_a_holder_that_never_wrote_loses_to_one_that_did(store: SqliteStore, reopen: Reopen) -> None:
    store.create_session(header("s1"))
    idle = Keeper(store, "s1")
    idle.lease.lock.close()
    idle = _with_open_lock(idle)
    other = Keeper(reopen(), "s1")
    other.commit([notice("mine")])
    with pytest.raises(LeaseLost):
        idle.commit([notice("not yours")])
    other.release()


def _with_open_lock(keeper: Keeper) -> Keeper:
    """Let the keeper believe that it still holds its lock."""
    import os
    from dataclasses import replace

    from aura.store.sqlite.locks import SessionLock

    keeper.lease = replace(keeper.lease, lock=SessionLock(os.open(os.devnull, os.O_RDONLY)))
    return keeper


def test_an_epoch_is_claimed_by_each_holder_in_turn(store: SqliteStore, folder: Path) -> None:
    store.create_session(header("s1"))
    for expected in (1, 2, 3):
        keeper = Keeper(store, "s1")
        keeper.commit([notice("x")])
        keeper.commit([notice("y")])
        keeper.release()
        assert query(folder / "aura.db", "SELECT epoch FROM session") == [(expected,)]
    idle = Keeper(store, "s1")
    idle.release()
    assert query(folder / "aura.db", "SELECT epoch FROM session") == [(3,)]
