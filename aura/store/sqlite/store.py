"""The store on SQLite: every verb of `aura.store.protocol.Store`, each one transaction.

Reads borrow a read-only connection; writes are units of the one writer thread, which is started by the first of them.
Methods may be called from any native thread and may block up to `limits.COMMIT_WAIT_MS`; never call them on a hub.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from aura import limits
from aura.clock import format_time
from aura.conversation import Conversation, Header, Parent, Summary
from aura.errors import Exists, SessionFrozen, SessionLocked, StoreUnavailable
from aura.ids import check_session_id
from aura.jsontypes import JsonValue
from aura.runs import NewRun, Run
from aura.store import journals as j
from aura.store import protocol as p
from aura.store.sqlite import chains, commits, journal, journal_lines, runs, sessions, summaries
from aura.store.sqlite.bell import Bell
from aura.store.sqlite.database import ReaderPool, close_connection, enter_wal, is_wal, make_directory, open_writer
from aura.store.sqlite.errors import translated
from aura.store.sqlite.lease import SqliteLease
from aura.store.sqlite.locks import Ballast, WriterLock, find_session_lock, is_session_locked
from aura.store.sqlite.migrate import check_not_newer, find_version, migrate, read_migrations
from aura.wire import document

if TYPE_CHECKING:
    from concurrent.futures import Future

    from aura.store.replay import Replay
    from aura.store.sqlite.writer import Work, Writer
    from aura.wire.journal_text import JournalLine


class SqliteStore:
    """One database file. Make it with `aura.store.open.open_store`, which checks and migrates the file."""

    def __init__(self, path: Path, ballast_bytes: int = limits.BALLAST_BYTES) -> None:
        self._path = path.absolute()  # files are opened later too, when the working directory may be another
        self._readers = ReaderPool(self._path)
        self._ballast = Ballast(self._path.parent, ballast_bytes)
        self._bell = Bell()
        self._writer: Writer | None = None
        self._lock = threading.Lock()
        self._closed = False

    # --- catalogue ----------------------------------------------------------------------------------------------

    def create_session(self, header: Header, profile: str = "automation") -> Summary:
        """Make an empty session. Raises `Exists`, `InvalidId`."""
        return self._insert(Conversation(header, ()), "create", profile)

    def find_session(self, session_id: str) -> Summary | None:
        """Return a session's summary, or None."""
        with self._reader() as connection:
            return summaries.find_summary(connection, session_id)

    def get_session(self, session_id: str) -> Summary:
        """Return a session's summary. Raises `NotFound`."""
        with self._reader() as connection:
            return sessions.get_summary(connection, session_id)

    def list_sessions(
        self, where: p.SessionFilter, cursor: str | None = None, limit: int | None = None
    ) -> p.Page[Summary]:
        """Return sessions, the most recently updated first. Raises `BadRequest` for a foreign cursor."""
        with self._reader() as connection:
            return sessions.list_summaries(connection, where, cursor, limit)

    def find_session_ids(self, prefix: str) -> list[str]:
        """Return the ids that start with `prefix`; an exact match is returned alone."""
        with self._reader() as connection:
            return sessions.find_ids(connection, prefix, limits.CANDIDATES_COUNT)

    def import_session(self, conversation: Conversation, *, freeze: bool, at_ms: int) -> p.Imported:
        """Store a document under its header's id (contract.md, Idempotency).

        Raises `Exists` for a different conversation, and what `freeze` raises.
        """
        header = conversation.header
        now = format_time(at_ms)
        header = replace(
            header,
            created_at=header.created_at or now,
            updated_at=header.updated_at or now,
            frozen=header.frozen or freeze,
        )
        if self.find_session(header.id) is None:
            try:
                created = self._insert(Conversation(header, conversation.messages), "import", "automation")
                return p.Imported(created, created=True, frozen_now=created.frozen)
            except Exists:
                pass  # somebody was faster: compare with what is there now
        if not document.same_conversation(self.load_conversation(header.id).conversation, conversation):
            raise sessions.exists(header.id)
        if not freeze:
            return p.Imported(self.get_session(header.id), created=False, frozen_now=False)
        frozen = self.freeze(header.id, at_ms=at_ms)
        return p.Imported(frozen.session, created=False, frozen_now=frozen.changed)

    def fork(
        self,
        parent_id: str,
        child_id: str,
        *,
        title: str | None = None,
        expect_revision: str | None = None,
        revision: str | None = None,
        at_ms: int,
    ) -> p.Forked:
        """Make a session that begins with its parent's messages. The parent is only read.

        Raises `NotFound`, `InvalidId`, `RevisionMismatch`, `Exists` for any other session of that id, and
        `StoreUnavailable` if the parent's bytes no longer hash to its revision.
        """
        check_session_id(child_id)
        with self._reader() as connection:
            row = sessions.get_row(connection, parent_id)
            copied = chains.get_revision(connection, row, revision)
            sessions.check_revision(row, copied, expect_revision)
            parent = sessions.get_summary(connection, parent_id)
            child = summaries.find_summary(connection, child_id)
        lineage = Parent(parent_id, copied.sha256)
        if child is not None:
            return self._known_fork(child, parent, lineage)
        hasher = self._verified_hasher(copied)
        old = document.decode_tail(copied.tail, copied.system)
        header = replace(
            old,
            id=child_id,
            title=old.title if title is None else title,
            created_at=format_time(at_ms),
            updated_at=format_time(at_ms),
            frozen=False,
            parent=lineage,
        )
        sha256 = hasher.revision(header.system, document.encode_tail(header))
        try:
            summary = self._write(lambda c: sessions.insert_fork(c, row, copied, header, sha256, at_ms), child_id)
        except Exists:
            return self._known_fork(self.get_session(child_id), parent, lineage)
        return p.Forked(summary, parent, created=True)

    def freeze(self, session_id: str, *, expect_revision: str | None = None, at_ms: int) -> p.Frozen:
        """Freeze a session for ever; runs that a crash left behind are settled as lost first.

        Raises `NotFound`, `SessionLocked`, `RevisionMismatch` (interfaces.md section 9: also what a repeat expects).
        """
        if self.get_session(session_id).frozen:
            return self._known_frozen(session_id, expect_revision)
        try:
            lease = self._acquire(session_id, p.Holder(os.getpid()))
        except SessionFrozen:  # by somebody who was faster
            return self._known_frozen(session_id, expect_revision)
        try:
            with self._reader() as connection:
                row = sessions.get_row(connection, session_id)
                sessions.check_revision(row, chains.get_revision(connection, row), expect_revision)
            checkpoint = sessions.frozen_checkpoint(self.load_conversation(session_id), format_time(at_ms))
            self._write(lambda c: commits.freeze(c, lease, checkpoint, at_ms), session_id)
        finally:
            self.release(lease)
        return p.Frozen(self.get_session(session_id), changed=True)

    # --- lease --------------------------------------------------------------------------------------------------

    def acquire(self, session_id: str, holder: p.Holder) -> SqliteLease:
        """Return the right to write a session. Its epoch is claimed by its first commit.

        Raises `NotFound`, `SessionLocked`, `SessionFrozen`, and `StoreFull` when there is no room for the ballast.
        """
        with translated():
            self._ballast.ensure()
        return self._acquire(session_id, holder)

    def release(self, lease: p.Lease) -> None:
        """Let a session go, after all its writes have been waited for."""
        assert isinstance(lease, SqliteLease)
        lease.lock.close()

    def find_holder(self, session_id: str) -> p.Holder | None:
        """Return the process that holds a session now, or None."""
        if not is_session_locked(self._path.parent, session_id):
            return None
        with self._reader() as connection:
            row = sessions.get_row(connection, session_id)
        return p.Holder(row.holder_pid or 0, row.holder_url)

    # --- writes of the holder -----------------------------------------------------------------------------------

    def accept(self, lease: p.Lease, new: NewRun) -> p.Accepted:
        """Make a run, or find the one that its request id made; a repeat writes nothing.

        Raises `Busy`, `RequestConflict`, `LeaseLost`, and `StoreFull` while there is no room for terminal records.
        """
        assert isinstance(lease, SqliteLease)
        lease.check_held()
        earlier = runs.replay(self.find_request(lease.session_id, new.request_id), new)
        if earlier is not None:
            return earlier
        with translated():
            self._ballast.ensure()
        return self._write(lambda c: commits.accept(c, lease, new), lease.session_id)

    def commit(self, lease: p.Lease, batch: p.Batch) -> Future[p.Receipt]:
        """Queue a batch: the one write path of a live session. The future fails with store errors.

        Raises at once: `Overloaded` when the queue is full, `StoreUnavailable` when the store is closed, `LeaseLost`
        when the lease was released.
        """
        assert isinstance(lease, SqliteLease)
        lease.check_held()
        at_ms = batch.events[-1].at_ms if batch.events else _saved_at_ms(batch)
        return self._writer_thread().submit(
            lambda c: commits.commit(c, lease, batch, at_ms), lease.session_id, essential=batch.essential
        )

    def note_process(self, lease: p.Lease, run_id: str, call_id: str, pid: int, start_time: str) -> None:
        """Queue a note of a call's process group, for recovery after a crash. Does not wait."""
        self._writer_thread().submit(lambda c: runs.note_process(c, run_id, call_id, pid, start_time), lease.session_id)

    # --- control, by anybody ------------------------------------------------------------------------------------

    def request_cancel(self, run_id: str, *, reason: str, message: str | None, at_ms: int) -> Run:
        """Note that a run shall be cancelled; its holder acts on the row. A settled run is unchanged.

        Raises `NotFound`.
        """
        run = self.get_run(run_id)
        if run.terminal or run.cancel_requested:
            return run
        return self._write(
            lambda c: runs.cancel_run(c, run_id, reason, message, at_ms), run.session_id, control=True, essential=True
        )

    def answer(self, input_id: str, answer: JsonValue, *, answered_by: str, at_ms: int) -> p.Input:
        """Resolve a pending question or approval; the first one wins. `answer` None dismisses it.

        Raises `NotFound`, `NotPending`.
        """
        session_id = self.get_input(input_id).session_id
        return self._write(
            lambda c: runs.resolve_input(c, input_id, answer, answered_by, at_ms),
            session_id,
            control=True,
            essential=True,
        )

    # --- reads --------------------------------------------------------------------------------------------------

    def get_run(self, run_id: str) -> Run:
        """Return a run's current record. Raises `NotFound`."""
        with self._reader() as connection:
            return runs.get_run(connection, run_id)

    def find_request(self, session_id: str, request_id: str) -> Run | None:
        """Return the run that `request_id` made in the session, or None."""
        with self._reader() as connection:
            return runs.find_request(connection, session_id, request_id)

    def list_runs(self, where: p.RunFilter, cursor: str | None = None, limit: int | None = None) -> p.Page[Run]:
        """Return runs, the newest first."""
        with self._reader() as connection:
            return runs.list_runs(connection, where, cursor, limit)

    def list_inputs(self, run_id: str) -> list[p.Input]:
        """Return a run's questions and approvals, in the order they came up."""
        with self._reader() as connection:
            return runs.list_inputs(connection, run_id)

    def get_input(self, input_id: str) -> p.Input:
        """Return a question or approval. Raises `NotFound`."""
        with self._reader() as connection:
            return runs.get_input(connection, input_id)

    def list_processes(self, run_id: str) -> list[tuple[int, str]]:
        """Return (pid, start time) of the process groups of a run's unfinished calls."""
        with self._reader() as connection:
            return runs.list_processes(connection, run_id)

    def read_last_seq(self, session_id: str) -> int:
        """Return the committed seq of the session's last event. Raises `NotFound`."""
        with self._reader() as connection:
            return journal.read_last_seq(connection, session_id)

    def read_persisted_seq(self, session_id: str) -> int:
        """Return the seq of the session's latest `session.persisted`, 0 when it has none. Raises `NotFound`."""
        with self._reader() as connection:
            return sessions.get_row(connection, session_id).persisted_seq

    def read_events(self, session_id: str, after: int, limit: int) -> list[p.EventRow]:
        """Return up to `limit` events after `after`. Raises `NotFound`, `CursorOutOfRange`."""
        with self._reader() as connection:
            return journal.read_events(connection, session_id, after, limit)

    def read_messages(
        self, session_id: str, after: int, limit: int | None, revision: str | None = None
    ) -> tuple[list[tuple[int, bytes]], int]:
        """Return ((ordinal, body) of non-system messages after `after`, how many there are). Raises `NotFound`."""
        with self._reader() as connection:
            row = sessions.get_row(connection, session_id)
            found = chains.get_revision(connection, row, revision)
            start = min(max(after + 1, 0), found.length)  # a message's idx is at least its ordinal
            bodies = (
                item for page in chains.read_bodies(connection, found.chain, found.length, start) for item in page
            )
            counted = ((ordinal, body) for _, ordinal, body in bodies if ordinal is not None and ordinal > after)
            items = list(islice(counted, limit))
            return items, chains.count_non_system(connection, found.chain, found.length)

    def load_conversation(self, session_id: str, revision: str | None = None) -> p.StoredConversation:
        """Return a session's whole document. Raises `NotFound`, `BadRequest`."""
        with self._reader() as connection:
            return sessions.load(connection, session_id, revision)

    def export(self, session_id: str, revision: str | None = None) -> tuple[Summary, Iterator[bytes]]:
        """Return the summary and the canonical bytes in pieces. No connection is held between two pieces.

        Raises `NotFound`, `BadRequest`.
        """
        with self._reader() as connection:
            row = sessions.get_row(connection, session_id)
            found = chains.get_revision(connection, row, revision)
            summary = sessions.summarize(connection, row, found)
        header = document.decode_tail(found.tail, found.system)
        return summary, document.iterate_document(self._iterate_bodies(found), header)

    def list_revisions(self, session_id: str) -> list[p.Revision]:
        """Return a session's revisions, the newest first. Raises `NotFound`."""
        with self._reader() as connection:
            return sessions.list_revisions(connection, session_id)

    # --- whole journals -----------------------------------------------------------------------------------------

    def read_journal(self, session_id: str) -> j.JournalState:
        """Return where a session's journal begins and ends now. Raises `NotFound`."""
        with self._reader() as connection:
            return journal_lines.read_state(connection, session_id)

    def iterate_journal(self, state: j.JournalState, after: int = 0) -> Iterator[j.JournalPage]:
        """Yield the events of `state` after seq `after`, one per line. No connection is held between two pages.

        Raises `StoreUnavailable` when an event is not there any more.
        """
        return journal_lines.iterate_pages(self._reader, state, after)

    def read_journal_page(self, session_id: str, after: int, limit: int) -> j.JournalPage:
        """Return up to `limit` events after `after`, joined by commas. Raises `NotFound`, `CursorOutOfRange`."""
        with self._reader() as connection:
            return journal.read_page(connection, session_id, after, limit)

    def read_matching(self, session_id: str, after: int, until: int, where: j.EventFilter, limit: int) -> j.JournalPage:
        """Return the first `limit` matching events of those after `after` and up to `until`, one per line.

        The page ends at the last event that was looked at. Raises `NotFound`.
        """
        with self._reader() as connection:
            return journal_lines.read_matching(connection, session_id, after, until, where, limit)

    def find_start_of_last(self, session_id: str, until: int, where: j.EventFilter, count: int) -> int:
        """Return the seq after which the last `count` matching events up to `until` follow."""
        with self._reader() as connection:
            return journal_lines.find_start_of_last(connection, session_id, until, where, count)

    def poll_changes(self) -> j.ChangePoll:
        """Return what tells cheaply whether anybody has committed. It makes no file and starts no thread."""
        from aura.store.sqlite.change_poll import DataVersionPoll

        return DataVersionPoll(self._path)

    def verify_journal(
        self, session_id: str, expected: bytes | None = None, expected_seq: int | None = None
    ) -> j.Verified:
        """Recompute the whole chain of a session's journal; see `journal_chain.verify`. Raises `NotFound`."""
        from aura.store.sqlite.journal_chain import verify

        return verify(self._reader, session_id, expected, expected_seq)

    def read_journal_stats(self, session_id: str) -> j.JournalStats:
        """Return a session's journal in numbers. Raises `NotFound`."""
        from aura.store.sqlite.journal_stats import read_stats

        with self._reader() as connection:
            return read_stats(connection, session_id)

    def import_journal(self, replay: Replay, lines: Iterator[JournalLine]) -> j.ImportedJournal:
        """Store a journal in the session of `replay`, which has been through all `lines`; the session has none.

        An import that was broken off goes on where it ended. Raises `NotFound`, `SessionLocked`, `SessionFrozen`,
        `Exists`, and `LeaseLost` when somebody writes to the session meanwhile.
        """
        from aura.store.sqlite import journal_import

        lease = self.acquire(replay.session_id, p.Holder(os.getpid()))
        try:
            with self._reader() as connection:
                last_seq = journal_import.find_progress(connection, lease.session_id, replay)
            rest = islice(lines, last_seq, replay.last_seq)
            while part := list(islice(rest, limits.JOURNAL_IMPORT_COMMIT_COUNT)):
                last_seq = self._write(partial(journal_import.write, lease, replay, part), lease.session_id)
        finally:
            self.release(lease)
        return j.ImportedJournal(replay.session_id, last_seq)

    def watch(self, listener: p.Listener, *, poll_ms: int | None = None, control: bool = False) -> p.Subscription:
        """Call `listener` after commits, on any thread; it must not block. See `Bell.add`.

        With `poll_ms` commits of other processes are noticed too, within that time.
        """
        if poll_ms is not None:
            self._writer_thread()
        return self._bell.add(listener, poll_ms=poll_ms, control=control)

    def prepare(self) -> None:
        """Make or migrate the database now instead of at the first write. Raises `StoreUnavailable`."""
        self._writer_thread()

    @property
    def commit_count(self) -> int:
        """How many transactions this store has committed. For measurements."""
        return self._writer.commit_count if self._writer else 0

    def close(self) -> None:
        """Commit what is queued and close all files. Repeating it does nothing."""
        with self._lock:
            self._closed, writer = True, self._writer
            self._writer = None
        self._readers.close()  # first, so that the writer's connection is the last one and takes the WAL away
        if writer is not None:
            writer.close()

    # --- inside -------------------------------------------------------------------------------------------------

    def _reader(self) -> AbstractContextManager[apsw.Connection]:
        return self._readers.connection()

    def _iterate_bodies(self, found: chains.RevisionRow) -> Iterator[bytes]:
        start = 0
        while start < found.length:
            with self._reader() as connection:
                page = next(chains.read_bodies(connection, found.chain, found.length, start=start))
            yield from (body for _, _, body in page)
            start = page[-1][0] + 1

    def _insert(self, conversation: Conversation, reason: str, profile: str) -> Summary:
        header = conversation.header
        check_session_id(header.id)
        hasher = document.Hasher()
        hasher.add(conversation.messages)
        revision = hasher.revision(header.system, document.encode_tail(header))
        at_ms = document.updated_at_ms(header)
        stored = [p.NewMessage(body, document.decode_message(body).role) for body in conversation.messages]
        return self._write(
            lambda c: sessions.insert(
                c, header, stored, revision=revision, reason=reason, profile=profile, at_ms=at_ms
            ),
            header.id,
        )

    def _known_frozen(self, session_id: str, expect_revision: str | None) -> p.Frozen:
        with self._reader() as connection:
            sessions.check_frozen_revision(connection, session_id, expect_revision)
            return p.Frozen(sessions.get_summary(connection, session_id), changed=False)

    def _known_fork(self, child: Summary, parent: Summary, lineage: Parent) -> p.Forked:
        if child.parent != lineage:
            raise sessions.exists(child.id)
        return p.Forked(child, parent, created=False)

    def _verified_hasher(self, copied: chains.RevisionRow) -> document.Hasher:
        hasher = document.Hasher()
        hasher.add(self._iterate_bodies(copied))
        if hasher.revision(copied.system, copied.tail) != copied.sha256:
            raise StoreUnavailable(
                f"the stored messages no longer hash to revision {copied.sha256}",
                hint="The database was changed from outside; restore it from a backup.",
            )
        return hasher

    def _acquire(self, session_id: str, holder: p.Holder) -> SqliteLease:
        check_session_id(session_id)
        with self._reader() as connection:
            sessions.get_row(connection, session_id)
        with translated():
            lock = find_session_lock(self._path.parent, session_id)
        if lock is None:
            raise SessionLocked(f"session {session_id} is held by another process", hint="Stop that process first.")
        try:
            with self._reader() as connection:
                row = sessions.get_row(connection, session_id)
            sessions.check_not_frozen(row)
        except BaseException:
            lock.close()
            raise
        return SqliteLease(session_id, row.epoch + 1, uuid.uuid4().hex, holder, lock)

    def _write(self, work: Work[p.T], session_id: str, *, control: bool = False, essential: bool = False) -> p.T:
        from aura.store.waiting import wait  # only what writes pays for threads and futures

        future = self._writer_thread().submit(work, session_id, control=control, essential=essential)
        return wait(future)

    def _writer_thread(self) -> Writer:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            if self._writer is None:
                self._writer = self._start_writer()
            return self._writer

    def _start_writer(self) -> Writer:
        from aura.store.sqlite.writer import Writer

        steps = read_migrations()
        with translated(), ExitStack() as on_failure:
            make_directory(self._path.parent)
            connection = open_writer(self._path)
            on_failure.callback(close_connection, connection)
            lock = WriterLock(self._path.parent)
            on_failure.callback(lock.close)
            version = find_version(connection)
            check_not_newer(version, len(steps))
            if version < len(steps) or not is_wal(connection):
                with lock.held(limits.COMMIT_WAIT_MS):
                    enter_wal(connection)
                    migrate(connection, steps)
            writer = Writer(connection, lock, self._ballast, self._bell)
            on_failure.pop_all()
            return writer


def _saved_at_ms(batch: p.Batch) -> int:
    return document.updated_at_ms(batch.checkpoint.header) if batch.checkpoint else 0
