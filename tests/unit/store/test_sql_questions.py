"""Questions to a store are read-only by construction, and end: by their deadline, their row limit, or their reader."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from aura import limits
from aura.errors import BadRequest, NotFound, StoreUnavailable
from aura.runtime.sql import End, Head, Questions, Rows, is_complete, opened, split_statements
from aura.store.sqlite.migrate import migrate, read_migrations
from aura.store.sqlite.store import SqliteStore
from tests.support.sql_page import ask
from tests.support.sql_store import make_sql_store

ENDLESS = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
WAIT_S = 30


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make_sql_store(tmp_path / "sessions")
    return tmp_path / "sessions"


@pytest.fixture
def questions(directory: Path) -> Iterator[Questions]:
    with opened(directory) as found:
        yield found


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "aura-sql"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO session (id) VALUES ('x')",
        "UPDATE run SET state = 'lost'",
        "DELETE FROM event",
        "DROP VIEW v_run",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "CREATE TEMP VIEW t AS SELECT 1",
        "CREATE VIRTUAL TABLE t USING fts5 (a)",
        "ATTACH 'other.db' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT s",
        "REINDEX",
        "ANALYZE",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 9",
        "PRAGMA query_only = OFF",
        "PRAGMA wal_checkpoint",
        "PRAGMA writable_schema = ON",
        "PRAGMA main.table_info('run'); DELETE FROM run",
        "PRAGMA optimize",
        "SELECT load_extension('x')",
        "EXPLAIN DELETE FROM event",
        "WITH x AS (SELECT 1) DELETE FROM event",
    ],
)
def test_a_statement_that_does_more_than_read_is_refused(
    directory: Path, questions: Questions, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    before = sorted(os.listdir(directory)), (directory / "aura.db").read_bytes()
    with pytest.raises(BadRequest, match=r"only reading is allowed|not authorized|authorization denied") as refused:
        for part in split_statements(statement):
            ask(questions, part, {})
    assert refused.value.exit_code == 1
    assert (sorted(os.listdir(directory)), (directory / "aura.db").read_bytes()) == before
    assert ask(questions, "SELECT count(*) FROM v_run", {}).rows == [(7,)], "the connection is as good as before"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "VALUES (1)",
        "EXPLAIN SELECT 1",
        "EXPLAIN QUERY PLAN SELECT * FROM v_run",
        "PRAGMA table_info(v_run)",
        "PRAGMA main.table_xinfo('run')",
        "PRAGMA journal_mode",
        "PRAGMA user_version",
        "PRAGMA integrity_check",
        "SELECT name FROM pragma_table_info('v_run')",
        "SELECT value FROM json_each('[1]')",
        "SELECT * FROM sqlite_schema",
        "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT sum(n) FROM c",
    ],
)
def test_what_reads_is_answered(questions: Questions, statement: str) -> None:
    assert ask(questions, statement, {}).rows


def test_an_answer_without_rows_still_names_its_columns(questions: Questions) -> None:
    parts = list(questions.ask("SELECT run_id, 1 AS one FROM v_run WHERE 0", {}, timeout_ms=1000, row_limit=None))
    assert parts == [Head(("run_id", "one")), End(cut=False)]


@pytest.mark.parametrize(("limit", "count", "cut"), [(1, 1, True), (6, 6, True), (7, 7, False), (8, 7, False)])
def test_the_row_limit_says_whether_it_cut_something(questions: Questions, limit: int, count: int, cut: bool) -> None:
    parts = list(questions.ask("SELECT run_id FROM v_run", {}, timeout_ms=10_000, row_limit=limit))
    assert sum(len(part.rows) for part in parts if isinstance(part, Rows)) == count
    assert parts[-1] == End(cut)


def test_a_row_limit_beyond_one_batch_is_kept_exactly(questions: Questions) -> None:
    limit = 3 * limits.SQL_BATCH_ROWS + 1
    parts = list(questions.ask(ENDLESS, {}, timeout_ms=WAIT_S * 1000, row_limit=limit))
    assert [row[0] for part in parts if isinstance(part, Rows) for row in part.rows] == list(range(1, limit + 1))
    assert parts[-1] == End(cut=True)


def test_a_query_without_rows_ends_at_its_deadline(questions: Questions) -> None:
    with pytest.raises(BadRequest, match=r"took longer than 0\.05 s") as stopped:
        list(questions.ask(f"SELECT count(*) FROM ({ENDLESS})", {}, timeout_ms=50, row_limit=None))
    assert "--timeout" in (stopped.value.hint or "")


def test_a_reader_that_pauses_does_not_keep_the_transaction_open(directory: Path, questions: Questions) -> None:
    parts = questions.ask(
        f"SELECT n, (SELECT count(*) FROM event) FROM ({ENDLESS})", {}, timeout_ms=300, row_limit=None
    )
    with closing(parts):
        assert isinstance(next(parts), Head)
        assert isinstance(next(parts), Rows)
        (worker,) = workers()
        worker.join(WAIT_S)
        assert not worker.is_alive(), "the statement ends at its deadline although nobody reads"
        writer = apsw.Connection(str(directory / "aura.db"))
        writer.execute("UPDATE session SET title = 'changed' WHERE id = 'docs'").fetchall()
        assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall() == [(0, 0, 0)], "no reader is in the way"
        writer.close()
        with pytest.raises(BadRequest, match="took longer"):
            list(parts)


def test_a_reader_that_leaves_ends_the_statement_at_once(questions: Questions) -> None:
    began = time.monotonic()
    for statement in (ENDLESS, f"SELECT 0 UNION ALL SELECT count(*) FROM ({ENDLESS})"):
        parts = questions.ask(statement, {}, timeout_ms=WAIT_S * 1000, row_limit=None)
        next(parts)
        parts.close()
        assert workers() == []
    assert time.monotonic() - began < WAIT_S


def test_parameters_are_bound_by_name(questions: Questions) -> None:
    answer = ask(questions, "SELECT :a, $b, @a", {"a": 1, "b": "x", "c": "not used"})
    assert answer.rows == [(1, "x", 1)]


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("SELECT outcme FROM v_run", "no such column: outcme", "Did you mean outcome? v_run has run_id, "),
        ("SELECT r.nam FROM v_tool_call r", "no such column: r.nam", "Did you mean name? v_tool_call has "),
        ("SELECT * FROM v_runs", "no such table: v_runs", "Did you mean v_run? The views are v_event, v_input, "),
        ("SELECT * FROM nothing_like_it", "no such table", "The views are v_event"),
        ("SELECT\n1,\nfrom x", r"syntax error \(line 3\)", None),
        ("SELECT 'open", "unrecognized token", None),
        ("SELECT :day", "parameter :day has no value", "Add -p day=VALUE."),
        ("SELECT ?", "has no name", "Write :name"),
        ("SELECT CAST(x'ff' AS TEXT)", "not UTF-8", None),
        ("SELECT json_extract('{', '$')", "malformed JSON", None),
    ],
)
def test_a_mistake_is_explained(questions: Questions, statement: str, message: str, hint: str | None) -> None:
    with pytest.raises(BadRequest, match=message) as refused:
        ask(questions, statement, {})
    if hint is None:
        assert refused.value.hint is None
    else:
        assert (refused.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1", ("SELECT 1",)),
        ("SELECT 1; SELECT 2;", ("SELECT 1;", "SELECT 2;")),
        ("SELECT ';'; SELECT \";\"", ("SELECT ';';", 'SELECT ";"')),
        ("-- nothing; here\n/* or ; here */ ;", ()),
        ("SELECT 1 -- why; so\n, 2; -- end", ("SELECT 1 -- why; so\n, 2;",)),
        ("SELECT 'open; SELECT 2;", ("SELECT 'open; SELECT 2;",)),
        ("", ()),
    ],
)
def test_a_text_is_split_into_statements(text: str, statements: tuple[str, ...]) -> None:
    assert split_statements(text) == statements


def test_a_statement_is_complete_with_its_semicolon() -> None:
    assert is_complete("SELECT ';';") and not is_complete("SELECT ';") and not is_complete("SELECT 1")


def test_where_there_is_no_store_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no store yet"), opened(tmp_path / "sessions"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "aura.db").write_text("this is not a database, it is a text")
    with pytest.raises(StoreUnavailable, match="not a database"), opened(tmp_path):
        pass


def test_an_older_store_is_migrated_first(tmp_path: Path) -> None:
    make_old_store(tmp_path)
    with opened(tmp_path) as questions:
        assert "v_input" in [view.name for view in questions.views]


def test_an_older_store_that_cannot_be_written_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old_store(tmp_path)
    before = (tmp_path / "aura.db").read_bytes()
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # root may write everywhere
    with opened(tmp_path) as questions:
        assert [view.name for view in questions.views if view.name == "v_input"] == []
        assert ask(questions, "SELECT count(*) FROM v_run", {}).rows == [(0,)]
    assert (tmp_path / "aura.db").read_bytes() == before


def test_a_store_in_a_directory_that_cannot_be_written_leaves_no_file_behind(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    os.chmod(directory, stat.S_IRUSR | stat.S_IXUSR)
    before = sorted(os.listdir(directory))
    with opened(directory) as questions:
        assert ask(questions, "SELECT count(*) FROM v_run", {}).rows == [(7,)]
        assert sorted(os.listdir(directory)) == before, "immutable: no -shm"
    os.chmod(directory, stat.S_IRWXU)


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        ("SELECT * FROM v_event WHERE run_id = 'run-1'", "sqlite_autoindex_event_1 (sid=? AND seq>? AND seq<?)"),
        ("SELECT * FROM v_event WHERE session_id = 'api' AND seq > 5", "sqlite_autoindex_event_1 (sid=? AND seq>?)"),
        ("SELECT * FROM v_event WHERE kind = 'notice'", "INDEX event_notice"),
        ("SELECT * FROM v_tool_call WHERE run_id = 'run-1'", "PRIMARY KEY (run=?)"),
        ("SELECT * FROM v_tool_call WHERE session_id = 'api'", "PRIMARY KEY (run=?)"),
        ("SELECT * FROM v_usage WHERE session_id = 'api'", "PRIMARY KEY (run=?)"),
        ("SELECT * FROM v_run WHERE session_id = 'api'", "INDEX run_session (sid=?)"),
        ("SELECT * FROM v_input WHERE run_id = 'run-7'", "INDEX input_run (run=?)"),
        ("SELECT * FROM v_revision WHERE session_id = 'api'", "sqlite_autoindex_revision_1 (sid=?)"),
    ],
)
def test_what_one_session_or_run_has_is_found_by_key(questions: Questions, statement: str, found_by: str) -> None:
    plan = [str(row[3]) for row in ask(questions, f"EXPLAIN QUERY PLAN {statement}", {}).rows]
    assert any(found_by in step for step in plan), plan
    assert [step for step in plan if step.startswith("SCAN") and step.split()[1] in ("e", "t", "u", "v", "i")] == (
        ["SCAN e USING INDEX event_notice"] if "notice" in statement else []
    )


def make_old_store(directory: Path) -> None:
    """Make a store as the first schema had it."""
    store = SqliteStore(directory / "aura.db")
    connection = apsw.Connection(str(directory / "aura.db"))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    migrate(connection, read_migrations()[:1])
    connection.close()
    store.close()
