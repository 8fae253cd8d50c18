"""Two files of one session for tools that expect files: `<id>.json` and `journal/<id>.jsonl` beside the database.

They are copies. Nothing here or elsewhere reads them back: what was written is known from this object alone, and a file
that is not as it was left is written anew. The document is replaced atomically. The journal is appended to, so that a
long one costs only what is new; a reader may find its last line torn for a moment, as the contract has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aura.runtime.files import replace_file
from aura.runtime.journal import iterate_lines
from aura.store.journals import JournalState
from aura.store.protocol import Store

JOURNAL_FOLDER = "journal"
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class _Left:
    """A file as it was left: which one it is, and what it would show if somebody had changed it."""

    device: int
    inode: int
    size_bytes: int
    changed_ns: int


class MirrorFiles:
    """The mirror of one session in the directory of its store. One thread at a time; `update` blocks."""

    def __init__(self, store: Store, directory: Path, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._document = directory / f"{session_id}.json"
        self._journal = directory / JOURNAL_FOLDER / f"{session_id}.jsonl"
        self.writing = ""  # the file at work, relative to the store, for messages
        self._revision = ""
        self._document_left: _Left | None = None
        self._state: JournalState | None = None
        self._journal_left: _Left | None = None

    def update(self) -> None:
        """Bring both files to what is committed. Raises `OSError` and store errors; `writing` says of which file.

        After a failure the next call begins where it must.
        """
        self.writing = self._document.name
        self._update_document()
        self.writing = f"{JOURNAL_FOLDER}/{self._journal.name}"
        self._update_journal()

    def _update_document(self) -> None:
        revision = self._store.get_session(self._session_id).revision
        if revision == self._revision and self._document_left == _look(self._document):
            return
        self._document_left = None
        replace_file(self._document, self._store.export(self._session_id, revision)[1], _MODE)
        self._revision, self._document_left = revision, _look(self._document)

    def _update_journal(self) -> None:
        state = self._store.read_journal(self._session_id)
        known, left = self._state, self._journal_left
        as_left = left is not None and left == _look(self._journal)
        self._journal_left = None
        if known is not None and left is not None and as_left and known.first_seq == state.first_seq:
            if state.last_seq > known.last_seq:
                self._append(iterate_lines(self._store, state, known.last_seq), left.size_bytes)
        else:
            with suppress(FileExistsError):  # also if it is a file: then the next step says so better
                self._journal.parent.mkdir(mode=0o700)
            replace_file(self._journal, iterate_lines(self._store, state), _MODE)
        self._state, self._journal_left = state, _look(self._journal)

    def _append(self, pieces: Iterator[bytes], size_bytes: int) -> None:
        fd = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            for piece in pieces:
                _write_all(fd, piece)
            os.fsync(fd)
        except BaseException:
            os.ftruncate(fd, size_bytes)
            raise
        finally:
            os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _look(path: Path) -> _Left | None:
    try:
        found = path.lstat()
    except OSError:
        return None  # writing it says what is wrong, if anything is
    return _Left(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
