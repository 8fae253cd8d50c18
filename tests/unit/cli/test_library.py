"""The offline verbs over a real store: `aura.runtime.library`. What processes and streams see is in tests/contract."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass

import pytest

from aura.errors import BadRequest, Exists, InvalidId, NotFound, RevisionMismatch
from aura.runtime.importer import Importer, Input
from aura.runtime.library import Library

AT_MS = 1_795_000_000_000


@dataclass
class FixedClock:
    now: int = AT_MS

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path / "sessions", FixedClock())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.json"
    messages = [{"Role": "user", "Content": f"message {n}"} for n in range(600)]
    path.write_text(json.dumps({"id": "one", "title": "One", "messages": messages}))
    return str(path)


def stored(file, tmp_path):
    """Import the file and return its session's summary."""
    with closing(Importer(tmp_path / "sessions", clock=FixedClock())) as importer:
        (outcome,) = importer.import_input(Input(file))
    return outcome.done.session


def test_times_that_a_document_lacks_are_the_imports(file, tmp_path):
    session = stored(file, tmp_path)
    assert (session.created_at_ms, session.updated_at_ms) == (AT_MS, AT_MS)


def test_an_older_revision_is_summarised_as_it_was(library, file, tmp_path):
    before = stored(file, tmp_path)
    library.freeze("one")
    assert library.get_session("one", before.revision[:16]) == before
    assert library.get_details("one").revisions == 2


def test_a_stream_gets_the_same_bytes_as_a_file(library, file, tmp_path):
    stored(file, tmp_path)
    pieces: list[bytes] = []
    streamed = library.export_stream("one", pieces.append)
    written = library.export_file("one", str(tmp_path / "out.json"))
    assert b"".join(pieces) == (tmp_path / "out.json").read_bytes()
    assert (streamed.sha256, streamed.path, written.path) == (written.sha256, "-", str(tmp_path / "out.json"))


def test_a_file_that_appears_while_writing_is_not_replaced(library, file, tmp_path, monkeypatch):
    stored(file, tmp_path)
    target = tmp_path / "out.json"

    def race(path, pieces, mode=0o666):
        path.write_bytes(b"somebody else's")
        raise FileExistsError(path)

    monkeypatch.setattr("aura.runtime.files.create_file", race)
    with pytest.raises(Exists):
        library.export_file("one", str(target))
    assert target.read_bytes() == b"somebody else's"


def test_ids_are_checked_before_anything_is_read(library, tmp_path):
    with pytest.raises(InvalidId):
        Importer(tmp_path / "sessions", session_id="no/pe")
    with pytest.raises(InvalidId):
        library.fork("one", "no/pe")
    with pytest.raises(InvalidId):
        library.get_session("no/pe")


def test_nothing_is_made_for_a_session_that_is_not_there(library, tmp_path):
    for verb in (library.get_session, library.get_details, library.freeze):
        with pytest.raises(NotFound):
            verb("nope")
    with pytest.raises(NotFound):
        library.fork("nope", "child")
    assert library.list_sessions() == ()
    assert list(tmp_path.iterdir()) == []


def test_what_a_fork_expects_is_compared_with_the_revision_it_copies(library, file, tmp_path):
    before = stored(file, tmp_path)
    after = library.freeze("one").session
    done = library.fork("one", "old", revision=before.revision, expect_revision=before.revision)
    assert done.session.parent.revision == before.revision
    with pytest.raises(RevisionMismatch):
        library.fork("one", "other", expect_revision=before.revision)
    assert library.fork("one", "new", expect_revision=after.revision).created is True


@pytest.mark.parametrize("text", ["", "G", "a" * 65])
def test_a_prefix_must_be_hex(library, file, tmp_path, text):
    stored(file, tmp_path)
    with pytest.raises(BadRequest):
        library.get_session("one", text)
