"""The full-text index: off the commit path, caught up in steps, true to what the sessions hold now."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from aura import limits
from aura.conversation import Call, Message
from aura.errors import BadRequest, NotFound
from aura.store.history import Indexed, SearchQuery
from aura.store.sqlite import existing
from aura.store.sqlite import store as store_module
from aura.store.sqlite.asking import find_search
from aura.store.sqlite.migrate import read_migrations
from aura.store.sqlite.search import SqliteSearch
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import NOW_MS, Keeper, header, messages_of, parsed, query

SEARCH_SCHEMA = next(step.number for step in read_migrations() if step.name == "search")


@pytest.fixture
def search(store: SqliteStore, folder: Path):
    """The index of the store, which other parts of the test write."""
    opened = find_search(folder)
    assert opened is not None
    yield opened
    opened.close()


def catch_up(search: SqliteSearch) -> list[int]:
    left: list[int] = []
    search.catch_up(left.append)
    return left


def found(search: SqliteSearch, expression: str, **more) -> list[tuple[tuple[str, ...], int | None]]:
    """Return the sessions and the index of each hit, once everything is indexed."""
    catch_up(search)
    return [(hit.session_ids, hit.message.ordinal) for hit in search.find(SearchQuery(expression, **more))]


def integrity(folder: Path) -> None:
    """Compare the index, word by word, with the text that it is of."""
    connection = apsw.Connection(str(folder / "aura.db"))
    connection.execute("INSERT INTO message_search (message_search, rank) VALUES ('integrity-check', 1)").fetchall()
    connection.close()


def test_an_appended_message_is_not_in_the_index_until_somebody_searches(keeper, search, folder):
    keeper.save(messages_of("the quick fox"))
    assert search.count_indexed() == Indexed(0, 1)
    assert search.find(SearchQuery('"fox"')) == []
    assert found(search, '"fox"') == [(("s1",), 0)]
    assert search.count_indexed() == Indexed(1, 0)
    integrity(folder)


def test_catching_up_goes_on_from_its_mark(keeper, search, folder):
    keeper.save(messages_of("one fox"))
    assert found(search, '"fox"') == [(("s1",), 0)]
    keeper.save([Message("assistant", "two foxes and a fox", id="m2")])
    assert {place for _, place in found(search, '"fox"')} == {0, 1}
    assert catch_up(search) == []
    integrity(folder)


def test_a_call_is_found_by_its_tool_and_its_arguments_but_not_by_its_id_or_by_thinking(keeper, search):
    arguments = {"file_path": "src/login.py", "edits": [{"text": "line one\nnext"}], "port": 8081, "to": "C:\\new"}
    call = Call("call_77", "Edit", arguments)
    asking = Message("assistant", "", id="m1", thinking="a secret thought", calls=(call,))
    keeper.save([asking, Message("tool", "done", id="m2", tool_name="Edit", tool_call_id="call_77")])
    for expression in ('"edit"', '"src/login.py"', '"next"', '"8081"', '"new"'):
        assert found(search, expression) == [(("s1",), 0)], expression
    for expression in ('"call_77"', '"nnext"', '"secret"', '"thought"'):
        assert found(search, expression) == [], expression


def test_the_best_hit_comes_first_with_the_words_marked_in_its_snippet(keeper, search):
    keeper.save(messages_of("a fox " + "and other words " * 200, "fox fox", "nothing"))
    catch_up(search)
    best, other = search.find(SearchQuery('"fox"'))
    assert (best.message.ordinal, other.message.ordinal) == (1, 0)
    assert best.rank < other.rank
    assert best.snippet == "\x02fox\x03 \x02fox\x03"
    assert other.snippet.startswith("a \x02fox\x03 and") and other.snippet.endswith("…")


def test_accents_and_case_do_not_matter(keeper, search):
    keeper.save(messages_of("Grüße aus ZÜRICH"))
    assert found(search, '"grusse" OR "zurich"') == [(("s1",), 0)]


def test_a_message_that_forks_share_is_found_once_with_all_its_sessions(store, keeper, search):
    keeper.save(messages_of("the fox"))
    keeper.save([Message("user", "later fox", id="later")])
    store.fork("s1", "child", at_ms=NOW_MS)
    store.fork("child", "grandchild", at_ms=NOW_MS)
    keeper.save([Message("user", "own fox", id="own")])
    hits = {place: sessions for sessions, place in found(search, '"fox"')}
    assert hits[0][0] == "s1" and set(hits[0]) == {"s1", "child", "grandchild"}
    assert set(hits[1]) == {"s1", "child", "grandchild"}
    assert hits[2] == ("s1",)
    assert {place for _, place in found(search, '"fox"', session_id="child")} == {0, 1}


def test_what_was_dropped_is_not_found_though_its_revision_is_kept(keeper, search, store):
    old = keeper.save(messages_of("keep the fox", "drop the fox"))
    assert len(found(search, '"fox"')) == 2
    keeper.save([Message("user", "new text", id="n")], keep=1)
    assert found(search, '"fox"') == [(("s1",), 0)]
    assert found(search, '"new"') == [(("s1",), 1)]
    assert len(store.read_messages("s1", -1, None, old)[0]) == 2


def test_a_fork_of_an_old_revision_brings_its_messages_back(keeper, search, store):
    old = keeper.save(messages_of("keep", "drop the fox"))
    keeper.save(keep=1)
    assert found(search, '"fox"') == []
    store.fork("s1", "old", revision=old, at_ms=NOW_MS)
    assert found(search, '"fox"') == [(("old",), 1)]


def test_deleted_messages_leave_the_index_and_their_ids_may_come_again(keeper, search, folder):
    keeper.save(messages_of("keep", "drop the fox", "drop the hen"))
    assert found(search, '"fox"') == [(("s1",), 1)]
    keeper.save(keep=1)
    connection = apsw.Connection(str(folder / "aura.db"))
    connection.execute("DELETE FROM revision WHERE n < (SELECT max(n) FROM revision)").fetchall()
    connection.execute("DELETE FROM message WHERE idx > 0").fetchall()
    assert connection.execute("SELECT mark, (SELECT max(id) FROM message) FROM message_search_mark").fetchall() == [
        (1, 1)
    ]
    connection.close()
    integrity(folder)
    keeper.save(messages_of("another bird"))
    assert query(folder / "aura.db", "SELECT max(id) FROM message") == [(2,)]
    assert found(search, '"fox" OR "hen"') == []
    assert found(search, '"bird"') == [(("s1",), 1)]
    integrity(folder)


def test_messages_deleted_before_they_were_indexed_do_not_disturb_it(keeper, search, folder):
    keeper.save(messages_of("keep the fox"))
    catch_up(search)
    keeper.save([Message("user", "short lived fox", id="x")])
    keeper.save(keep=1)
    connection = apsw.Connection(str(folder / "aura.db"))
    connection.execute("DELETE FROM revision WHERE n < (SELECT max(n) FROM revision)").fetchall()
    connection.execute("DELETE FROM message WHERE idx > 0").fetchall()
    connection.close()
    assert found(search, '"fox"') == [(("s1",), 0)]
    integrity(folder)


def test_roles_and_times_narrow_a_search(store, keeper, search):
    keeper.save(
        [
            Message("user", "old fox", id="m0", created_at="2025-01-01T10:00:00+02:00"),
            Message("assistant", "new fox", id="m1", created_at="2026-01-01T00:00:00.500Z"),
            Message("user", "fox of its revision's time", id="m2"),
        ]
    )
    roles = frozenset(("user",))
    assert {place for _, place in found(search, '"fox"', roles=roles)} == {0, 2}
    assert {place for _, place in found(search, '"fox"', since_ms=NOW_MS)} == {1, 2}
    assert found(search, '"fox"', since_ms=NOW_MS + 1) == []
    assert len(found(search, '"fox"', since_ms=1_735_718_400_000)) == 3
    assert len(found(search, '"fox"', since_ms=1_735_718_400_001)) == 2


def test_a_message_that_is_known_to_be_older_than_its_save_is_older(keeper, search, folder):
    times = ("2025-12-31T23:59:59Z", "2026-01-01T00:00:01+00:00", "not a time")
    keeper.save([Message("user", "fox", id=f"m{n}", created_at=text) for n, text in enumerate(times)])
    keeper.commit(checkpoint=keeper.checkpoint([Message("user", "fox", id="m3")]), at_ms=NOW_MS + 60_000)
    assert {place for _, place in found(search, '"fox"', since_ms=NOW_MS)} == {1, 2, 3}
    assert {place for _, place in found(search, '"fox"', since_ms=NOW_MS + 1)} == {3}


def test_a_limit_keeps_the_best(keeper, search):
    keeper.save(messages_of(*("a fox among words " + "word " * n for n in range(10))))
    assert [place for _, place in found(search, '"fox"', limit=3)] == [0, 1, 2]


def test_steps_are_bounded_by_rows_and_by_bytes(keeper, search, monkeypatch):
    monkeypatch.setattr(limits, "SEARCH_STEP_ROWS", 4)
    keeper.save(messages_of(*(f"fox {n}" for n in range(10))))
    assert catch_up(search) == [6, 2, 0]
    monkeypatch.setattr(limits, "SEARCH_STEP_BYTES", 3000)
    keeper.save(messages_of(*("fox " * 300 for n in range(4)), "fox " * 3000, "fox"))
    assert catch_up(search) == [4, 2, 1, 0]
    assert len(found(search, '"fox"')) == 16


def test_a_step_waits_for_no_longer_than_its_turn_among_writers(keeper, search, monkeypatch):
    monkeypatch.setattr(limits, "SEARCH_STEP_ROWS", 1)
    keeper.save(messages_of(*(f"fox {n}" for n in range(5))))
    saved = []
    search.catch_up(lambda left: saved.append(keeper.save([Message("user", f"late {left}", id=f"l{left}")])))
    assert len(saved) == 5  # a holder commits between any two steps, and is not waited for
    assert search.count_indexed() == Indexed(5, 5)


def test_two_searchers_at_once_index_everything_once(keeper, search, folder, monkeypatch):
    monkeypatch.setattr(limits, "SEARCH_STEP_ROWS", 2)
    keeper.save(messages_of(*(f"fox {n}" for n in range(9))))
    other = find_search(folder)
    assert other is not None
    search.catch_up(lambda left: catch_up(other))
    other.close()
    assert len(found(search, '"fox"', limit=100)) == 9
    integrity(folder)


def test_the_index_can_be_emptied_and_made_anew(keeper, search, folder):
    keeper.save(messages_of("the fox", "the hen"))
    assert len(found(search, '"fox" OR "hen"')) == 2
    search.clear()
    assert search.count_indexed() == Indexed(0, 2)
    assert search.find(SearchQuery('"fox"')) == []
    assert len(found(search, '"fox" OR "hen"')) == 2
    integrity(folder)


@pytest.mark.parametrize("expression", ['"fox', "fox AND", "nope:fox", "*", "NEAR(", "a ^ b)", ""])
def test_an_expression_that_is_wrong_is_a_bad_request(keeper, search, expression):
    with pytest.raises(BadRequest) as caught:
        search.check(SearchQuery(expression))
    assert caught.value.hint


def test_an_unknown_session_is_not_found(keeper, search):
    with pytest.raises(NotFound):
        search.check(SearchQuery('"fox"', session_id="nope"))


def test_the_text_is_not_stored_a_second_time(keeper, search, folder):
    text = " ".join(f"word{n}" for n in range(5000))
    keeper.save(messages_of(text))
    catch_up(search)
    (stored,) = query(folder / "aura.db", "SELECT sum(length(block)) FROM message_search_data")
    assert isinstance(stored[0], int) and stored[0] < len(text)
    assert query(folder / "aura.db", "SELECT count(*) FROM sqlite_schema WHERE name = 'message_search_content'") == [
        (0,)
    ]


def test_a_million_characters_of_a_message_are_searched(keeper, search, folder):
    long = "word " * 200_000
    call = Call("c", "Write", {"content": "x " * 600_000 + "walrus"})
    keeper.save([Message("assistant", f"start {long} end", id="m", calls=(call,))])
    keeper.save([Message("tool", "done", id="t", tool_call_id="c")])
    assert found(search, '"start"') == found(search, '"write"') == [(("s1",), 0)]
    assert found(search, '"end" OR "walrus"') == []
    integrity(folder)


@pytest.mark.parametrize("after", ["", " x" * 600_000], ids=["a short one", "a long one"])
def test_what_stands_behind_a_nul_is_found_too(keeper, search, folder, after):
    keeper.save([Message("tool", f"binary\0walrus{after}", id="t0")])
    assert found(search, '"walrus"') == [(("s1",), 0)]
    integrity(folder)


def test_a_nul_in_an_argument_ends_a_word_and_one_that_is_only_written_does_not(keeper, search, folder):
    call = Call("c1", "Write", {"content": "a\0walrus"})
    keeper.save([Message("assistant", 'c = "\\u0000fox"\0', id="m1", calls=(call,))])
    keeper.save([Message("tool", "done", id="m2", tool_name="Write", tool_call_id="c1")])
    assert found(search, '"walrus"') == found(search, '"u0000fox"') == [(("s1",), 0)]
    integrity(folder)


def test_imported_sessions_are_found_too(store, search):
    store.import_session(parsed("other", "an imported fox"), freeze=True, at_ms=NOW_MS)
    assert found(search, '"fox"') == [(("other",), 0)]


def test_a_holder_that_runs_an_older_program_goes_on_while_a_newer_one_searches(folder, monkeypatch):
    steps = read_migrations()
    with monkeypatch.context() as older:
        older.setattr(store_module, "read_migrations", lambda: steps[: SEARCH_SCHEMA - 1])
        older.setattr(existing, "count_migrations", lambda: SEARCH_SCHEMA - 1)
        store = SqliteStore(folder / "aura.db")
        store.prepare()
        store.create_session(header("s1"))
        keeper = Keeper(store, "s1")
        keeper.save(messages_of("an old fox"))
    search = find_search(folder)  # migrates, as every command of the newer program does
    assert search is not None
    assert found(search, '"fox"') == [(("s1",), 0)]
    keeper.save([Message("user", "the old program's next fox", id="next")])
    assert len(found(search, '"fox"')) == 2
    search.close()
    keeper.release()
    store.close()
    integrity(folder)
