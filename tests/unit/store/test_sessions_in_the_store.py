"""Creating, importing, exporting, forking, freezing and listing sessions, over a real database."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aura import events as e
from aura.clock import format_time
from aura.conversation import Call, Conversation, Message, Parent
from aura.errors import (
    BadRequest,
    Exists,
    InvalidId,
    NotFound,
    RevisionMismatch,
    SessionFrozen,
    SessionLocked,
    StoreUnavailable,
)
from aura.store import protocol as p
from aura.store.sqlite.store import SqliteStore
from aura.wire import document
from tests.unit.store.store_kit import (
    ME,
    NOW_MS,
    Keeper,
    Reopen,
    exported,
    header,
    messages_of,
    parsed,
    persisted,
    query,
    sha256,
    tamper,
)


def test_a_created_session_is_found_exported_and_hashes_to_its_revision(store: SqliteStore) -> None:
    made = store.create_session(header("s1"))
    assert made == store.find_session("s1") == store.get_session("s1")
    assert (made.messages, made.frozen, made.parent, made.created_at_ms) == (0, False, None, NOW_MS)
    data = exported(store, "s1")
    assert sha256(data) == made.revision
    assert data.startswith(b'{"messages":[],"system":"Be careful.","id":"s1","title":"A title"')
    with pytest.raises(Exists):
        store.create_session(header("s1"))


def test_missing_sessions_and_bad_ids_have_their_codes(store: SqliteStore) -> None:
    assert store.find_session("nope") is None
    for verb in (store.get_session, store.load_conversation, store.export, store.list_revisions, store.read_last_seq):
        with pytest.raises(NotFound):
            verb("nope")  # type: ignore[operator]
    with pytest.raises(NotFound):
        store.read_events("nope", 0, 1)
    with pytest.raises(NotFound):
        store.read_messages("nope", -1, 1)
    with pytest.raises(NotFound):
        store.fork("nope", "child", at_ms=NOW_MS)
    with pytest.raises(NotFound):
        store.freeze("nope", at_ms=NOW_MS)
    with pytest.raises(NotFound):
        store.acquire("nope", ME)
    for bad in ("", "a/b", "..", "a..b", ".a", "a" * 129, "ä"):
        with pytest.raises(InvalidId):
            store.create_session(header(bad))
        with pytest.raises(InvalidId):
            store.acquire(bad, ME)
    store.create_session(header("s1"))
    with pytest.raises(InvalidId):
        store.fork("s1", "a/b", at_ms=NOW_MS)


def test_every_revision_of_a_growing_session_exports_to_its_hash(keeper: Keeper) -> None:
    revisions = [keeper.store.get_session("s1").revision]
    documents = [exported(keeper.store, "s1")]
    for index in range(5):
        revisions.append(keeper.save(messages_of(f"a{index}", f"b{index}")))
        documents.append(exported(keeper.store, "s1"))
    listed = keeper.store.list_revisions("s1")
    assert [item.sha256 for item in listed] == revisions[::-1]
    assert [(item.n, item.messages, item.reason) for item in listed[::-1]][:2] == [
        (1, 0, "create"),
        (2, 2, "checkpoint"),
    ]
    assert listed[0].at_ms > 0
    for revision, data in zip(revisions, documents, strict=True):
        assert exported(keeper.store, "s1", revision) == exported(keeper.store, "s1", revision[:12]) == data
        assert sha256(data) == revision


def test_the_summary_of_an_old_revision_describes_that_revision(keeper: Keeper) -> None:
    old = keeper.save(messages_of("one", "two"))
    keeper.save(messages_of("three"))
    summary, _ = keeper.store.export("s1", old)
    assert (summary.revision, summary.messages) == (old, 2)
    now, _ = keeper.store.export("s1")
    assert now == keeper.store.get_session("s1")


def test_a_revision_prefix_must_name_one_content(keeper: Keeper) -> None:
    with pytest.raises(NotFound):
        keeper.store.export("s1", "f" * 64 + "0")
    with pytest.raises(NotFound):
        keeper.store.export("s1", "not hex")
    first = keeper.store.get_session("s1").revision
    seen = {first[0]: first}
    for index in range(40):
        revision = keeper.save(messages_of(str(index)))
        if revision[0] in seen:
            with pytest.raises(BadRequest):
                keeper.store.load_conversation("s1", revision[0])
            return
        seen[revision[0]] = revision
    pytest.fail("seventeen hashes begin with seventeen different hex digits")


def test_a_checkpoint_that_keeps_a_part_starts_a_new_chain_and_the_old_revision_stays(keeper: Keeper) -> None:
    before = keeper.save([*messages_of("a", "b"), Message("system", "note"), *messages_of("c")])
    after = keeper.save(messages_of("summary"), keep=1)
    deeper = keeper.save([*messages_of("x"), Message("system", "y")], keep=2)
    nothing = keeper.save((), keep=0)
    contents = {
        revision: [document.decode_message(body).content for body in stored.conversation.messages]
        for revision in (before, after, deeper, nothing)
        for stored in [keeper.store.load_conversation("s1", revision)]
    }
    assert contents == {
        before: ["a", "b", "note", "c"],
        after: ["a", "summary"],
        deeper: ["a", "summary", "x", "y"],
        nothing: [],
    }
    for revision in contents:
        assert sha256(exported(keeper.store, "s1", revision)) == revision
    assert keeper.store.get_session("s1").messages == 0
    assert keeper.store.export("s1", deeper)[0].messages == 3


@pytest.mark.parametrize("keep", [-1, 3])
def test_a_checkpoint_cannot_keep_more_than_there_is(keeper: Keeper, keep: int) -> None:
    keeper.save(messages_of("a", "b"))
    wrong = keeper.checkpoint(messages_of("c"))
    with pytest.raises(Exception, match="cannot keep"):
        keeper.commit(
            [], None, p.Checkpoint(wrong.new_messages, wrong.header, wrong.tail, wrong.revision, 3, "run", keep)
        )
    assert keeper.store.get_session("s1").messages == 2


def test_a_checkpoint_with_a_wrong_count_is_refused_whole(keeper: Keeper) -> None:
    good = keeper.checkpoint(messages_of("a"))
    wrong = p.Checkpoint(good.new_messages, good.header, good.tail, good.revision, 7, good.reason)
    with pytest.raises(Exception, match="counts 7 messages"):
        keeper.commit([persisted(wrong)], None, wrong)
    assert keeper.store.read_last_seq("s1") == 0
    assert len(keeper.store.list_revisions("s1")) == 1


def test_messages_are_paged_by_ordinal_without_system_messages(keeper: Keeper) -> None:
    system = Message("system", "s", type=3)
    keeper.save([system, system, system, *messages_of("0", "1"), system, *messages_of("2", "3", "4")])
    old = keeper.store.get_session("s1").revision

    def page(after: int, limit: int | None, revision: str | None = None) -> list[tuple[int, str]]:
        items, total = keeper.store.read_messages("s1", after, limit, revision)
        assert total == (5 if revision == old else 6)
        return [(ordinal, document.decode_message(body).content) for ordinal, body in items]

    keeper.save(messages_of("5"))
    whole = [(index, str(index)) for index in range(6)]
    assert page(-1, None) == whole
    assert page(-1, None, old) == whole[:5]
    walked: list[tuple[int, str]] = []
    while step := page(walked[-1][0] if walked else -1, 2):
        assert len(step) == 2
        walked += step
    assert walked == whole
    assert page(5, 1) == page(10**30, 1) == page(2, 0) == []


@pytest.mark.requirement("store.lineage.parent-untouched")
def test_a_fork_shares_the_parents_messages_and_leaves_it_alone(keeper: Keeper, folder: Path) -> None:
    keeper.save(messages_of("a", "b"))
    parent = keeper.store.get_session("s1")
    stored = query(folder / "aura.db", "SELECT count(*) FROM message")
    made = keeper.store.fork("s1", "child", at_ms=NOW_MS + 50)
    assert (made.created, made.parent, made.session.parent) == (True, parent, Parent("s1", parent.revision))
    assert (made.session.messages, made.session.title, made.session.created_at_ms) == (2, "A title", NOW_MS + 50)
    assert keeper.store.get_session("s1") == parent
    assert query(folder / "aura.db", "SELECT count(*) FROM message") == stored
    child = keeper.store.load_conversation("child").conversation
    assert child.messages == keeper.store.load_conversation("s1").conversation.messages
    assert child.header.system == "Be careful."
    assert sha256(exported(keeper.store, "child")) == made.session.revision
    assert keeper.store.read_last_seq("child") == 0


def test_a_repeated_fork_returns_the_child_as_it_is_stored(keeper: Keeper) -> None:
    keeper.save(messages_of("a"))
    first = keeper.store.fork("s1", "child", title="Mine", at_ms=NOW_MS)
    child = Keeper(keeper.store, "child")
    child.save(messages_of("own"))
    again = keeper.store.fork("s1", "child", title="Other", at_ms=NOW_MS + 1)
    assert (again.created, again.session.title, again.session.messages) == (False, "Mine", 2)
    assert again.session.parent == first.session.parent
    child.release()


def test_a_fork_onto_any_other_session_is_exists(keeper: Keeper) -> None:
    keeper.store.create_session(header("other"))
    with pytest.raises(Exists):
        keeper.store.fork("s1", "other", at_ms=NOW_MS)
    with pytest.raises(Exists):
        keeper.store.fork("s1", "s1", at_ms=NOW_MS)
    keeper.store.fork("s1", "child", at_ms=NOW_MS)
    keeper.save(messages_of("moved on"))
    with pytest.raises(Exists):
        keeper.store.fork("s1", "child", at_ms=NOW_MS)


def test_a_fork_expects_the_revision_it_is_told(keeper: Keeper) -> None:
    old = keeper.store.get_session("s1").revision
    new = keeper.save(messages_of("a"))
    with pytest.raises(RevisionMismatch):
        keeper.store.fork("s1", "child", expect_revision=old, at_ms=NOW_MS)
    assert keeper.store.find_session("child") is None
    assert keeper.store.fork("s1", "child", expect_revision=new, at_ms=NOW_MS).created
    made = keeper.store.fork("s1", "past", revision=old[:10], expect_revision=old, at_ms=NOW_MS)
    assert (made.session.messages, made.session.parent) == (0, Parent("s1", old))


def test_forks_of_forks_stay_right_when_every_generation_goes_on(store: SqliteStore, folder: Path) -> None:
    store.create_session(header("g0"))
    contents: dict[str, list[str]] = {"g0": []}
    for generation in range(6):
        name, child = f"g{generation}", f"g{generation + 1}"
        keeper = Keeper(store, name)
        keeper.save(messages_of(f"{name}-before"))
        contents[name].append(f"{name}-before")
        store.fork(name, child, at_ms=NOW_MS)
        contents[child] = list(contents[name])
        keeper.save(messages_of(f"{name}-after"))
        contents[name].append(f"{name}-after")
        keeper.release()
    for name, expected in contents.items():
        stored = store.load_conversation(name).conversation
        assert [document.decode_message(body).content for body in stored.messages] == expected
        assert sha256(exported(store, name)) == store.get_session(name).revision
        rows = query(folder / "aura.db", "SELECT content FROM v_message WHERE session_id = ? ORDER BY idx", name)
        assert [row[0] for row in rows] == expected


@pytest.mark.requirement("session.fork.idempotent")
def test_twenty_threads_forking_one_child_make_one(keeper: Keeper) -> None:
    keeper.save(messages_of("a"))
    barrier, results = threading.Barrier(20), list[p.Forked]()

    def fork(index: int) -> None:
        barrier.wait(10)
        results.append(keeper.store.fork("s1", "child", at_ms=NOW_MS + index))

    threads = [threading.Thread(target=fork, args=(index,)) for index in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 20
    assert sum(result.created for result in results) == 1
    assert len({result.session.revision for result in results}) == 1


@pytest.mark.requirement("session.fork.history")
def test_a_changed_message_makes_forking_fail_rather_than_copy_it(keeper: Keeper, folder: Path) -> None:
    keeper.save(messages_of("a", "b"))
    tamper(folder / "aura.db", "UPDATE message SET body = replace(body, 'a', 'x') WHERE idx = 0")
    with pytest.raises(StoreUnavailable, match="no longer hash"):
        keeper.store.fork("s1", "child", at_ms=NOW_MS)
    tamper(folder / "aura.db", "DELETE FROM message WHERE idx = 0")
    with pytest.raises(StoreUnavailable, match="missing"):
        exported(keeper.store, "s1")
    with pytest.raises(StoreUnavailable, match="missing"):
        keeper.store.load_conversation("s1")


def test_an_import_is_stored_once(store: SqliteStore) -> None:
    made = store.import_session(parsed("s1", "a", "b"), freeze=False, at_ms=NOW_MS + 7)
    assert (made.created, made.frozen_now, made.session.messages) == (True, False, 2)
    later = Conversation(header("s1", updated_at=format_time(NOW_MS + 999)), parsed("s1", "a", "b").messages)
    again = store.import_session(later, freeze=False, at_ms=NOW_MS + 8)
    assert (again.created, again.frozen_now, again.session) == (False, False, made.session)
    for other in (parsed("s1", "a"), parsed("s1", "a", "c"), parsed("s1", "a", "b", title="B")):
        with pytest.raises(Exists):
            store.import_session(other, freeze=False, at_ms=NOW_MS)
        with pytest.raises(Exists):
            store.import_session(other, freeze=True, at_ms=NOW_MS)
    assert store.get_session("s1") == made.session


def test_an_import_can_freeze_at_once_or_later(store: SqliteStore) -> None:
    now = store.import_session(parsed("s1", "a"), freeze=True, at_ms=NOW_MS)
    assert (now.created, now.frozen_now, now.session.frozen) == (True, True, True)
    again = store.import_session(parsed("s1", "a"), freeze=True, at_ms=NOW_MS)
    assert (again.created, again.frozen_now, again.session) == (False, False, now.session)
    store.import_session(parsed("s2", "a"), freeze=False, at_ms=NOW_MS)
    later = store.import_session(parsed("s2", "a"), freeze=True, at_ms=NOW_MS)
    assert (later.created, later.frozen_now, later.session.frozen) == (False, True, True)


def test_an_import_of_a_frozen_file_is_frozen_with_its_lineage(store: SqliteStore) -> None:
    parent = Parent("far", "a" * 64)
    frozen = Conversation(header("s1", frozen=True, parent=parent), parsed("s1", "a").messages)
    made = store.import_session(frozen, freeze=False, at_ms=NOW_MS)
    assert (made.frozen_now, made.session.frozen, made.session.parent) == (True, True, parent)
    with pytest.raises(SessionFrozen):
        store.acquire("s1", ME)


def test_an_import_without_times_gets_the_time_of_the_import(store: SqliteStore) -> None:
    bare = Conversation(header("s1", created_at="", updated_at=""), ())
    made = store.import_session(bare, freeze=False, at_ms=NOW_MS + 3)
    assert (made.session.created_at_ms, made.session.updated_at_ms) == (NOW_MS + 3, NOW_MS + 3)


def test_importing_what_was_exported_is_the_same_session(keeper: Keeper) -> None:
    call = Call("c", "Bash", {"n": 10**40, "t": "\u2028\x00é"})
    keeper.save([Message("assistant", "", calls=(call,)), Message("tool", "r", tool_call_id="c", tool_name="Bash")])
    keeper.release()
    data = exported(keeper.store, "s1")
    assert not keeper.store.import_session(document.parse_document(data), freeze=False, at_ms=NOW_MS).created
    copy = keeper.store.import_session(document.parse_document(data, id="s2"), freeze=False, at_ms=NOW_MS)
    assert copy.created
    assert exported(keeper.store, "s2") == data.replace(b'"id":"s1"', b'"id":"s2"')


@pytest.mark.requirement("store.frozen.irreversible")
def test_freezing_is_for_ever_and_safe_to_repeat(keeper: Keeper) -> None:
    before = keeper.save(messages_of("a"))
    keeper.release()
    with pytest.raises(RevisionMismatch):
        keeper.store.freeze("s1", expect_revision="0" * 64, at_ms=NOW_MS)
    assert not keeper.store.get_session("s1").frozen
    frozen = keeper.store.freeze("s1", expect_revision=before, at_ms=NOW_MS + 90)
    assert (frozen.changed, frozen.session.frozen, frozen.session.updated_at_ms) == (True, True, NOW_MS + 90)
    after = frozen.session.revision
    assert sha256(exported(keeper.store, "s1")) == after != before
    for expected in (None, before, after):
        again = keeper.store.freeze("s1", expect_revision=expected, at_ms=NOW_MS + 100)
        assert (again.changed, again.session) == (False, frozen.session)
    with pytest.raises(RevisionMismatch):
        keeper.store.freeze("s1", expect_revision="0" * 64, at_ms=NOW_MS)


@pytest.mark.requirement("store.frozen.readable", "store.frozen.save")
def test_a_frozen_session_can_be_read_and_forked_but_not_written(keeper: Keeper) -> None:
    keeper.save(messages_of("a"))
    keeper.release()
    frozen = keeper.store.freeze("s1", at_ms=NOW_MS).session
    with pytest.raises(SessionFrozen):
        keeper.store.acquire("s1", ME)
    assert exported(keeper.store, "s1")
    made = keeper.store.fork("s1", "child", at_ms=NOW_MS)
    assert (made.session.frozen, made.session.parent) == (False, Parent("s1", frozen.revision))
    child = Keeper(keeper.store, "child")
    child.save(messages_of("b"))
    child.release()
    assert keeper.store.get_session("s1") == frozen


def test_a_held_session_cannot_be_frozen(keeper: Keeper, reopen: Reopen) -> None:
    for store in (keeper.store, reopen()):
        with pytest.raises(SessionLocked):
            store.freeze("s1", at_ms=NOW_MS)
        assert store.import_session(Conversation(header("s1"), ()), freeze=False, at_ms=NOW_MS).created is False
        with pytest.raises(SessionLocked):
            store.import_session(Conversation(header("s1"), ()), freeze=True, at_ms=NOW_MS)
        with pytest.raises(Exists):
            store.import_session(parsed("s1", "different"), freeze=True, at_ms=NOW_MS)
    assert not keeper.store.get_session("s1").frozen


def test_freezing_a_crashed_session_settles_its_run_first(keeper: Keeper) -> None:
    saved = keeper.save(messages_of("a"))
    run = keeper.accept(on_input="wait")
    keeper.start(run)
    asked = e.InputRequired(input_id="inp_1", input_kind="ask", question="?")
    answered = e.InputRequired(input_id="inp_2", input_kind="ask", question="?")
    keeper.commit([answered, asked, e.ToolStarted(call_id="c", name="Bash", args={})], run.id)
    keeper.store.answer("inp_2", "x", answered_by="me", at_ms=NOW_MS)
    keeper.lease.lock.close()  # as if the process had died
    frozen = keeper.store.freeze("s1", at_ms=NOW_MS + 500)
    assert frozen.changed
    rows = keeper.store.read_events("s1", 0, 100)
    assert [row.type for row in rows[-2:]] == ["input.resolved", "run.lost"]
    assert sum(row.type == "input.resolved" for row in rows) == 2
    lost = keeper.store.get_run(run.id)
    assert (lost.state, lost.outcome, lost.settled_at_ms) == ("lost", None, NOW_MS + 500)
    assert lost.error is not None and (lost.error.code, lost.error.retryable) == ("server_lost", False)
    assert lost.persisted is not None
    assert (lost.persisted.revision, lost.persisted.messages, lost.persisted.seq) == (saved, 1, 1)
    assert keeper.store.get_input("inp_1").state == "dismissed"
    assert keeper.store.list_runs(p.RunFilter("s1", live=True)).items == ()


@pytest.mark.requirement("session.freeze.idempotent")
def test_two_freezers_at_once_agree(store: SqliteStore, reopen: Reopen) -> None:
    store.create_session(header("s1"))
    stores, barrier = [store, reopen()], threading.Barrier(2)
    results: list[p.Frozen | Exception] = []

    def freeze(which: SqliteStore) -> None:
        barrier.wait(10)
        try:
            results.append(which.freeze("s1", at_ms=NOW_MS))
        except SessionLocked as error:
            results.append(error)

    threads = [threading.Thread(target=freeze, args=(which,)) for which in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    done = [result for result in results if isinstance(result, p.Frozen)]
    assert len(results) == 2 and done
    assert sum(result.changed for result in done) == 1


def test_sessions_are_listed_by_date_with_cursors(store: SqliteStore) -> None:
    for index in range(5):
        at = format_time(NOW_MS + index // 2)
        store.create_session(header(f"s{index}", created_at=at, updated_at=at))
    names = ["s4", "s3", "s2", "s1", "s0"]
    assert [item.id for item in store.list_sessions(p.SessionFilter()).items] == names
    seen: list[str] = []
    cursor = None
    while True:
        page = store.list_sessions(p.SessionFilter(), cursor, 2)
        seen += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == names
    store.fork("s1", "child", at_ms=NOW_MS)
    assert [item.id for item in store.list_sessions(p.SessionFilter(parent_id="s1")).items] == ["child"]
    for cursor in ("x", "é", "bnVsbA==", "WzFd", "WzEwMDAwMDAwMDAwMDAwMDAwMDAwMCwiYSJd"):
        with pytest.raises(BadRequest):
            store.list_sessions(p.SessionFilter(), cursor, 2)


def test_ids_are_found_by_prefix_and_exactly_first(store: SqliteStore) -> None:
    for name in ("task-1", "task-10", "Task-1"):
        store.create_session(header(name))
    assert store.find_session_ids("task-1") == ["task-1"]
    assert store.find_session_ids("task-") == ["task-1", "task-10"]
    assert store.find_session_ids("t%") == []
    assert store.find_session_ids("nope") == []


def test_the_views_show_what_people_ask_for(keeper: Keeper, folder: Path) -> None:
    run = keeper.complete("r1", "the answer")
    database = folder / "aura.db"
    summary = keeper.store.get_session("s1")
    assert query(
        database, "SELECT session_id, title, created_at, revision, revisions, messages, frozen, last_seq FROM v_session"
    ) == [("s1", "A title", format_time(NOW_MS), summary.revision, 2, 2, 0, 7)]
    assert query(database, "SELECT run_id, session_id, request_id, state, outcome, result, revision FROM v_run") == [
        (run.id, "s1", "r1", "persisted", "completed", "the answer", summary.revision)
    ]
    assert query(database, "SELECT idx, ordinal, role, content, message_id FROM v_message ORDER BY idx") == [
        (0, 0, "user", "hello", "msg_u"),
        (1, 1, "assistant", "the answer", "msg_a"),
    ]
    events = query(database, "SELECT seq, at, run_id, type, data FROM v_event ORDER BY seq")
    lines = [row.line for row in keeper.store.read_events("s1", 0, 100)]
    assert len(events) == len(lines) == 7
    for (seq, at, run_id, kind, data), line in zip(events, lines, strict=True):
        assert line == (
            f'{{"seq":{seq},"time":"{at}","type":"{kind}","session_id":"s1","run_id":"{run_id}","data":{data}}}'.encode()
        )
    assert query(database, "SELECT n, revision, messages, reason, run_id, is_head FROM v_revision ORDER BY n") == [
        (1, keeper.store.list_revisions("s1")[1].sha256, 0, "create", None, 0),
        (2, summary.revision, 2, "run", run.id, 1),
    ]
