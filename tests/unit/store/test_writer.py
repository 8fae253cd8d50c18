"""The writer thread: group commit, isolation of failures, a full disk, waits, the WAL's size. Over a real database."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from aura import events as e
from aura import limits
from aura.errors import (
    CommitInDoubt,
    Internal,
    NotFound,
    Overloaded,
    StoreFull,
    StoreUnavailable,
)
from aura.ids import new_run_id
from aura.store import protocol as p
from aura.store.sqlite import locks
from aura.store.sqlite.bell import Bell
from aura.store.sqlite.database import enter_wal, open_writer
from aura.store.sqlite.locks import Ballast, WriterLock
from aura.store.sqlite.store import SqliteStore
from aura.store.sqlite.writer import Writer
from aura.store.waiting import wait
from tests.unit.store.store_kit import NOW_MS, Keeper, Reopen, header, new_run, query, stamp


def notice(text: str = "x") -> e.Notice:
    return e.Notice(level="info", origin="test", message=text)


def batch(index: int, run_id: str | None = None, essential: bool = False, text: str = "x") -> p.Batch:
    return p.Batch(f"b{index}", stamp([notice(text)], run_id), essential=essential)


@contextmanager
def writers_lock(folder: Path) -> Iterator[None]:
    """Hold the writers' lock as another process would."""
    lock = WriterLock(folder)
    with lock.held():
        yield
    lock.close()


def queued(keeper: Keeper, folder: Path, fill: Callable[[], list[Future[p.Receipt]]]) -> list[Future[p.Receipt]]:
    """Queue units while the writer is kept out, so that it meets them as one group."""
    with writers_lock(folder):
        first = keeper.store.commit(keeper.lease, batch(-1))  # occupies the writer until the lock is free
        futures = fill()
    first.result(10)
    return futures


def test_many_units_share_a_commit(keeper: Keeper, folder: Path) -> None:
    before = keeper.store.commit_count
    futures = queued(keeper, folder, lambda: [keeper.store.commit(keeper.lease, batch(i)) for i in range(100)])
    receipts = [future.result(10) for future in futures]
    assert [receipt.first_seq for receipt in receipts] == list(range(2, 102))
    assert keeper.store.commit_count - before <= 2


def test_a_failing_unit_takes_none_of_its_neighbours_with_it(keeper: Keeper, folder: Path) -> None:
    futures = queued(
        keeper,
        folder,
        lambda: [
            keeper.store.commit(keeper.lease, batch(1)),
            keeper.store.commit(keeper.lease, batch(2, new_run_id(NOW_MS))),
            keeper.store.commit(keeper.lease, batch(3)),
        ],
    )
    assert futures[0].result(10).last_seq == 2
    with pytest.raises(NotFound):
        futures[1].result(10)
    assert futures[2].result(10).last_seq == 3
    assert keeper.store.read_last_seq("s1") == 3


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[tuple[Writer, apsw.Connection]]:
    """A writer over a table of its own, and its connection."""
    connection = open_writer(tmp_path / "bare.db")
    enter_wal(connection)
    connection.execute("CREATE TABLE t (x)").fetchall()
    writer = Writer(connection, WriterLock(tmp_path), Ballast(tmp_path, 1 << 20), Bell())
    yield writer, connection
    writer.close()


def insert(connection: apsw.Connection) -> str:
    connection.execute("INSERT INTO t VALUES (1)").fetchall()
    return "stored"


def count(connection: apsw.Connection) -> object:
    return connection.execute("SELECT count(*) FROM t").fetchall()[0][0]


@pytest.mark.requirement("store.atomic-writes")
def test_a_failing_commit_fails_every_unit_and_the_writer_lives_on(bare: tuple[Writer, apsw.Connection]) -> None:
    writer, connection = bare
    refuse = [True]
    connection.set_commit_hook(lambda: refuse[0])
    futures = [writer.submit(insert, "s") for _ in range(3)]
    for future in futures:
        with pytest.raises((StoreUnavailable, Internal)):
            future.result(10)
    refuse[0] = False
    assert writer.submit(insert, "s").result(10) == "stored"
    assert writer.submit(count, "s").result(10) == 1


def test_a_unit_that_ends_the_transaction_itself_fails_its_group_only(bare: tuple[Writer, apsw.Connection]) -> None:
    writer, _ = bare

    def rude(connection: apsw.Connection) -> None:
        connection.execute("ROLLBACK").fetchall()
        raise ValueError("rolled back")

    with pytest.raises(Internal):
        writer.submit(rude, "s").result(10)
    assert writer.submit(insert, "s").result(10) == "stored"


def test_a_ballast_that_cannot_be_given_up_does_not_end_the_writer(
    bare: tuple[Writer, apsw.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, _ = bare

    def stuck(_ballast: Ballast) -> bool:
        raise OSError(errno.EROFS, "read-only")

    def starve(_connection: apsw.Connection) -> None:
        raise apsw.FullError("no room")

    monkeypatch.setattr(Ballast, "give_up", stuck)
    with pytest.raises(StoreFull):
        writer.submit(starve, "s", essential=True).result(10)
    assert writer.submit(insert, "s").result(10) == "stored"


def test_locks_that_fail_while_the_wal_is_begun_anew_do_not_end_the_writer(
    bare: tuple[Writer, apsw.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, _ = bare

    def broken(_writer: Writer) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(limits, "WAL_CHECKPOINT_BYTES", 1)
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_restart_wal", broken)
        patch.setattr(writer, "_restart_bytes", 1)
        assert writer.submit(insert, "s").result(10) == "stored"
    assert writer.submit(insert, "s").result(10) == "stored"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_ends_tells_everybody_who_waits_and_refuses_later_units(
    bare: tuple[Writer, apsw.Connection],
) -> None:
    writer, _ = bare
    begun, go_on = threading.Event(), threading.Event()

    def end(_connection: apsw.Connection) -> None:
        begun.set()
        go_on.wait(10)
        raise KeyboardInterrupt

    under_way = writer.submit(end, "s")
    assert begun.wait(10)
    queued_up = writer.submit(insert, "s")
    go_on.set()
    with pytest.raises(CommitInDoubt):
        under_way.result(10)
    with pytest.raises(StoreUnavailable, match="ended"):
        queued_up.result(10)
    with pytest.raises(StoreUnavailable, match="closed"):
        writer.submit(insert, "s")


def test_a_listener_that_raises_stops_neither_the_writer_nor_the_other_listeners(
    keeper: Keeper, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[object] = []

    def faulty(_: object) -> None:
        raise ValueError("faulty listener")

    keeper.store.watch(faulty)
    subscription = keeper.store.watch(heard.append)
    keeper.commit([notice()])
    keeper.commit([notice()])
    assert heard == [frozenset({"s1"})] * 2
    assert "a listener of the store failed" in caplog.text
    subscription.close()
    keeper.commit([notice()])
    assert len(heard) == 2


def test_a_unit_that_could_not_begin_in_time_is_taken_back(keeper: Keeper, folder: Path) -> None:
    with writers_lock(folder):
        future = keeper.store.commit(keeper.lease, batch(1))
        with pytest.raises(StoreUnavailable, match="over 50 ms"):
            wait(future, 50)
    assert keeper.commit([notice("later")]).first_seq == 1
    assert keeper.store.read_last_seq("s1") == 1


def test_a_wait_that_ends_with_the_commit_returns_its_value() -> None:
    future: Future[str] = Future()
    future.set_running_or_notify_cancel()
    future.set_result("made it")
    assert wait(future, 0) == "made it"


def test_a_full_queue_is_overloaded_and_loses_nothing(
    keeper: Keeper, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WRITE_QUEUE_MAX_COUNT", 3)
    futures: list[Future[p.Receipt]] = []
    with writers_lock(folder), pytest.raises(Overloaded):
        for index in range(6):  # one or none is with the writer, three wait
            futures.append(keeper.store.commit(keeper.lease, batch(index)))
    assert [future.result(10).first_seq for future in futures] == list(range(1, len(futures) + 1))


def test_closing_commits_what_is_queued_and_leaves_one_file(folder: Path, reopen: Reopen) -> None:
    store = reopen()
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    futures = [store.commit(keeper.lease, batch(index)) for index in range(50)]
    store.close()
    assert [future.result(0).first_seq for future in futures] == list(range(1, 51))
    assert not (folder / "aura.db-wal").exists()
    assert query(folder / "aura.db", "SELECT last_seq FROM session") == [(50,)]
    for verb in (lambda: store.create_session(header("s2")), lambda: store.get_session("s1")):
        with pytest.raises(StoreUnavailable, match="closed"):
            verb()
    store.close()
    keeper.release()


def test_closing_truncates_the_wal_while_another_process_keeps_the_file_open(reopen: Reopen, folder: Path) -> None:
    store, other = reopen(), reopen()
    store.create_session(header("s1"))
    other.get_session("s1")
    assert (folder / "aura.db-wal").stat().st_size > 0
    store.close()
    assert (folder / "aura.db-wal").stat().st_size == 0
    assert other.get_session("s1").id == "s1"


def test_a_reader_of_another_process_does_not_hold_up_closing(reopen: Reopen, folder: Path) -> None:
    store = reopen()
    store.create_session(header("s1"))
    reader = apsw.Connection(str(folder / "aura.db"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN").fetchall()
    reader.execute("SELECT * FROM session").fetchall()
    store.create_session(header("s2"))
    store.close()
    assert reader.execute("SELECT count(*) FROM session").fetchall() == [(1,)]
    reader.close()
    assert reopen().get_session("s2").id == "s2"


def test_the_writers_lock_file_is_given_back(reopen: Reopen) -> None:
    import os

    before = len(os.listdir("/proc/self/fd"))
    for index in range(3):
        store = reopen()
        store.create_session(header(f"s{index}"))
        store.close()
    assert len(os.listdir("/proc/self/fd")) == before


def fill_up(store: SqliteStore, folder: Path) -> None:
    """Let the database have no further page, as a disk without room would."""
    store.prepare()
    writer = store._writer
    assert writer is not None
    pages = writer.submit(lambda c: c.execute("PRAGMA page_count").fetchall()[0][0], "s").result(10)
    writer.submit(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchall(), "s").result(10)


def make_room(store: SqliteStore) -> None:
    assert store._writer is not None
    store._writer.submit(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall(), "s").result(10)


@pytest.mark.requirement("store.atomic-writes.failure")
def test_a_full_database_refuses_units_and_keeps_what_was_stored(keeper: Keeper, folder: Path) -> None:
    keeper.commit([notice()])
    fill_up(keeper.store, folder)
    with pytest.raises(StoreFull):
        keeper.commit([notice("y" * 100_000)])
    assert keeper.store.read_last_seq("s1") == 1
    make_room(keeper.store)
    assert keeper.commit([notice("y" * 100_000)]).first_seq == 2


def test_a_unit_too_large_for_the_disk_does_not_cost_an_essential_neighbour(keeper: Keeper, folder: Path) -> None:
    keeper.commit([notice()])
    fill_up(keeper.store, folder)
    large, small = queued(
        keeper,
        folder,
        lambda: [
            keeper.store.commit(keeper.lease, batch(1, text="y" * 1_000_000)),
            keeper.store.commit(keeper.lease, batch(2, essential=True)),
        ],
    )
    with pytest.raises(StoreFull):
        large.result(10)
    assert small.result(10).first_seq == 3


def test_the_ballast_is_made_and_given_up_once(tmp_path: Path) -> None:
    ballast = Ballast(tmp_path, 1 << 16)
    ballast.ensure()
    ballast.ensure()
    assert (tmp_path / ".ballast").stat().st_blocks * 512 >= 1 << 16
    assert ballast.give_up() is True
    assert ballast.give_up() is False
    assert list(tmp_path.iterdir()) == []


def test_a_ballast_that_a_power_cut_left_short_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / ".ballast").write_bytes(b"")
    (tmp_path / ".ballast.part").write_bytes(b"x")
    Ballast(tmp_path, 1 << 16).ensure()
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [(".ballast", 1 << 16)]


def test_many_threads_may_make_the_ballast_at_once(tmp_path: Path) -> None:
    barrier, errors = threading.Barrier(16), list[Exception]()
    ballasts = [Ballast(tmp_path, 1 << 20) for _ in range(16)]

    def ensure(index: int) -> None:
        barrier.wait(10)
        try:
            ballasts[index].ensure()
        except OSError as error:
            errors.append(error)

    for _ in range(5):
        threads = [threading.Thread(target=ensure, args=(index,)) for index in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert errors == []
        assert [path.name for path in tmp_path.iterdir()] == [".ballast"]
        ballasts[0].give_up()


def test_new_runs_are_refused_until_there_is_room_for_the_ballast(
    keeper: Keeper, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = keeper.store.accept(keeper.lease, new_run("r0"))
    (folder / ".ballast").unlink()

    def no_room(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(locks.os, "posix_fallocate", no_room)
        with pytest.raises(StoreFull):
            keeper.accept("r1")
        assert keeper.store.accept(keeper.lease, new_run("r0")).run == earlier.run, "a replay needs no room"
        assert not list(folder.glob(".ballast*"))
    keeper.commit([e.RunFinished(outcome="cancelled"), e.RunPersisted()], earlier.run.id)
    assert keeper.accept("r1").state == "accepted"
    assert (folder / ".ballast").exists()


def test_the_wal_stays_small_while_readers_never_pause(keeper: Keeper, folder: Path) -> None:
    stop, reads = threading.Event(), [0, 0, 0]

    def read(which: int) -> None:
        while not stop.is_set():
            keeper.store.load_conversation("s1")
            keeper.store.read_events("s1", max(keeper.store.read_last_seq("s1") - 200, 0), 200)
            reads[which] += 1

    threads = [threading.Thread(target=read, args=(which,)) for which in range(3)]
    for thread in threads:
        thread.start()
    largest, text = 0, "y" * 50_000
    try:
        for _ in range(120):
            futures = [
                keeper.store.commit(keeper.lease, p.Batch(new_run_id(NOW_MS), stamp([notice(text)], None)))
                for _ in range(10)
            ]
            for future in futures:
                future.result(30)
            largest = max(largest, (folder / "aura.db-wal").stat().st_size)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert min(reads) > 10
    assert (folder / "aura.db").stat().st_size > 50 * 1024 * 1024
    assert largest <= 48 * 1024 * 1024  # never restarted it is over 60; a busy machine lets several restarts fail
    print(f"largest WAL {largest / 1e6:.1f} MB, reads {reads}")
