"""Imports of many into a real store: `aura.runtime.importer`. What processes see is in tests/contract/session."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from aura.errors import Exists, InvalidId
from aura.runtime.importer import Importer, Input
from aura.runtime.library import Library
from tests.support import foreign


def write(path, *contents, id="one", **more):
    messages = [{"Role": "user", "Content": content} for content in contents]
    times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
    path.write_text(json.dumps({"id": id, "messages": messages, **times, **more}))
    return path


@pytest.fixture
def load(tmp_path):
    """Imports a file into the test's store and gives the one outcome."""

    def import_one(path, **settings):
        with closing(Importer(tmp_path / "sessions", **settings)) as importer:
            (outcome,) = importer.import_input(Input(str(path)))
        return outcome

    return import_one


def test_another_conversation_of_the_same_id_fails_unless_something_else_is_said(load, tmp_path):
    load(write(tmp_path / "a.json", "hi"))
    other = write(tmp_path / "b.json", "hello")
    assert isinstance(load(other).error, Exists)


def test_skip_keeps_what_is_stored_and_freezes_nothing(load, tmp_path):
    first = load(write(tmp_path / "a.json", "hi")).done
    done = load(write(tmp_path / "b.json", "hello"), on_conflict="skip", freeze=True).done
    assert (done.session, done.created, done.frozen_now, done.conflict) == (first.session, False, False, "skipped")


def test_fork_stores_it_beside_under_an_id_that_its_content_decides(load, tmp_path):
    load(write(tmp_path / "a.json", "hi"))
    other = write(tmp_path / "b.json", "hello")
    once, again = load(other, on_conflict="fork").done, load(other, on_conflict="fork").done
    assert (once.created, once.conflict, again.created, again.session) == (True, "forked", False, once.session)
    assert once.session.id.startswith("one-") and len(once.session.id) == len("one-") + 12
    assert once.session.parent is None, "it does not begin with the stored conversation"


def test_a_fork_that_goes_on_from_what_is_stored_is_its_child(load, tmp_path):
    first = load(write(tmp_path / "a.json", "hi")).done.session
    child = load(write(tmp_path / "b.json", "hi", "more"), on_conflict="fork").done.session
    assert (child.parent.id, child.parent.revision) == ("one", first.revision)


def test_an_id_of_full_length_can_be_forked(load, tmp_path):
    long = "x" * 128
    load(write(tmp_path / "a.json", "hi", id=long))
    done = load(write(tmp_path / "b.json", "hello", id=long), on_conflict="fork").done
    assert len(done.session.id) == 128


def test_foreign_files_give_the_same_revision_in_every_store_at_any_time(tmp_path):
    revisions = []
    for home in ("a", "b"):
        with closing(Importer(tmp_path / home)) as importer:
            files = [foreign.OPENAI, foreign.OPENAI_LIST, foreign.CLAUDE_CODE, foreign.CODEX]
            outcomes = [outcome for file in files for outcome in importer.import_input(Input(str(file)))]
            revisions.append([outcome.done.session.revision for outcome in outcomes])
    assert revisions[0] == revisions[1] and len(set(revisions[0])) == 5


def test_a_session_grown_at_its_source_is_a_conflict(load, tmp_path):
    path = tmp_path / "s.jsonl"
    lines = foreign.CODEX_OLD.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    first = load(path).done.session
    path.write_bytes(b"".join(lines))
    assert isinstance(load(path).error, Exists)
    grown = load(path, on_conflict="fork").done.session
    assert (grown.parent.id, grown.parent.revision) == (first.id, first.revision)


def test_an_id_given_is_one_sessions(load, tmp_path):
    path = tmp_path / "many.ndjson"
    document = json.dumps({"id": "a", "messages": []})
    path.write_text(f"{document}\n{document}\n")
    with closing(Importer(tmp_path / "sessions", session_id="b")) as importer:
        outcomes = list(importer.import_input(Input(str(path))))
    assert [outcome.error.code for outcome in outcomes] == ["bad_request", "bad_request"]
    with pytest.raises(InvalidId):
        Importer(tmp_path / "sessions", session_id="no/pe")


def test_nothing_is_made_where_nothing_is_stored(load, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    assert load(tmp_path / "bad.json").error.code == "invalid_session"
    assert not (tmp_path / "sessions").exists()
    assert Library(tmp_path / "sessions").list_sessions() == ()
