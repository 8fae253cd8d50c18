"""Whole journals of stored sessions: the verbs behind `aura journal` (contract.md, Journal and events).

Stored bytes are spliced and never decoded. A verb that only reads makes no file in the store. No server is needed, and
one that is at work is not disturbed: what it appends meanwhile is simply not part of the answer.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aura.errors import BadRequest, CursorOutOfRange, Detail, Exists
from aura.runtime import files
from aura.runtime.ahead import read_ahead
from aura.runtime.stores import existing_store
from aura.store.journals import JournalState, JournalStats, Link, Problem, RunStats, TypeStats, Verified
from aura.store.protocol import Store

_Found = Literal["nothing", "same", "beginning"]


@dataclass(frozen=True, slots=True)
class ExportedJournal:
    """What an export did. `path` is absolute, or `-`; `last_seq` is the seq of the journal's last event at that time.

    `sha256` is the hash of the written bytes. `written` is False when the same file was there already.
    """

    session_id: str
    path: str
    events: int
    last_seq: int
    sha256: str
    written: bool


class Journals:
    """The journals of one store directory. One thread at a time; each verb blocks.

    Every verb may raise `StoreUnavailable`, `NotFound`, and `InvalidId` for an id that cannot name a session.
    """

    def __init__(self, directory: Path) -> None:
        """Look at `directory` (`<write home>/sessions`)."""
        self._directory = directory

    def export_file(self, session_id: str, output: str, after: int | None = None) -> ExportedJournal:
        """Write the events after seq `after`, all there are by default, to the file `output`, one per line, atomically.

        An identical file is left alone. One that holds the beginning of the same bytes, because the journal has grown
        since it was exported, is replaced. Raises `Exists` for any other file, `BadRequest` for a place that cannot be
        written, `CursorOutOfRange`, and `StoreUnavailable` when events are missing.
        """
        if not output or output.endswith("/"):
            raise BadRequest(f"{output!r} is not a file name", hint="Name a file, or - for standard output.")
        path = Path(output).absolute()
        with existing_store(self._directory, session_id) as store:
            state = store.read_journal(session_id)
            start = check_after(state, after)
            found = _compare(path, iterate_lines(store, state, start))
            sha = hashlib.sha256()
            with read_ahead(iterate_lines(store, state, start)) as ahead:
                lines = _hashed(ahead, sha.update)
                if found == "same":
                    deque(lines, maxlen=0)
                else:
                    _write(path, lines, replace=found == "beginning")
        return _exported(state, str(path), start, sha.hexdigest(), written=found != "same")

    def export_stream(
        self, session_id: str, write: Callable[[bytes], object], after: int | None = None
    ) -> ExportedJournal:
        """Give the events after seq `after` to `write`, in pieces of whole lines. Raises what `write` raises, too."""
        with existing_store(self._directory, session_id) as store:
            state = store.read_journal(session_id)
            start = check_after(state, after)
            sha = hashlib.sha256()
            with read_ahead(iterate_lines(store, state, start)) as ahead:
                for piece in _hashed(ahead, sha.update):
                    write(piece)
        return _exported(state, files.STANDARD_STREAM, start, sha.hexdigest(), written=True)

    def verify(self, session_id: str, expected: bytes | None = None, expected_seq: int | None = None) -> Verified:
        """Recompute the whole hash chain of a journal. What is wrong is in the answer, it is not raised.

        `expected` is a hash that was noted earlier: of event `expected_seq`, or of any one.
        """
        with existing_store(self._directory, session_id) as store:
            return store.verify_journal(session_id, expected, expected_seq)

    def read_stats(self, session_id: str) -> JournalStats:
        """Return a journal in numbers."""
        with existing_store(self._directory, session_id) as store:
            return store.read_journal_stats(session_id)


def iterate_lines(store: Store, state: JournalState, after: int = 0) -> Iterator[bytes]:
    """Yield the exported bytes of the events after seq `after`: pieces of whole lines, each with its line end."""
    for page in store.iterate_journal(state, after):
        yield page.lines


def check_after(state: JournalState, after: int | None) -> int:
    """Return where to begin: `after`, or before the first event for None. Raises `CursorOutOfRange`.

    Where events after `after` were pruned, nobody shall take what is left for all there was.
    """
    start = state.first_seq - 1
    if after is None:
        return start
    if start <= after <= state.last_seq:
        return after
    details: dict[str, Detail] = {"last_seq": state.last_seq}
    if start > 0:
        details["first_seq"] = state.first_seq
    raise CursorOutOfRange(
        f"after={after} is outside {start}..{state.last_seq}",
        hint="Give the seq of an event that this session has.",
        details=details,
    )


def _hashed(pieces: Iterable[bytes], update: Callable[[bytes], object]) -> Iterator[bytes]:
    for piece in pieces:
        update(piece)
        yield piece


def _exported(state: JournalState, path: str, after: int, sha256: str, *, written: bool) -> ExportedJournal:
    return ExportedJournal(state.session_id, path, state.last_seq - after, state.last_seq, sha256, written)


def _compare(path: Path, pieces: Iterable[bytes]) -> _Found:
    """Tell what `path` has of these bytes. Raises `Exists` for anything else, `BadRequest` for what is no file."""
    if files.find_sha256(path) is None:
        return "nothing"
    try:
        with path.open("rb") as file:
            for piece in pieces:
                there = file.read(len(piece))
                if not piece.startswith(there):
                    raise _differs(path)
                if len(there) < len(piece):
                    return "beginning"
            if file.read(1):
                raise _differs(path)
    except OSError as error:
        raise files.unwritable(path, error) from error
    return "same"


def _write(path: Path, lines: Iterator[bytes], *, replace: bool) -> None:
    try:
        if replace:
            files.replace_file(path, lines, 0o666)
        else:
            files.create_file(path, lines)
    except FileExistsError:
        raise _differs(path) from None
    except OSError as error:
        raise files.unwritable(path, error) from error


def _differs(path: Path) -> Exists:
    return Exists(
        f"{path} exists and is not an export of this journal", hint="Name another file, or move that one away."
    )


__all__ = [
    "ExportedJournal",
    "JournalStats",
    "Journals",
    "Link",
    "Problem",
    "RunStats",
    "TypeStats",
    "Verified",
    "check_after",
    "iterate_lines",
]
