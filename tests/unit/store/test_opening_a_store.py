"""Opening: fresh, existing, migrated, foreign, newer, damaged, empty and read-only files; real full disks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from aura import events as e
from aura.errors import AuraError, StoreFull, StoreUnavailable
from aura.store import protocol as p
from aura.store.open import find_store, open_store
from aura.store.sqlite.database import DATABASE_NAME, enter_wal, open_writer
from aura.store.sqlite.migrate import APPLICATION_ID, Migration, find_version, migrate, read_migrations
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import NOW_MS, Keeper, exported, header, messages_of, sha256, stamp


def write_database(folder: Path, *statements: str) -> bytes:
    folder.mkdir(parents=True)
    connection = apsw.Connection(str(folder / DATABASE_NAME))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()
    return (folder / DATABASE_NAME).read_bytes()


def test_finding_a_store_that_is_not_there_makes_nothing(folder: Path) -> None:
    assert find_store(folder) is None
    assert not folder.parent.exists()


def test_a_new_store_is_private_to_its_owner(folder: Path) -> None:
    store = open_store(folder)
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    assert folder.stat().st_mode & 0o777 == 0o700
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"aura.db", "aura.db-wal", ".writer.lock", ".ballast", "s1.lock"}
    assert {path.stat().st_mode & 0o077 for path in folder.rglob("*")} == {0}
    keeper.release()
    store.close()


def test_a_store_is_found_again_with_everything_in_it(folder: Path) -> None:
    store = open_store(folder)
    made = store.create_session(header("s1"))
    store.close()
    for opened in (find_store(folder), open_store(folder)):
        assert opened is not None
        assert opened.get_session("s1") == made
        opened.close()


def test_a_relative_directory_stays_the_same_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(Path("a/sessions"))
    monkeypatch.chdir("/")
    store.create_session(header("s1"))
    store.close()
    assert (tmp_path / "a/sessions/aura.db").exists()


@pytest.mark.parametrize("name", ["a b?c#d%20e", "é", "with'quote"])
def test_any_directory_name_will_do(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path / name)
    store.create_session(header("s1"))
    assert [item.id for item in store.list_sessions(p.SessionFilter()).items] == ["s1"]
    store.close()
    assert (tmp_path / name / "aura.db").exists()


def test_a_directory_name_that_is_not_unicode_will_do_too(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    store = open_store(folder)
    store.create_session(header("s1"))
    assert store.get_session("s1").id == "s1"
    store.close()


def test_a_newer_database_is_refused_untouched(folder: Path) -> None:
    before = write_database(folder, f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 99")
    for opener in (open_store, find_store, lambda f: SqliteStore(f / DATABASE_NAME).prepare()):
        with pytest.raises(StoreUnavailable, match="schema 99"):
            opener(folder)  # type: ignore[operator]
    assert (folder / DATABASE_NAME).read_bytes() == before


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE other (x)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"]
)
def test_another_programs_database_is_refused_untouched(folder: Path, statement: str) -> None:
    before = write_database(folder, statement)
    for opener in (open_store, find_store, lambda f: SqliteStore(f / DATABASE_NAME).prepare()):
        with pytest.raises(StoreUnavailable, match="another program"):
            opener(folder)  # type: ignore[operator]
    assert (folder / DATABASE_NAME).read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be taken for one" * 100, b"x", b"\x00" * 8192]
)
def test_a_damaged_file_is_refused_untouched(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / DATABASE_NAME).write_bytes(content)
    for opener in (open_store, find_store):
        with pytest.raises(StoreUnavailable) as caught:
            opener(folder)  # type: ignore[operator]
        assert caught.value.hint
    assert (folder / DATABASE_NAME).read_bytes() == content


def test_a_database_damaged_in_the_middle_gives_the_code_and_no_traceback(folder: Path) -> None:
    store = open_store(folder)
    store.create_session(header("s1"))
    store.close()
    path = folder / DATABASE_NAME
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    opened = open_store(folder)
    with pytest.raises(StoreUnavailable):
        opened.list_sessions(p.SessionFilter())
    with pytest.raises(AuraError):
        opened.create_session(header("s2"))
    opened.close()


def test_an_empty_file_becomes_a_store(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / DATABASE_NAME).touch()
    store = open_store(folder)
    assert store.list_sessions(p.SessionFilter()).items == ()
    store.close()


def test_a_store_whose_making_was_cut_off_by_a_crash_opens_again(folder: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    connection = open_writer(made / DATABASE_NAME)
    connection.execute("CREATE TABLE t (x)").fetchall()
    connection.execute("BEGIN IMMEDIATE").fetchall()
    connection.execute("DROP TABLE t").fetchall()
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
    connection.cache_flush()
    folder.mkdir(parents=True)
    for name in ("aura.db", "aura.db-journal"):
        shutil.copy(made / name, folder / name)
    connection.execute("ROLLBACK").fetchall()
    connection.execute("DROP TABLE t").fetchall()
    connection.close()
    with pytest.raises(StoreUnavailable, match="another program"):
        open_store(folder)  # the table is there again, and is not ours
    assert [path.name for path in folder.glob("*-journal")] == []


def test_a_directory_or_file_in_the_way_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "a" / DATABASE_NAME).mkdir(parents=True)
    (tmp_path / "b").write_text("a file")
    for where in (tmp_path / "a", tmp_path / "b", tmp_path / "b" / "c"):
        with pytest.raises(StoreUnavailable) as caught:
            open_store(where)
        assert caught.value.hint and str(tmp_path) not in caught.value.message


def test_migrations_are_applied_once_in_order_and_recorded(tmp_path: Path) -> None:
    steps = (Migration(1, "a", "CREATE TABLE a (x); CREATE TABLE b (x)"), Migration(2, "b", "INSERT INTO a VALUES (1)"))
    connection = open_writer(tmp_path / "m.db")
    enter_wal(connection)
    assert migrate(connection, steps[:1]) == 1
    assert migrate(connection, steps) == 1
    assert migrate(connection, steps) == 0
    assert find_version(connection) == 2
    assert connection.execute("SELECT count(*) FROM a").fetchall() == [(1,)]
    with pytest.raises(StoreUnavailable, match="schema 2"):
        migrate(connection, steps[:1])
    connection.close()


def test_a_migration_that_fails_leaves_the_old_schema(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "m.db")
    bad = Migration(1, "bad", "CREATE TABLE a (x); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(apsw.SQLError):
        migrate(connection, (bad,))
    assert find_version(connection) == 0
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)]
    connection.close()


def test_the_packaged_migrations_are_numbered_from_one() -> None:
    assert [step.number for step in read_migrations()] == list(range(1, len(read_migrations()) + 1))


def test_many_threads_may_open_a_new_store_at_once(folder: Path) -> None:
    barrier, errors = threading.Barrier(8), list[Exception]()

    def open_and_write(index: int) -> None:
        barrier.wait(10)
        try:
            store = open_store(folder)
            store.create_session(header(f"s{index}"))
            store.close()
        except AuraError as error:
            errors.append(error)

    threads = [threading.Thread(target=open_and_write, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    store = open_store(folder)
    assert len(store.list_sessions(p.SessionFilter()).items) == 8
    store.close()


def test_the_writers_lock_of_a_hanging_process_does_not_hang_the_opening(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aura import limits
    from aura.store.sqlite.locks import WriterLock

    folder.mkdir(parents=True)
    monkeypatch.setattr(limits, "COMMIT_WAIT_MS", 60)
    lock = WriterLock(folder)
    with lock.held(), pytest.raises(StoreUnavailable, match="writers' lock"):
        open_store(folder)
    lock.close()
    open_store(folder).close()


# --- real file systems: only root can mount them ------------------------------------------------------------------


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this user cannot mount a file system here: {done.stderr.strip()}")


@pytest.fixture
def read_only(folder: Path, tmp_path: Path) -> Iterator[Path]:
    """The folder of a closed store with one session, seen through a read-only mount."""
    store = open_store(folder)
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    keeper.save(messages_of("a"))
    keeper.release()
    store.close()
    seen = tmp_path / "seen"
    seen.mkdir()
    mount("--bind", str(folder), str(seen))
    try:
        mount("-o", "remount,ro,bind", str(seen))
        yield seen
    finally:
        subprocess.run(["umount", str(seen)], check=True)


def test_a_read_only_store_can_be_read_but_not_written(read_only: Path) -> None:
    store = find_store(read_only)
    assert store is not None
    assert sha256(exported(store, "s1")) == store.get_session("s1").revision
    assert store.find_holder("s1") is None
    for verb in (
        lambda: store.create_session(header("s2")),
        lambda: store.fork("s1", "child", at_ms=NOW_MS),
        lambda: store.freeze("s1", at_ms=NOW_MS),
        lambda: store.acquire("s1", p.Holder(1)),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            verb()
        assert not isinstance(caught.value, StoreFull) and caught.value.hint
    store.close()


def test_a_read_only_directory_without_a_store_has_none_and_takes_none(tmp_path: Path, read_only: Path) -> None:
    assert find_store(read_only / "nothing") is None
    with pytest.raises(StoreUnavailable):
        open_store(read_only / "nothing")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    where = tmp_path / "small"
    where.mkdir()
    mount("-t", "tmpfs", "-o", "size=6m", "tmpfs", str(where))
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def fill(path: Path) -> None:
    """Write until there is no room left."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(fd, b"x" * 4096):
            pass
    except OSError:
        pass
    finally:
        os.close(fd)


def test_on_a_full_disk_terminal_records_fit_and_new_runs_wait_for_room(small_disk: Path) -> None:
    store = SqliteStore(small_disk / "sessions" / DATABASE_NAME, ballast_bytes=1 << 20)
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    run = keeper.accept()
    keeper.start(run)
    filler = small_disk / "filler"
    fill(filler)
    text = e.Notice(level="info", origin="x", message="y" * 200_000)
    with pytest.raises(StoreFull):
        for index in range(50):
            store.commit(keeper.lease, p.Batch(f"n{index}", stamp([text], run.id))).result(10)
    saved = keeper.checkpoint(messages_of("kept"))
    last = [
        e.RunFinished(outcome="completed"),
        e.SessionPersisted(revision=saved.revision, messages=1, reason="run", changed=True),
        e.RunPersisted(),
    ]
    done = store.commit(keeper.lease, p.Batch("last", stamp(last, run.id), saved, essential=True)).result(10)
    assert done.run is not None and done.run.terminal
    assert not (small_disk / "sessions" / ".ballast").exists()
    filler_again = small_disk / "filler2"
    fill(filler_again)
    with pytest.raises(StoreFull):
        keeper.accept("r2")
    assert sha256(exported(store, "s1")) == saved.revision
    filler.unlink()
    filler_again.unlink()
    assert keeper.accept("r2").state == "accepted"
    keeper.release()
    store.close()
    reopened = open_store(small_disk / "sessions")
    assert reopened.get_run(run.id).state == "persisted"
    seqs = [row.seq for row in reopened.read_events("s1", 0, 1000)]
    assert seqs == list(range(1, len(seqs) + 1))
    reopened.close()


def test_a_store_cannot_be_made_on_a_full_disk(small_disk: Path) -> None:
    fill(small_disk / "filler")
    with pytest.raises(StoreFull):
        open_store(small_disk / "sessions")


def test_listing_sessions_imports_nothing_heavy(folder: Path) -> None:
    store = open_store(folder)
    store.create_session(header("s1"))
    store.close()
    program = (
        "import sys; from pathlib import Path\n"
        "from aura.store.open import find_store; from aura.store import protocol as p\n"
        "print(len(find_store(Path(sys.argv[1])).list_sessions(p.SessionFilter()).items))\n"
        "print(*[n for n in ('flask', 'gevent', 'marshmallow', 'asyncio', 'concurrent.futures', 'logging', 'sqlite3')"
        " if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, cwd=Path.cwd())
    assert done.stdout.splitlines() == ["1", ""], done.stderr


def test_a_copied_database_file_is_a_whole_store_after_closing(folder: Path, tmp_path: Path) -> None:
    store = open_store(folder)
    made = store.create_session(header("s1"))
    store.close()
    (tmp_path / "copy").mkdir()
    shutil.copy(folder / DATABASE_NAME, tmp_path / "copy" / DATABASE_NAME)
    copy = open_store(tmp_path / "copy")
    assert copy.get_session("s1") == made
    copy.close()
