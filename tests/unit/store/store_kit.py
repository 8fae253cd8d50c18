"""What the store's tests share: small values, and a keeper that plays the holder of a session. It asserts nothing."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import apsw

from aura import events as e
from aura.clock import format_time
from aura.conversation import Conversation, Header, Message
from aura.events import Event, Stamped
from aura.ids import new_run_id
from aura.runs import NewRun, OnInput, Run, RunResult
from aura.store import protocol as p
from aura.store.sqlite.store import SqliteStore
from aura.wire import document
from aura.wire.automation import request_digest

NOW_MS = 1_767_225_600_000
ME = p.Holder(4242, "http://127.0.0.1:1")


def header(session_id: str, title: str = "A title", **others: object) -> Header:
    """Return the header of a new session."""
    at = format_time(NOW_MS)
    return replace(Header(session_id, title, at, at, system="Be careful."), **others)  # type: ignore[arg-type]


def new_run(request_id: str = "r1", text: str = "hello", on_input: OnInput = "block", at_ms: int = NOW_MS) -> NewRun:
    """Return a submitted prompt."""
    digest = request_digest("prompt", on_input, text)
    return NewRun(new_run_id(at_ms), request_id, "prompt", text, on_input, digest, at_ms)


def stamp(events: Sequence[Event], run_id: str | None, at_ms: int = NOW_MS) -> tuple[Stamped, ...]:
    """Return events that all happen at `at_ms`."""
    return tuple(Stamped(at_ms, event, run_id) for event in events)


def messages_of(*contents: str) -> list[Message]:
    """Return user messages with these contents."""
    return [Message("user", text, id=f"msg_{index}") for index, text in enumerate(contents)]


class Keeper:
    """Holds a session as a server does: it keeps the hash state and hashes each save itself."""

    def __init__(self, store: SqliteStore, session_id: str) -> None:
        self.store = store
        self.lease = store.acquire(session_id, ME)
        try:
            stored = store.load_conversation(session_id)
        except Exception:
            store.release(self.lease)
            raise
        self.header = stored.conversation.header
        self.bodies = list(stored.conversation.messages)
        self.hasher = document.Hasher()
        self.hasher.add(self.bodies)
        self.counter = 0

    @property
    def session_id(self) -> str:
        return self.lease.session_id

    def checkpoint(
        self, added: Sequence[Message] = (), reason: p.RevisionReason = "checkpoint", keep: int | None = None
    ) -> p.Checkpoint:
        """Return a save that appends `added`, to the first `keep` messages if given."""
        self.counter += 1
        self.header = replace(self.header, updated_at=format_time(NOW_MS + self.counter))
        if keep is not None:
            self.bodies = self.bodies[:keep]
            self.hasher = document.Hasher()
            self.hasher.add(self.bodies)
        new = tuple(p.NewMessage(document.encode_message(message), message.role) for message in added)
        self.bodies += [item.body for item in new]
        self.hasher.add(item.body for item in new)
        tail = document.encode_tail(self.header)
        revision = self.hasher.revision(self.header.system, tail)
        counted = sum(document.decode_message(body).role != "system" for body in self.bodies)
        return p.Checkpoint(new, self.header, tail, revision, counted, reason, keep)

    def commit(
        self,
        events: Sequence[Event] = (),
        run_id: str | None = None,
        checkpoint: p.Checkpoint | None = None,
        batch_id: str | None = None,
        at_ms: int = NOW_MS,
    ) -> p.Receipt:
        """Commit one batch and wait for it."""
        self.counter += 1
        batch = p.Batch(batch_id or uuid.uuid4().hex, stamp(events, run_id, at_ms), checkpoint)
        return self.store.commit(self.lease, batch).result(30)

    def save(self, added: Sequence[Message] = (), keep: int | None = None, run_id: str | None = None) -> str:
        """Commit a checkpoint with its event; return the revision."""
        saved = self.checkpoint(added, keep=keep)
        self.commit([persisted(saved)], run_id, saved)
        return saved.revision

    def accept(self, request_id: str = "r1", text: str = "hello", on_input: OnInput = "block") -> Run:
        """Accept a run."""
        return self.store.accept(self.lease, new_run(request_id, text, on_input)).run

    def start(self, run: Run) -> None:
        """Bring the input of a run into the conversation."""
        first = e.MessageUser(message_id="msg_u", content="hello")
        self.commit([first, e.RunStarted(run_id=run.id, message_id="msg_u")], run.id)

    def finish(self, run: Run, text: str = "done") -> Run:
        """Save the answer of a started run and settle it."""
        added = [Message("user", "hello", id="msg_u"), Message("assistant", text, id="msg_a")]
        saved = self.checkpoint(added, reason="run")
        events = [
            e.MessageAssistant(message_id="msg_a", content=text),
            e.RunFinished(outcome="completed", result=RunResult(text)),
            persisted(saved, "run"),
            e.RunPersisted(),
        ]
        settled = self.commit(events, run.id, saved).run
        assert settled is not None
        return settled

    def complete(self, request_id: str = "r1", text: str = "done") -> Run:
        """Do a whole run without tools."""
        run = self.accept(request_id)
        self.start(run)
        return self.finish(run, text)

    def release(self) -> None:
        """Let the session go."""
        self.store.release(self.lease)


def persisted(saved: p.Checkpoint, reason: e.Reason = "checkpoint") -> e.SessionPersisted:
    """Return the event that reports a save."""
    return e.SessionPersisted(revision=saved.revision, messages=saved.messages, reason=reason, changed=True)


def exported(store: SqliteStore, session_id: str, revision: str | None = None) -> bytes:
    """Return a session's document."""
    return b"".join(store.export(session_id, revision)[1])


def sha256(data: bytes) -> str:
    """Return the hex digest."""
    return hashlib.sha256(data).hexdigest()


def parsed(session_id: str, *contents: str, title: str = "A title") -> Conversation:
    """Return a document to import."""
    body = [document.encode_message(message) for message in messages_of(*contents)]
    return Conversation(header(session_id, title), tuple(body))


def query(path: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    """Ask the database over a connection of its own.

    Never with the standard library's SQLite while the store is open here: two copies of SQLite in one process take away
    each other's file locks, and the one that closes first removes the other's WAL.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql, values).fetchall()  # type: ignore[arg-type]
    finally:
        connection.close()


def tamper(path: Path, *statements: str) -> None:
    """Change the database behind the store's back, without its triggers in the way."""
    connection = apsw.Connection(str(path))
    try:
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}").fetchall()
        for statement in statements:
            connection.execute(statement).fetchall()
    finally:
        connection.close()


Reopen = Callable[[], SqliteStore]
