"""What pruning leaves behind: readers below the floor, evidence, forks, interruptions, the wait of others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

from aura import events as e
from aura.errors import CursorOutOfRange, Exists, NotFound, SessionLocked
from aura.runtime.search import opened
from aura.store import protocol as p
from aura.store.care import PruneReport, PruneRule, no_progress
from aura.store.caretaker import Caretaker
from aura.store.open import open_store
from aura.store.sqlite import prune_parts, prune_plan
from aura.store.sqlite.care_writer import open_care_writer
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.care_kit import fill
from tests.unit.store.store_kit import NOW_MS, Keeper, exported, header, messages_of, query

ALL = PruneRule("sessions")


@pytest.fixture
def filled(store: SqliteStore) -> SqliteStore:
    fill(store)
    work = Keeper(store, "work")
    (run,) = store.list_runs(p.RunFilter("work", live=True)).items
    work.commit([e.RunLost(revision="0" * 64, messages=0, persisted_seq=0)], run.id)
    work.release()
    return store


def prune(folder: Path, rule: PruneRule) -> PruneReport:
    return Caretaker(folder).prune(rule, NOW_MS, no_progress)


def clean(folder: Path) -> bool:
    return Caretaker(folder).check(quick=False, progress=no_progress).clean


def test_a_reader_below_the_floor_is_told_where_the_journal_begins(filled: SqliteStore, folder: Path) -> None:
    kept = filled.read_events("work", 20, 1000)
    with open_care_writer(folder / "aura.db") as writer:
        target = prune_plan.Target(1, "work")
        prune_parts.remove_events(writer, target, 21)
    last_seq = filled.read_last_seq("work")
    for after in (0, 1, 19):
        with pytest.raises(CursorOutOfRange) as refused:
            filled.read_events("work", after, 10)
        assert refused.value.details == {"last_seq": last_seq, "first_seq": 21}
    assert filled.read_events("work", 20, 1000) == kept
    assert filled.read_events("work", last_seq, 10) == []
    assert clean(folder)


def test_a_journal_goes_on_after_all_of_it_was_pruned(filled: SqliteStore, folder: Path) -> None:
    last_seq = filled.read_last_seq("work")
    (hash_before,) = query(folder / "aura.db", "SELECT chain_hash FROM session WHERE id = 'work'")
    prune(folder, PruneRule("journal"))
    assert query(folder / "aura.db", "SELECT seq, chain_hash FROM journal_anchor WHERE sid = 1") == [
        (last_seq, hash_before[0])
    ]
    assert filled.read_events("work", last_seq, 10) == []
    keeper = Keeper(filled, "work")
    keeper.complete("r9")
    keeper.release()
    assert filled.read_events("work", last_seq, 10)[0].seq == last_seq + 1
    assert clean(folder)


def test_a_journal_is_cut_between_runs_only(filled: SqliteStore, folder: Path) -> None:
    report = prune(folder, PruneRule("journal", before_ms=NOW_MS + 1))
    assert {item.session_id for item in report.pruned} == {"work", "fork"}
    cut = query(folder / "aura.db", "SELECT count(*) FROM event e JOIN run r ON r.id = e.run WHERE e.seq > r.last_seq")
    assert cut == [(0,)]
    assert filled.find_request("work", "r1") is not None  # a request id is known for ever
    assert clean(folder)


def test_an_age_keeps_what_is_younger(filled: SqliteStore, folder: Path) -> None:
    for what in ("sessions", "revisions", "journal"):
        report = prune(folder, PruneRule(what, before_ms=NOW_MS))  # type: ignore[arg-type]
        assert report.pruned == ()


def test_only_what_nobody_needs_goes(filled: SqliteStore, folder: Path) -> None:
    held = Keeper(filled, "bare")
    grandchild, ice = exported(filled, "grandchild"), exported(filled, "ice")
    spared = {item.session_id: item.why for item in prune(folder, PruneRule("sessions", keep=1)).spared}
    held.release()
    assert spared["ice"] == "it is frozen"
    assert spared["bare"] == "a process holds it"
    assert exported(filled, "ice") == ice
    if filled.find_session("grandchild"):
        assert exported(filled, "grandchild") == grandchild
    assert clean(folder)


def test_the_origin_of_a_fork_stays_with_it(filled: SqliteStore, folder: Path) -> None:
    child = Keeper(filled, "grandchild")
    documents = {name: exported(filled, name) for name in ("work", "grandchild")}
    report = prune(folder, ALL)
    child.release()
    assert {item.session_id for item in report.pruned} == {"bare", "fork"}  # what it inherited are messages of work
    assert "work" in {item.session_id for item in report.spared}
    assert {name: exported(filled, name) for name in documents} == documents
    prune(folder, ALL)
    assert [session.id for session in filled.list_sessions(p.SessionFilter()).items] == ["ice"]
    assert clean(folder)


def test_a_fork_from_a_pruned_revision_is_refused_even_when_it_was_read_before(
    store: SqliteStore, folder: Path
) -> None:
    store.create_session(header("s1"))
    keeper = Keeper(store, "s1")
    old = keeper.save(messages_of("a", "b", "c"))
    keeper.save(messages_of("d"), keep=1)
    keeper.release()
    write = store._write

    def prune_first(work: object, session_id: str) -> object:
        prune(folder, PruneRule("revisions"))
        return write(work, session_id)  # type: ignore[arg-type]

    store._write = prune_first  # type: ignore[method-assign,assignment]
    with pytest.raises(NotFound):
        store.fork("s1", "child", revision=old, at_ms=NOW_MS)
    assert store.find_session("child") is None
    assert clean(folder)


def test_an_interrupted_removal_is_finished_by_the_next_prune(filled: SqliteStore, folder: Path) -> None:
    target = prune_plan.Target(1, "work")
    with open_care_writer(folder / "aura.db") as writer:
        for name in ("grandchild", "fork"):
            sid = query(folder / "aura.db", "SELECT sid FROM session WHERE id = ?", name)[0][0]
            assert isinstance(sid, int)
            child = prune_plan.Target(sid, name)
            writer.run(partial(_begin, child))
            prune_parts.finish_removal(writer, child)
        writer.run(partial(_begin, target))
    with pytest.raises(NotFound):
        filled.get_session("work")
    with pytest.raises(NotFound):
        filled.acquire("work", p.Holder(1))
    with pytest.raises(Exists):
        filled.create_session(header("work"))
    (finding,) = Caretaker(folder).check(quick=False, progress=no_progress).findings
    assert (finding.code, finding.repairable) == ("half_removed", True)
    assert "work" in {item.session_id for item in prune(folder, PruneRule("sessions", before_ms=0)).pruned}
    filled.create_session(header("work"))
    assert clean(folder)


def test_a_search_index_follows_what_was_pruned(filled: SqliteStore, folder: Path) -> None:
    with opened(folder) as search:
        search.catch_up()
    prune(folder, PruneRule("revisions"))
    prune(folder, ALL)
    connection = apsw.Connection(str(folder / "aura.db"))
    connection.execute("INSERT INTO message_search (message_search, rank) VALUES ('integrity-check', 1)").fetchall()
    connection.close()
    with opened(folder) as search:
        found = search.find("hello", limit=10).hits
        assert [hit.session_ids for hit in found] == [("ice",)]
    assert clean(folder)


def _begin(target: prune_plan.Target, connection: apsw.Connection) -> None:
    prune_parts.begin_removal(connection, target, NOW_MS)


REMOVALS = (
    ("removal", "frozen", "ice"),
    ("removal", "contains its messages", "work"),
)


@pytest.mark.parametrize(("table", "why", "name"), REMOVALS)
def test_an_sql_prompt_cannot_remove_what_must_stay(
    filled: SqliteStore, folder: Path, table: str, why: str, name: str
) -> None:
    connection = apsw.Connection(str(folder / "aura.db"))
    with pytest.raises(apsw.ConstraintError, match=why):
        connection.execute(f"INSERT INTO {table} SELECT sid, 0 FROM session WHERE id = ?", (name,)).fetchall()
    with pytest.raises(apsw.ConstraintError, match="only when it is removed"):
        connection.execute("UPDATE session SET head = NULL, journal_floor = last_seq + 1 WHERE id = 'bare'").fetchall()
    with pytest.raises(apsw.ConstraintError, match="an anchor is the hash"):
        connection.execute("INSERT INTO journal_anchor VALUES (1, 3, x'00')").fetchall()
    connection.close()


@pytest.fixture
def large(folder: Path) -> Iterator[SqliteStore]:
    """A store with one long session and one that is in use."""
    store = open_store(folder)
    for name in ("old", "live"):
        store.create_session(header(name))
    old = Keeper(store, "old")
    for number in range(6):
        old.save(messages_of(*(f"{number} {index} {'x' * 3000}" for index in range(1000))))
    old.release()
    yield store
    store.close()


def test_a_server_hardly_waits_while_others_prune(large: SqliteStore, folder: Path) -> None:
    live, stop, waits = Keeper(large, "live"), threading.Event(), list[float]()

    def load() -> None:
        while not stop.is_set():
            begin = time.monotonic()
            live.save(messages_of("x"))
            waits.append(time.monotonic() - begin)

    server = threading.Thread(target=load)
    server.start()
    try:
        report = prune(folder, ALL)
    finally:
        stop.set()
        server.join(30)
        live.release()
    assert {item.session_id for item in report.pruned} == {"old"}
    assert report.longest_ms < 1000  # a quiet machine takes some 40: the figure is measured in docs/store.md
    assert len(waits) > 5
    assert clean(folder)


def test_a_vacuum_gives_pages_back_and_wants_no_session_held(large: SqliteStore, folder: Path) -> None:
    caretaker = Caretaker(folder)
    live = Keeper(large, "live")
    with pytest.raises(SessionLocked):
        caretaker.vacuum()
    live.release()
    prune(folder, PruneRule("sessions"))
    done = caretaker.vacuum()
    assert done.after_bytes < done.before_bytes // 10
    assert clean(folder)


def test_stats_say_where_the_bytes_are(large: SqliteStore, folder: Path) -> None:
    stats = Caretaker(folder).measure(NOW_MS, 2)
    assert stats.exact
    assert stats.tables[0].name == "message" and stats.tables[0].table_bytes > 18_000_000
    assert stats.tables[0].rows == 6000
    assert [day.date for day in stats.days] == ["2025-12-31", "2026-01-01"]
    assert stats.days[1].events == 6 and stats.days[1].revisions == 8
    assert (stats.sessions, stats.frozen, stats.held, stats.large_texts) == (2, 0, 0, 0)
