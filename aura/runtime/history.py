"""A store's past, behind `aura session log`, `diff`, `messages`, `aura runs` and `aura stats`.

It reads while servers write, makes no file, and prints nothing. It imports neither engine nor server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aura import ids
from aura.conversation import Header, Message, Role, Summary
from aura.errors import NotFound
from aura.runs import Outcome, Run, State
from aura.runtime.diff import FieldChange, MessageChange, Placed, compare_headers, compare_messages, describe
from aura.runtime.listing import reachable
from aura.store.history import (
    Ended,
    Failure,
    MessageFilter,
    ModelUse,
    RunEntry,
    RunNote,
    RunQuery,
    Save,
    Size,
    Stats,
    ToolUse,
    Waiting,
)
from aura.store.history import History as Reads
from aura.store.sqlite.asking import find_history
from aura.wire import document

_NOTHING = Header("", "", "", "")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One revision and what it changed: messages taken away and added, and the same with all else in few words."""

    save: Save
    dropped: int
    added: int
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """What leads from one revision to another. `old` is None where there is none before: all of `new` is added."""

    session: Summary
    old: Save | None
    new: Save
    kept: int
    messages: tuple[MessageChange, ...]
    fields: tuple[FieldChange, ...]


class History:
    """The past of one store. One thread at a time; each verb blocks and may raise `StoreUnavailable`.

    A session id that cannot be one is `InvalidId`, an unknown one `NotFound`; a revision is the beginning of its
    SHA-256, `BadRequest` if it is not hex or fits several, `NotFound` if there is no such one.
    """

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def log(self, session_id: str, limit: int | None = None) -> list[LogEntry]:
        """Return a session's revisions, the newest first, at most `limit` of them."""
        ids.check_session_id(session_id)
        saves = self._reads.list_saves(session_id, None if limit is None else limit + 1)
        entries = []
        for save, before in zip(saves, [*saves[1:], None], strict=True):
            dropped, added = (save.before - save.shared, save.stored - save.shared) if before else (0, save.stored)
            entries.append(LogEntry(save, dropped, added, describe(save, before)))
        return entries[:limit]

    def diff(self, session_id: str, old: str | None = None, new: str | None = None) -> Diff:
        """Return what leads from the revision `old` to `new`; the head and the one before it by default."""
        ids.check_session_id(session_id)
        summary = self._reads.get_summary(session_id)
        after = self._reads.get_save(session_id, ids.check_revision_prefix(new))
        if old is None:
            before = self._reads.find_save_before(session_id, after.n)
        else:
            before = self._reads.get_save(session_id, ids.check_revision_prefix(old))
        kept = self._reads.count_shared(session_id, before.n, after.n) if before else 0
        messages = compare_messages(
            list(self._reads.read_messages(session_id, before.n, kept)) if before else [],
            list(self._reads.read_messages(session_id, after.n, kept)),
        )
        fields = compare_headers(before.header if before else _NOTHING, after.header)
        return Diff(summary, before, after, kept, tuple(messages), tuple(fields))

    def messages(
        self,
        session_id: str,
        *,
        roles: frozenset[Role],
        after: int | None = None,
        tail: int | None = None,
        revision: str | None = None,
    ) -> tuple[Summary, Iterator[Placed]]:
        """Return the session as it is, and the messages of a revision (the head by default), read as they are taken.

        With the role `system` the system prompt comes first, unless `after` or `tail` is given.
        """
        ids.check_session_id(session_id)
        summary = self._reads.get_summary(session_id)
        save = self._reads.get_save(session_id, ids.check_revision_prefix(revision))
        found = self._reads.select_messages(session_id, save.n, MessageFilter(roles, after, tail))
        placed = (Placed(item.ordinal, document.decode_message(item.body)) for item in found)
        if "system" in roles and save.header.system and after is None and tail is None:
            return summary, _begin_with(Placed(None, Message("system", save.header.system)), placed)
        return summary, placed

    def runs(self, where: RunQuery, limit: int | None = None) -> list[RunEntry]:
        """Return runs, the newest first, at most `limit` of them."""
        if where.session_id is not None:
            ids.check_session_id(where.session_id)
        return self._reads.list_runs(where, limit)

    def stats(self, since_ms: int) -> Stats:
        """Return what a person asks every morning, of the time since `since_ms` (Unix ms)."""
        return self._reads.get_stats(since_ms)


@contextmanager
def opened(directory: Path) -> Iterator[History]:
    """Open the store in `directory` (`<write home>/sessions`).

    Raises `NotFound` when there is none, and `StoreUnavailable`.
    """
    with reachable(directory):
        reads = find_history(directory)
    if reads is None:
        raise NotFound("there is no store yet", hint="The first run or `aura session import` makes it.")
    try:
        yield History(reads)
    finally:
        reads.close()


def _begin_with(first: Placed, rest: Iterator[Placed]) -> Iterator[Placed]:
    yield first
    yield from rest


__all__ = [
    "Diff",
    "Ended",
    "Failure",
    "FieldChange",
    "History",
    "LogEntry",
    "MessageChange",
    "ModelUse",
    "Outcome",
    "Placed",
    "Run",
    "RunEntry",
    "RunNote",
    "RunQuery",
    "Save",
    "Size",
    "State",
    "Stats",
    "Summary",
    "ToolUse",
    "Waiting",
    "opened",
]
