"""Reads of the past: saved states and what they share, messages by role and place, runs, a morning's figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aura.conversation import Message
from aura.errors import BadRequest, NotFound
from aura.store.history import Ended, MessageFilter, RunQuery
from aura.store.sqlite import chains
from aura.store.sqlite.asking import find_history
from aura.store.sqlite.store import SqliteStore
from aura.wire import document
from tests.support.sql_store import make_sql_store
from tests.unit.store.store_kit import NOW_MS, messages_of

ALL = frozenset(("user", "assistant", "tool"))


@pytest.fixture
def history(store: SqliteStore, folder: Path):
    opened = find_history(folder)
    assert opened is not None
    yield opened
    opened.close()


@pytest.fixture
def told(tmp_path: Path):
    """The history of the small store of docs/sql.md."""
    make_sql_store(tmp_path / "told")
    opened = find_history(tmp_path / "told")
    assert opened is not None
    yield opened
    opened.close()


def contents(messages) -> list[str]:
    return [document.decode_message(item.body).content for item in messages]


def test_there_is_no_history_where_there_is_no_store(tmp_path):
    assert find_history(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_saves_say_what_they_share_with_the_one_before(keeper, history):
    keeper.save(messages_of("a", "b", "c"))
    keeper.save([Message("system", "a notice", id="n"), Message("assistant", "d", id="d")])
    keeper.save([Message("user", "e", id="e")], keep=2)
    keeper.save()
    saves = history.list_saves("s1", None)
    assert [(save.n, save.messages, save.stored, save.shared, save.before) for save in saves] == [
        (5, 3, 3, 3, 3),
        (4, 3, 3, 2, 5),
        (3, 4, 5, 3, 3),
        (2, 3, 3, 0, 0),
        (1, 0, 0, 0, 0),
    ]
    assert [save.n for save in history.list_saves("s1", 2)] == [5, 4]
    assert history.list_saves("s1", 2) == saves[:2]
    assert all(save.header.system == "Be careful." for save in saves)


def test_a_changed_prompt_and_header_are_those_of_each_save(keeper, history):
    keeper.header = replace(keeper.header, system="Be bold.", title="Another")
    keeper.save(messages_of("a"))
    new, old = history.list_saves("s1", None)
    assert (new.header.system, new.header.title) == ("Be bold.", "Another")
    assert (old.header.system, old.header.title) == ("Be careful.", "A title")


def test_a_save_is_found_by_the_beginning_of_its_hash_and_one_before_it_by_its_number(keeper, history):
    first = keeper.save(messages_of("a"))
    second = keeper.save(messages_of("b"))
    assert history.get_save("s1", None).sha256 == second
    assert history.get_save("s1", first[:10]).sha256 == first
    before = history.find_save_before("s1", history.get_save("s1", None).n)
    assert before is not None and before.sha256 == first
    assert history.find_save_before("s1", 1) is None
    with pytest.raises(NotFound):
        history.get_save("s1", "0" * 64)
    with pytest.raises(BadRequest):
        history.get_save("s1", "")
    for verb in (lambda: history.get_save("x", None), lambda: history.list_saves("x", None)):
        with pytest.raises(NotFound):
            verb()


def test_two_branches_share_what_stands_before_they_part(keeper, history):
    keeper.save(messages_of("a", "b", "c", "d"))  # 2
    keeper.save([Message("user", "x", id="x")], keep=3)  # 3
    keeper.save([Message("user", "y", id="y")])  # 4
    keeper.save([Message("user", "z", id="z")], keep=1)  # 5
    shared = {(a, b): history.count_shared("s1", a, b) for a in range(1, 6) for b in range(1, 6)}
    assert all(shared[a, b] == shared[b, a] for a, b in shared)
    assert (shared[2, 3], shared[2, 4], shared[3, 4], shared[2, 5], shared[4, 5]) == (3, 3, 4, 1, 1)
    assert shared[1, 5] == 0 and shared[4, 4] == 5


def test_messages_are_chosen_by_role_place_and_from_the_end(keeper, history):
    talk = [Message("user" if n % 2 == 0 else "assistant", f"m{n}", id=f"m{n}") for n in range(600)]
    talk.insert(3, Message("system", "a notice", id="notice"))
    keeper.save(talk[:400])
    keeper.save(talk[400:], keep=300)  # so that there are two segments: m0..m298, m399..m599
    n = history.get_save("s1", None).n

    def read(**where):
        return contents(history.select_messages("s1", n, MessageFilter(**{"roles": ALL} | where)))

    everything = [f"m{n}" for n in range(299)] + [f"m{n}" for n in range(399, 600)]
    assert read() == everything
    assert read(roles=frozenset(("user",))) == [text for text in everything if int(text[1:]) % 2 == 0]
    assert read(after=-1) == everything
    assert read(after=10) == everything[11:]
    assert read(after=298) == everything[299:]
    assert read(after=499) == [] == read(after=10_000)
    assert read(tail=2) == ["m598", "m599"]
    assert read(tail=250) == everything[-250:]
    assert read(tail=10_000) == everything
    assert read(tail=2, roles=frozenset(("assistant",))) == ["m597", "m599"]
    assert read(after=498, tail=2) == ["m599"]
    assert read(roles=frozenset(("system",))) == ["a notice"]
    assert read(roles=frozenset(("system", "user")), tail=1000)[:3] == ["m0", "m2", "a notice"]
    assert read(roles=frozenset(("system",)), after=2) == ["a notice"]
    assert read(roles=frozenset(("system",)), after=3) == []


def test_a_reader_who_pauses_holds_no_transaction(keeper, history):
    keeper.save(messages_of(*(str(n) for n in range(600))))
    reading = history.select_messages("s1", 2, MessageFilter(ALL))
    assert contents([next(reading)]) == ["0"]
    assert not history._connection.in_transaction
    assert history._connection.cursor_count == 0 if hasattr(history._connection, "cursor_count") else True
    keeper.save([Message("user", "x", id="x")], keep=1)
    assert len(list(reading)) == 599


def test_runs_are_chosen_by_session_state_outcome_and_time(told):
    def ids(**where):
        return [entry.run.id for entry in told.list_runs(RunQuery(**where), None)]

    everything = ids()
    assert sorted(everything) == [f"run-{n}" for n in range(1, 8)]
    assert ids(session_id="nightly") == ["run-5", "run-4"] and told.list_runs(RunQuery(), 2)[0].run.id == everything[0]
    assert ids(states=frozenset(("lost",))) == ["run-5"]
    assert set(ids(states=frozenset(("running",)), outcomes=frozenset(("failed",)))) == {"run-7", "run-3"}
    week_ms = 1_768_176_000_000  # 2026-01-12
    assert set(ids(since_ms=week_ms)) == {"run-6", "run-7"}
    assert ids(since_ms=week_ms * 2) == ["run-7"]  # it has not settled
    with pytest.raises(NotFound):
        ids(session_id="nope")


def test_runs_come_with_what_was_asked(told):
    (entry,) = told.list_runs(RunQuery(session_id="docs", outcomes=frozenset(("cancelled",))), None)
    assert (entry.run.id, entry.text) == ("run-6", "Translate the manual")


def test_a_mornings_figures(told):
    stats = told.get_stats(0)
    assert {(item.state, item.outcome): item.runs for item in stats.ended} == {
        ("persisted", "completed"): 3,
        ("persisted", "failed"): 1,
        ("persisted", "cancelled"): 1,
        ("lost", None): 1,
        ("running", None): 1,
    }
    assert [(item.code, item.runs) for item in stats.failures] == [("provider_rate_limit", 1), ("server_lost", 1)]
    assert [note.run_id for note in stats.lost] == ["run-5"]
    assert [(note.run_id, note.held) for note in stats.live] == [("run-7", False)]
    (waiting,) = stats.waiting
    assert (waiting.input_id, waiting.question, waiting.detail) == ("in-1", "Run this command?", "git push origin v2")
    assert {item.model: (item.calls, item.cost_usd) for item in stats.models}["qwen-coder"] == (4, None)
    assert [(tool.name, tool.calls, tool.errors, tool.mean_ms) for tool in stats.tools][:2] == [
        ("WebFetch", 2, 1, 5000),
        ("Bash", 4, 1, 1433),
    ]
    size = stats.size
    assert (size.sessions, size.runs, size.events, size.messages) == (3, 7, 86, 27)
    assert size.database_bytes > 0


def test_figures_of_a_time_count_only_what_was_at_work_then(told):
    stats = told.get_stats(1_768_176_000_000)  # 2026-01-12
    assert set(stats.ended) == {Ended("persisted", "cancelled", 1), Ended("running", None, 1)}
    assert (stats.failures, stats.lost) == ((), ())
    assert [tool.name for tool in stats.tools] == ["Bash", "Read"]
    assert len(stats.live) == len(stats.waiting) == 1


def test_a_live_run_of_a_held_session_is_held(keeper, history):
    keeper.start(keeper.accept())
    (note,) = history.get_stats(NOW_MS).live
    assert (note.session_id, note.state, note.held) == ("s1", "running", True)


def test_an_empty_stores_figures_are_empty(history):
    stats = history.get_stats(0)
    assert (stats.ended, stats.tools, stats.models, stats.size.events) == ((), (), (), 0)


def test_segments_of_a_chain_are_read_in_order(keeper, store):
    keeper.save(messages_of("a", "b"))
    keeper.save([Message("user", "c", id="c")], keep=1)
    with store._reader() as connection:
        (place,) = connection.execute("SELECT chain, length FROM revision ORDER BY n DESC LIMIT 1").fetchall()
        assert [until for _, until in chains.read_segments(connection, *place)] == [1, 2]
