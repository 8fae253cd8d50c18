"""Journals that are taken into sessions without one: the same bytes, and the rows that a live session would have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura import limits
from aura.errors import Exists, InvalidSession, NotFound, SessionFrozen, SessionLocked
from aura.runs import Run
from aura.runtime import journal_import
from aura.runtime.journal_import import import_journal
from aura.store.protocol import RunFilter
from aura.store.sqlite.store import SqliteStore
from aura.wire import canonical
from aura.wire.automation import run_fields
from tests.support.samples import SESSION_ID, journal
from tests.unit.store.store_kit import NOW_MS, Keeper, Reopen, header, parsed, query

LINES = [line.text for line in journal()]
TEXT = b"".join(line + b"\n" for line in LINES)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def target(store: SqliteStore) -> SqliteStore:
    """A store with the session that the journal is of, imported without a journal."""
    store.import_session(parsed(SESSION_ID, "hello"), freeze=False, at_ms=NOW_MS)
    return store


def exported(store: SqliteStore, session_id: str = SESSION_ID) -> bytes:
    return b"".join(page.lines for page in store.iterate_journal(store.read_journal(session_id)))


def runs_of(store: SqliteStore, session_id: str = SESSION_ID) -> list[Run]:
    return list(reversed(store.list_runs(RunFilter(session_id)).items))


def test_an_imported_journal_is_exported_with_the_same_bytes_and_chain(
    target: SqliteStore, folder: Path, file: Path
) -> None:
    done = import_journal(folder, str(file))
    assert (done.session_id, done.events, done.last_seq) == (SESSION_ID, len(LINES), len(LINES))
    assert (done.truncated, done.warnings) == (False, ())
    assert exported(target) == TEXT
    found = target.verify_journal(SESSION_ID)
    assert found.problems == ()
    assert target.get_session(SESSION_ID).messages == 1
    assert target.read_persisted_seq(SESSION_ID) == len(LINES)


def test_runs_requests_calls_and_questions_are_rebuilt(target: SqliteStore, folder: Path, file: Path) -> None:
    import_journal(folder, str(file))
    found = runs_of(target)
    records = {}
    for event in map(json.loads, LINES):
        if "run" in event["data"]:
            records[event["run_id"]] = event["data"]["run"]
    assert [json.loads(canonical.encode(run_fields(run))) for run in found] == list(records.values())
    assert {run.state for run in found} == {"persisted", "persist_failed", "lost"}
    first = found[0]
    assert target.find_request(SESSION_ID, first.request_id) == first
    assert first.stats.tool_calls == {"Bash": 1} and first.result is not None
    assert found[1].cancel_requested
    assert [(item.state, item.answer) for item in target.list_inputs(found[1].id)] == [
        ("answered", "README"),
        ("dismissed", None),
    ]
    calls = query(folder / "aura.db", "SELECT name, status, started_seq IS NOT NULL FROM tool_call ORDER BY run, n")
    assert calls[0] == ("Bash", "ok", 1)
    texts = [row[0] for row in query(folder / "aura.db", "SELECT text FROM run ORDER BY id")]
    assert texts[0] == "Do the tests pass?" and texts[2] == "/stats"


def test_another_session_takes_the_journal_under_its_own_id(store: SqliteStore, folder: Path, file: Path) -> None:
    store.create_session(header("task-2"))
    assert import_journal(folder, str(file), "task-2").session_id == "task-2"
    assert {run.session_id for run in runs_of(store, "task-2")} == {"task-2"}
    assert b'"session_id":"task-1"' not in exported(store, "task-2")
    assert exported(store, "task-2").replace(b'"session_id":"task-2"', b'"session_id":"task-1"') == TEXT


def test_a_torn_last_line_is_left_out_with_a_warning(target: SqliteStore, folder: Path, file: Path) -> None:
    file.write_bytes(TEXT[:-20])
    done = import_journal(folder, str(file))
    assert (done.events, done.truncated) == (len(LINES) - 1, True)
    assert done.warnings == (f"line {len(LINES)} is torn and was left out",)
    assert exported(target) == b"".join(line + b"\n" for line in LINES[:-1])


@pytest.mark.parametrize("tail", [b"\0" * 50, b'{"seq":', b"\xff\xfe", b'{"seq":9,"tim'])
def test_any_torn_tail_is_left_out(target: SqliteStore, folder: Path, file: Path, tail: bytes) -> None:
    file.write_bytes(TEXT + tail)
    assert import_journal(folder, str(file)).truncated
    assert exported(target) == TEXT


def test_a_whole_last_line_without_its_end_is_kept(target: SqliteStore, folder: Path, file: Path) -> None:
    file.write_bytes(TEXT[:-1])
    assert not import_journal(folder, str(file)).truncated
    assert exported(target) == TEXT


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (TEXT.replace(LINES[4], b"{broken"), 5),
        (TEXT.replace(LINES[4] + b"\n", b""), 5),
        (TEXT.replace(LINES[4], LINES[4] + b"\n"), 6),
        (TEXT + b"{broken\n", len(LINES) + 1),
        (TEXT + LINES[-1], len(LINES) + 1),
        (TEXT.replace(b'"type":"tool.started"', b'"type":"tool.begun"'), 8),
    ],
)
def test_any_other_bad_line_is_refused_by_its_number_and_nothing_is_stored(
    target: SqliteStore, folder: Path, file: Path, text: bytes, number: int
) -> None:
    file.write_bytes(text)
    with pytest.raises(InvalidSession, match=f"line {number}: "):
        import_journal(folder, str(file))
    assert target.read_last_seq(SESSION_ID) == 0


def test_a_session_with_a_journal_takes_no_other_and_not_the_same(
    target: SqliteStore, folder: Path, file: Path
) -> None:
    import_journal(folder, str(file))
    with pytest.raises(Exists, match="has a journal"):
        import_journal(folder, str(file))
    assert exported(target) == TEXT


def test_a_journal_can_be_once_in_a_store(target: SqliteStore, folder: Path, file: Path) -> None:
    import_journal(folder, str(file))
    target.create_session(header("other"))
    with pytest.raises(Exists, match="has run run_"):
        import_journal(folder, str(file), "other")
    assert target.read_last_seq("other") == 0


def test_a_missing_frozen_or_held_session_is_refused(store: SqliteStore, folder: Path, file: Path) -> None:
    with pytest.raises(NotFound):
        import_journal(folder, str(file))
    store.import_session(parsed(SESSION_ID, "hello"), freeze=False, at_ms=NOW_MS)
    keeper = Keeper(store, SESSION_ID)
    with pytest.raises(SessionLocked):
        import_journal(folder, str(file))
    keeper.release()
    store.freeze(SESSION_ID, at_ms=NOW_MS)
    with pytest.raises(SessionFrozen):
        import_journal(folder, str(file))


def test_an_empty_journal_needs_the_sessions_name(target: SqliteStore, folder: Path, file: Path) -> None:
    file.write_bytes(b"")
    with pytest.raises(InvalidSession, match="no event"):
        import_journal(folder, str(file))
    assert import_journal(folder, str(file), SESSION_ID).events == 0


def test_an_import_that_was_broken_off_goes_on_where_it_ended(
    target: SqliteStore, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOURNAL_IMPORT_COMMIT_COUNT", 7)
    whole = journal_import._read_again

    def broken(source):  # type: ignore[no-untyped-def]
        for number, line in enumerate(whole(source)):
            if number == 16:
                raise InterruptedError
            yield line

    with monkeypatch.context() as patch:
        patch.setattr(journal_import, "_read_again", broken)
        with pytest.raises(InterruptedError):
            import_journal(folder, str(file))
    assert target.read_last_seq(SESSION_ID) == 14
    other = file.with_name("other.jsonl")
    other.write_bytes(b"".join(line + b"\n" for line in LINES[:20]))
    with pytest.raises(Exists):
        import_journal(folder, str(other))
    assert import_journal(folder, str(file)).events == len(LINES)
    assert exported(target) == TEXT
    assert target.verify_journal(SESSION_ID).problems == ()


def test_a_file_that_changes_while_it_is_read_is_not_taken_for_whole(
    target: SqliteStore, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = journal_import._read_again

    def rewritten(source) -> Iterator[object]:  # type: ignore[no-untyped-def]
        file.write_bytes(TEXT.replace(b"1 passed", b"2 passed"))
        yield from whole(source)

    monkeypatch.setattr(journal_import, "_read_again", rewritten)
    with pytest.raises(Exception, match="changed while it was read"):
        import_journal(folder, str(file))
    assert target.read_last_seq(SESSION_ID) == 0


def test_the_next_holder_goes_on_with_the_seq_and_finds_what_was_unsettled(
    target: SqliteStore, folder: Path, file: Path, reopen: Reopen
) -> None:
    cut = next(number for number, line in enumerate(journal()) if line.type == "tool.started")
    file.write_bytes(b"".join(line + b"\n" for line in LINES[: cut + 1]))
    import_journal(folder, str(file))
    (live,) = target.list_runs(RunFilter(SESSION_ID, live=True)).items
    assert live.state == "running"
    keeper = Keeper(target, SESSION_ID)
    receipt = keeper.commit([])
    assert receipt.last_seq == cut + 1
    keeper.release()
