"""Copies of a store: taken while it is written, verified, and a store by themselves."""

from __future__ import annotations

import hashlib
import shutil
import stat
import threading
from pathlib import Path

import pytest

from aura.errors import BadRequest, Exists, StoreUnavailable
from aura.runtime.care import Care
from aura.store.care import no_progress
from aura.store.caretaker import Caretaker
from aura.store.open import open_store
from aura.store.protocol import SessionFilter
from aura.store.sqlite.backup import back_up
from aura.store.sqlite.database import open_reader
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.care_kit import fill, make
from tests.unit.store.store_kit import Keeper, exported, messages_of, tamper


def restored(copy: Path, folder: Path) -> SqliteStore:
    """Put a backup where a store is looked for, as docs/store.md says."""
    folder.mkdir(parents=True)
    shutil.copy(copy, folder / "aura.db")
    return open_store(folder)


def test_a_backup_is_a_store_with_the_same_sessions(folder: Path, tmp_path: Path) -> None:
    make(folder)
    done = Care(folder).back_up(str(tmp_path / "copy.db"))
    copy = tmp_path / "copy.db"
    assert (done.path, done.written, done.sessions) == (str(copy), True, 5)
    assert done.sha256 == hashlib.sha256(copy.read_bytes()).hexdigest() and done.size_bytes == copy.stat().st_size
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"]
    old, new = open_store(folder), restored(copy, tmp_path / "other")
    listed = old.list_sessions(SessionFilter()).items
    assert new.list_sessions(SessionFilter()).items == listed
    for session in listed:
        assert exported(new, session.id) == exported(old, session.id)
        assert new.read_events(session.id, 0, 1000) == old.read_events(session.id, 0, 1000)
    keeper = Keeper(new, "work")
    keeper.complete("r9")
    keeper.release()
    for store in (old, new):
        store.close()
    assert Caretaker(tmp_path / "other").check(quick=False, progress=no_progress).clean


def test_a_plain_copy_of_a_stopped_store_restores(folder: Path, tmp_path: Path) -> None:
    database = make(folder)
    assert not database.with_name("aura.db-wal").exists()
    new = restored(database, tmp_path / "other")
    assert len(new.list_sessions(SessionFilter()).items) == 5
    new.close()
    assert Caretaker(tmp_path / "other").check(quick=False, progress=no_progress).clean


def test_a_backup_under_load_is_one_consistent_state(folder: Path, tmp_path: Path) -> None:
    store = open_store(folder)
    fill(store)
    stop, saves = threading.Event(), list[int]()

    def load() -> None:
        keeper = Keeper(store, "fork")
        while not stop.is_set():
            keeper.save(messages_of(f"{len(saves)} {'x' * 2000}"))
            saves.append(1)
        keeper.release()

    writer = threading.Thread(target=load)
    writer.start()
    try:
        copies = []
        for number in range(5):
            seen = len(saves)
            copies.append((seen, Path(Care(folder).back_up(str(tmp_path / f"{number}.db")).path)))
        assert len(saves) > copies[0][0]
    finally:
        stop.set()
        writer.join(30)
        store.close()
    for number, (seen, copy) in enumerate(copies):
        new = restored(copy, tmp_path / f"home{number}")
        assert len(new.list_revisions("fork")) >= seen  # what was acknowledged before is in it
        new.close()
        codes = {
            f.code for f in Caretaker(tmp_path / f"home{number}").check(quick=False, progress=no_progress).findings
        }
        assert codes <= {"run_unowned"}


def test_a_file_that_is_there_is_never_replaced(folder: Path, tmp_path: Path) -> None:
    make(folder)
    copy = tmp_path / "copy.db"
    care = Care(folder)
    care.back_up(str(copy))
    again = care.back_up(str(copy))
    assert not again.written
    for other in (b"x", bytes(copy.stat().st_size)):
        copy.write_bytes(other)
        with pytest.raises(Exists):
            care.back_up(str(copy))
        assert copy.read_bytes() == other
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"]


@pytest.mark.parametrize("target", ["", "missing/copy.db", ".", "home/"])
def test_a_place_that_cannot_be_written_is_a_bad_request(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    make(folder)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest):
        Care(folder).back_up(target)


def test_a_store_that_is_damaged_gives_no_backup(folder: Path, tmp_path: Path) -> None:
    tamper(make(folder), "DELETE FROM event WHERE seq = 5")
    with pytest.raises(StoreUnavailable):
        Care(folder).back_up(str(tmp_path / "copy.db"))
    assert not (tmp_path / "copy.db").exists()


def test_a_backup_gives_up_before_the_wal_fills_the_disk(folder: Path, tmp_path: Path) -> None:
    store = open_store(folder)
    fill(store)
    connection = open_reader(folder / "aura.db")
    (tmp_path / "part").touch()
    with pytest.raises(StoreUnavailable):
        back_up(connection, folder / "aura.db", tmp_path / "part", no_progress, wal_max_bytes=0)
    assert not connection.in_transaction
    connection.close()
    store.close()
