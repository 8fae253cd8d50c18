"""Reads the contract's JSONL into a session that has no journal: `aura journal import` (interfaces.md 7).

The file is read twice: first all of it is checked, so that a bad line leaves nothing behind; then it is stored. What is
no regular file is spooled to a temporary one for that. Times, ids and data are kept; what the contract's lines do not
carry, such as tokens used, stays empty.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aura import ids, limits
from aura.errors import BadRequest, InvalidSession
from aura.runtime import files
from aura.runtime.stores import existing_store
from aura.store.replay import Replay
from aura.wire.canonical import NotCanonical
from aura.wire.journal_text import JournalLine, parse_line


@dataclass(frozen=True, slots=True)
class JournalImport:
    """What an import did. `truncated`: a torn last line was left out, and `warnings` says so."""

    session_id: str
    events: int
    last_seq: int
    truncated: bool
    warnings: tuple[str, ...]


def import_journal(directory: Path, name: str, session_id: str | None = None) -> JournalImport:
    """Store the journal in the file `name` (`-`: standard input) in an existing session, its own or `session_id`.

    An import that was broken off goes on where it ended. Raises `BadRequest` for an unreadable file, `InvalidSession`
    naming the line that is bad, `NotFound`, `Exists` for a session with a journal, `SessionLocked`, `SessionFrozen`,
    and store errors.
    """
    if session_id is not None:
        ids.check_session_id(session_id)
    with _opened(name) as file:
        replay, torn = _check(file, session_id)
        with existing_store(directory, replay.session_id) as store:
            done = store.import_journal(replay, _read_again(file))
    warnings = (f"line {torn} is torn and was left out",) if torn else ()
    return JournalImport(done.session_id, done.last_seq, done.last_seq, bool(torn), warnings)


def _check(file: BinaryIO, session_id: str | None) -> tuple[Replay, int | None]:
    """Go through all lines; return what they amount to, and the number of a torn last line, None if it is whole."""
    replay = Replay(session_id) if session_id is not None else None
    for number, raw in enumerate(_raw_lines(file), start=1):
        try:
            line = parse_line(raw)
            if replay is None:
                replay = Replay(line.session_id)
            replay.take(line)
        except NotCanonical as error:
            if raw.endswith(b"\n"):
                raise _bad_line(number, error) from error
            return _begun(replay), number
        except ValueError as error:
            raise _bad_line(number, error) from error
    return _begun(replay), None


def _begun(replay: Replay | None) -> Replay:
    if replay is None:
        raise InvalidSession("the file has no event", hint="Name the session with --id to import nothing into it.")
    return replay


def _read_again(file: BinaryIO) -> Iterator[JournalLine]:
    file.seek(0)
    for raw in _raw_lines(file):
        try:
            yield parse_line(raw)
        except ValueError as error:
            raise InvalidSession("the file changed while it was read", hint="Import it again.") from error


def _raw_lines(file: BinaryIO) -> Iterator[bytes]:
    while raw := file.readline(limits.JOURNAL_LINE_MAX_BYTES + 1):
        if len(raw) > limits.JOURNAL_LINE_MAX_BYTES:
            raise InvalidSession(f"a line has more than {limits.JOURNAL_LINE_MAX_BYTES} bytes")
        yield raw


def _bad_line(number: int, error: ValueError) -> InvalidSession:
    return InvalidSession(
        f"line {number}: {error}", hint="Only a torn last line may be left out; nothing was imported."
    )


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """Open a file that can be read twice. Raises `BadRequest`."""
    if name == files.STANDARD_STREAM:
        if sys.stdin is None:
            raise BadRequest("standard input is closed", hint="Name a file.")
        with _spooled(sys.stdin.buffer, "standard input") as file:
            yield file
        return
    with _open(name) as source:
        if stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            yield source
            return
        with _spooled(source, name) as file:
            yield file


def _open(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise files.unreadable(name, error) from error


@contextmanager
def _spooled(source: BinaryIO, name: str) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile(prefix="aura-import-") as file:
        try:
            shutil.copyfileobj(source, file, limits.FILE_PIECE_BYTES)
            file.seek(0)
        except OSError as error:
            raise files.unreadable(name, error) from error
        yield file
