"""What `check --repair` puts right, and what it leaves alone, because something could be lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from aura.store.care import CheckReport, no_progress
from aura.store.caretaker import Caretaker
from aura.store.open import open_store
from tests.unit.store.care_kit import fill, make
from tests.unit.store.store_kit import NOW_MS, Keeper, query, tamper


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("sound") / "sessions")


@pytest.fixture
def database(sound: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    return Path(shutil.copy(sound, folder / "aura.db"))


def checked(database: Path) -> CheckReport:
    return Caretaker(database.parent).check(quick=False, progress=no_progress)


def repaired(database: Path) -> list[str]:
    return Caretaker(database.parent).repair(checked(database), NOW_MS)


DERIVED = {table: f"SELECT * FROM {table} ORDER BY 1, 2, 3" for table in ("tool_call", "usage")}
DERIVED["input"] = "SELECT input_id, sid, run, kind, state, question, answer, answered_by, created_at_ms, expires_at_ms, resolved_at_ms FROM input ORDER BY 1"  # fmt: skip # noqa: E501


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM tool_call",
        "UPDATE tool_call SET status = 'unknown', finished_at_ms = NULL",
        "DELETE FROM usage",
        "UPDATE usage SET model = 'other', cost_usd = NULL",
        "DELETE FROM input",
        "UPDATE input SET state = 'pending', answer = NULL",
    ],
)
def test_derived_rows_are_made_again_as_they_were(database: Path, statement: str) -> None:
    before = {table: query(database, sql) for table, sql in DERIVED.items()}
    tamper(database, statement)
    done = repaired(database)
    assert done and all("made the" in line or "ballast" in line for line in done)
    assert {table: query(database, sql) for table, sql in DERIVED.items()} == before
    assert checked(database).clean


def test_the_process_groups_of_calls_survive_a_repair(database: Path) -> None:
    tamper(database, "UPDATE tool_call SET pid = 7, pid_start_time = 'x'", "UPDATE tool_call SET result_bytes = 1")
    repaired(database)
    assert set(query(database, "SELECT pid, pid_start_time FROM tool_call")) == {(7, "x")}
    assert checked(database).clean


def test_rows_that_nothing_refers_to_are_removed(database: Path) -> None:
    counts = "SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM chain), (SELECT count(*) FROM prompt)"
    before = query(database, counts)
    tamper(
        database,
        "INSERT INTO prompt (sha256, text) VALUES ('e3b0c442', '')",
        "INSERT INTO message (chain, idx, ordinal, role, body) SELECT chain, 99, 9, role, body FROM message LIMIT 1",
        "INSERT INTO chain (sid, base, base_length) SELECT sid, id, 1 FROM chain WHERE id = 1",
        "INSERT INTO request (scope, request_id, digest, run) VALUES (77, 'r', 'd', 999)",
        "INSERT INTO journal_anchor VALUES (999, 1, x'00')",
    )
    repaired(database)
    assert query(database, counts) == before
    assert checked(database).clean


def test_nothing_is_rebuilt_from_a_journal_in_doubt(database: Path) -> None:
    tamper(
        database,
        "UPDATE event SET data = replace(data, '\"ok\"', '\"error\"') WHERE type = 'tool.finished'",
        "UPDATE tool_call SET result_bytes = 1 WHERE name = 'Read'",
    )
    before = query(database, "SELECT * FROM tool_call")
    assert not [line for line in repaired(database) if "made the" in line]
    assert query(database, "SELECT * FROM tool_call") == before


def test_a_conversation_without_its_session_is_left_for_a_person(database: Path) -> None:
    tamper(database, "DELETE FROM session WHERE id = 'work'")
    tables = ("event", "revision", "message", "chain", "run")
    before = [query(database, f"SELECT count(*) FROM {table}") for table in tables]
    repaired(database)
    assert [query(database, f"SELECT count(*) FROM {table}") for table in tables] == before
    assert not checked(database).clean


def test_a_run_that_a_dead_server_left_is_recorded_as_lost(folder: Path) -> None:
    store = open_store(folder)
    fill(store)
    store.close()
    database = folder / "aura.db"
    (line, *_) = [line for line in repaired(database) if "lost" in line]
    assert "of session work" in line
    assert query(database, "SELECT state FROM run WHERE request_id = 'r3'") == [("lost",)]
    assert checked(database).clean


def test_a_run_of_a_held_session_is_left_alone(folder: Path) -> None:
    store = open_store(folder)
    fill(store)
    report = Caretaker(folder).check(quick=False, progress=no_progress)
    keeper = Keeper(store, "work")
    assert not Caretaker(folder).repair(report, NOW_MS)
    assert query(folder / "aura.db", "SELECT state FROM run WHERE request_id = 'r3'") == [("accepted",)]
    keeper.release()
    store.close()


def test_a_ballast_that_was_given_up_is_laid_anew(database: Path) -> None:
    assert repaired(database) == ["laid the ballast anew"]
    assert (database.parent / ".ballast").exists()
    assert repaired(database) == []


def test_an_index_is_built_again(database: Path) -> None:
    tamper(
        database,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, '(sid, id)', '(sid, accepted_seq)') WHERE name = 'run_session'",
    )
    assert not checked(database).clean
    assert "built the indexes of run again" in repaired(database)
    assert checked(database).clean
