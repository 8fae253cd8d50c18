"""The mirror's files and its thread: equal to exports, written only where needed, failures told and tried again."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura import events as e
from aura.errors import StoreUnavailable
from aura.runtime.ahead import read_ahead
from aura.runtime.mirror import Mirror
from aura.runtime.mirror_files import MirrorFiles
from aura.store.open import open_store
from aura.store.sqlite.store import SqliteStore
from tests.support.runtime_kit import make_log
from tests.unit.store.store_kit import Keeper, exported, header, messages_of, tamper

WAIT_S = 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_store(tmp_path / "sessions")
    opened.create_session(header("s1"))
    yield opened
    opened.close()


@pytest.fixture
def keeper(store: SqliteStore) -> Iterator[Keeper]:
    held = Keeper(store, "s1")
    yield held
    held.release()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def journal(store: SqliteStore) -> bytes:
    return b"".join(page.lines for page in store.iterate_journal(store.read_journal("s1")))


def is_current(store: SqliteStore, directory: Path) -> bool:
    document = (directory / "s1.json").read_bytes()
    return document == exported(store, "s1") and (directory / "journal" / "s1.jsonl").read_bytes() == journal(store)


# --- files ---------------------------------------------------------------------------------------------------------


def test_both_files_are_what_an_export_would_write(keeper: Keeper, directory: Path) -> None:
    files = MirrorFiles(keeper.store, directory, "s1")
    for request in ("r1", "r2"):
        keeper.complete(request)
        files.update()
        assert is_current(keeper.store, directory)
    assert (directory / "s1.json").stat().st_mode & 0o777 == 0o600
    assert (directory / "journal").stat().st_mode & 0o777 == 0o700
    assert not [name for name in os.listdir(directory) if name.endswith(".tmp")]


def test_a_journal_is_appended_to_and_a_document_that_did_not_change_is_left_alone(
    keeper: Keeper, directory: Path
) -> None:
    files = MirrorFiles(keeper.store, directory, "s1")
    keeper.complete("r1")
    files.update()
    document, lines = (directory / "s1.json").stat(), (directory / "journal" / "s1.jsonl").stat()
    keeper.commit([e.Notice(level="info", origin="test", message="later")])
    files.update()
    assert (directory / "s1.json").stat() == document
    assert (directory / "journal" / "s1.jsonl").stat().st_ino == lines.st_ino
    assert is_current(keeper.store, directory)


@pytest.mark.parametrize("change", ["removed", "longer", "shorter", "another"])
def test_files_that_somebody_changed_are_written_anew(keeper: Keeper, directory: Path, change: str) -> None:
    files = MirrorFiles(keeper.store, directory, "s1")
    keeper.complete("r1")
    files.update()
    for path in (directory / "s1.json", directory / "journal" / "s1.jsonl"):
        match change:
            case "removed":
                path.unlink()
            case "longer":
                path.write_bytes(path.read_bytes() + b"x")
            case "shorter":
                path.write_bytes(b"")
            case _:
                path.unlink()
                path.symlink_to(os.devnull)
    keeper.commit([e.Notice(level="info", origin="test", message="later")])
    files.update()
    assert is_current(keeper.store, directory)


def test_a_pruned_journal_is_written_anew(keeper: Keeper, directory: Path) -> None:
    files = MirrorFiles(keeper.store, directory, "s1")
    keeper.complete("r1")
    files.update()
    tamper(directory / "aura.db", "UPDATE session SET journal_floor = 4", "DELETE FROM event WHERE seq < 4")
    files.update()
    assert is_current(keeper.store, directory)
    assert (directory / "journal" / "s1.jsonl").read_bytes().startswith(b'{"seq":4,')


def test_an_append_that_fails_leaves_whole_lines_and_the_next_update_catches_up(
    keeper: Keeper, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = MirrorFiles(keeper.store, directory, "s1")
    keeper.complete("r1")
    files.update()
    before = (directory / "journal" / "s1.jsonl").read_bytes()
    keeper.complete("r2")
    write = os.write

    def full(fd: int, data: memoryview) -> int:
        write(fd, data[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            files.update()
    assert (directory / "journal" / "s1.jsonl").read_bytes() == before
    files.update()
    assert is_current(keeper.store, directory)


# --- thread --------------------------------------------------------------------------------------------------------


class Told:
    """What the mirror has to say; each notice releases `heard`."""

    def __init__(self) -> None:
        self.notices: list[e.Notice] = []
        self.heard = threading.Semaphore(0)

    def __call__(self, notice: e.Notice) -> None:
        self.notices.append(notice)
        self.heard.release()


def test_a_mirror_brings_files_up_to_date_at_its_start_and_at_its_end(keeper: Keeper, directory: Path) -> None:
    log, text = make_log()
    mirror = Mirror(MirrorFiles(keeper.store, directory, "s1"), Told(), log)
    keeper.save(messages_of("hello"))
    mirror.close()
    assert is_current(keeper.store, directory)
    assert text.getvalue() == ""


def test_a_failure_is_a_notice_and_the_next_request_tries_again(keeper: Keeper, directory: Path) -> None:
    log, text = make_log()
    (directory / "journal").write_text("in the way")
    told = Told()
    mirror = Mirror(MirrorFiles(keeper.store, directory, "s1"), told, log)
    assert told.heard.acquire(timeout=WAIT_S)
    mirror.request()
    assert told.heard.acquire(timeout=WAIT_S)
    assert [notice.message for notice in told.notices] == ["journal/s1.jsonl is not up to date: Not a directory"] * 2
    assert {(notice.level, notice.origin) for notice in told.notices} == {("warning", "mirror")}
    (directory / "journal").unlink()
    mirror.close()
    assert is_current(keeper.store, directory)
    assert text.getvalue().count("not up to date") == 2


def test_a_failure_at_the_end_is_only_logged_because_the_session_was_let_go(keeper: Keeper, directory: Path) -> None:
    log, text = make_log()
    told = Told()
    mirror = Mirror(MirrorFiles(keeper.store, directory, "nobody"), told, log)
    assert told.heard.acquire(timeout=WAIT_S)
    mirror.close()
    assert len(told.notices) == 1
    assert text.getvalue().count("not up to date: there is no session nobody") == 2


class StuckFiles(MirrorFiles):
    """Files on a disk that does not answer."""

    def __init__(self) -> None:
        self.writing = "s1.json"
        self.released = threading.Event()

    def update(self) -> None:
        assert self.released.wait(WAIT_S)


def test_a_disk_that_does_not_answer_holds_the_end_up_for_a_bounded_time() -> None:
    log, text = make_log()
    files = StuckFiles()
    mirror = Mirror(files, Told(), log, close_ms=1)
    mirror.close()
    assert "no end within 1 ms" in text.getvalue()
    files.released.set()
    mirror._thread.join(WAIT_S)
    assert not mirror._thread.is_alive()


# --- reading ahead -------------------------------------------------------------------------------------------------


def test_pieces_that_are_read_ahead_come_in_order_and_no_more_than_asked_are_kept() -> None:
    made: list[int] = []

    def source() -> Iterator[bytes]:
        for number in range(100):
            made.append(number)
            yield b"%d" % number

    out = io.BytesIO()
    with read_ahead(source(), 2) as pieces:
        for number, piece in enumerate(pieces):
            assert len(made) <= number + 5
            out.write(piece)
    assert out.getvalue() == b"".join(b"%d" % number for number in range(100))


def test_what_a_source_raises_is_raised_after_the_pieces_before_it() -> None:
    def source() -> Iterator[bytes]:
        yield b"one"
        raise StoreUnavailable("disk gone")

    got = []
    with pytest.raises(StoreUnavailable, match="disk gone"), read_ahead(source()) as pieces:
        for piece in pieces:
            got.append(piece)
    assert got == [b"one"]


def test_a_reader_that_stops_early_ends_the_thread() -> None:
    before = threading.active_count()
    with read_ahead(b"x" for _ in iter(int, 1)) as pieces:
        assert next(pieces) == b"x"
    assert threading.active_count() == before
