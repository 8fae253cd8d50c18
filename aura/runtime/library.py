"""Stored sessions without a live run: the verbs behind `aura session` (contract.md; interfaces.md 4, 9 and 11).

Each verb opens the store, does one thing and closes it. A verb that only reads makes no file, not even where there is
no store yet. It imports neither engine nor server, and prints nothing.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aura import ids
from aura.clock import Clock, SystemClock, parse_time
from aura.conversation import Summary
from aura.errors import BadRequest, Exists, NotFound, StoreUnavailable
from aura.runtime import files, listing
from aura.runtime.listing import reachable
from aura.store.open import find_store
from aura.store.protocol import Forked, Frozen, Holder, Store
from aura.wire import canonical, document


@dataclass(frozen=True, slots=True)
class Details:
    """What a person asks of one session. `events` counts its journal from the first event on."""

    session: Summary
    revisions: int
    events: int
    holder: Holder | None


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export did. `path` is absolute, or `-`. `written` is False when the same file was there already."""

    session: Summary
    path: str
    sha256: str
    written: bool


class Library:
    """The sessions of one store directory. One thread at a time; each verb blocks.

    Every verb may raise `StoreUnavailable`, and `InvalidId` for an id that cannot name a session.
    """

    def __init__(self, directory: Path, clock: Clock | None = None) -> None:
        """Look at `directory` (`<write home>/sessions`), which need not exist."""
        self._directory = directory
        self._clock = clock or SystemClock()

    def list_sessions(self) -> tuple[Summary, ...]:
        """Return all sessions, the most recently updated first; none where there is no store yet."""
        return listing.list_sessions(self._directory)

    def get_session(self, session_id: str, revision: str | None = None) -> Summary:
        """Return a session as it is, or as it was at the revision whose digits start with `revision`.

        Raises `NotFound`, and `BadRequest` for a `revision` that is not hex or fits several.
        """
        with self._existing(session_id) as store:
            return summarize(store, session_id, ids.check_revision_prefix(revision))

    def get_details(self, session_id: str, revision: str | None = None) -> Details:
        """Return what `get_session` does, and what the store knows beyond it. Raises the same."""
        with self._existing(session_id) as store:
            return Details(
                session=summarize(store, session_id, ids.check_revision_prefix(revision)),
                revisions=len(store.list_revisions(session_id)),
                events=store.read_last_seq(session_id),
                holder=store.find_holder(session_id),
            )

    def export_file(self, session_id: str, output: str, revision: str | None = None) -> Exported:
        """Write a revision's canonical bytes, the head's by default, to the file `output`.

        Their hash is compared with the revision before the file gets its name. An identical file is left alone.
        Raises `NotFound`, `Exists` for a different file, `BadRequest` for a place that cannot be written, and
        `StoreUnavailable` when the stored bytes no longer hash to the revision.
        """
        if not output or output.endswith("/"):
            raise BadRequest(f"{output!r} is not a file name", hint="Name a file, or - for standard output.")
        with self._existing(session_id) as store:
            session = summarize(store, session_id, ids.check_revision_prefix(revision))
            path = Path(output).absolute()
            written = not has_content(path, session.revision) and _write(store, session, path)
        return Exported(session, str(path), session.revision, written)

    def export_stream(self, session_id: str, write: Callable[[bytes], object], revision: str | None = None) -> Exported:
        """Give a revision's canonical bytes to `write`, in pieces; nothing is given when they fail their check.

        Raises what `export_file` raises of the store, and what `write` raises.
        """
        with self._existing(session_id) as store:
            session = summarize(store, session_id, ids.check_revision_prefix(revision))
            deque(verified_bytes(store, session), maxlen=0)
            for piece in verified_bytes(store, session):
                write(piece)
        return Exported(session, files.STANDARD_STREAM, session.revision, written=True)

    def fork(
        self,
        parent_id: str,
        child_id: str,
        *,
        title: str | None = None,
        expect_revision: str | None = None,
        revision: str | None = None,
    ) -> Forked:
        """Make `child_id` from the parent's head or `revision`; the same fork again is returned as stored.

        Raises `NotFound`, `RevisionMismatch`, `Exists` for any other child, `BadRequest` for a title that is not
        UTF-8, a `revision` or an `expect_revision` that cannot be one.
        """
        ids.check_session_id(child_id)
        _check_expected(expect_revision)
        if title is not None and canonical.clean(title) != title:
            raise BadRequest("the title is not UTF-8")
        with self._existing(parent_id) as store:
            return store.fork(
                parent_id,
                child_id,
                title=title,
                expect_revision=expect_revision,
                revision=ids.check_revision_prefix(revision),
                at_ms=self._clock.now_ms(),
            )

    def freeze(self, session_id: str, *, expect_revision: str | None = None) -> Frozen:
        """Freeze a session for ever; again, it changes nothing.

        Raises `NotFound`, `RevisionMismatch`, `SessionLocked`, `BadRequest`.
        """
        _check_expected(expect_revision)
        with self._existing(session_id) as store:
            return store.freeze(session_id, expect_revision=expect_revision, at_ms=self._clock.now_ms())

    @contextmanager
    def _existing(self, session_id: str) -> Iterator[Store]:
        ids.check_session_id(session_id)
        with self._found() as store:
            if store is None:
                raise NotFound(f"there is no session {session_id}: the store is empty", hint="Import one first.")
            yield store

    @contextmanager
    def _found(self) -> Iterator[Store | None]:
        with reachable(self._directory):
            store = find_store(self._directory)
        if store is None:
            yield None
            return
        try:
            yield store
        finally:
            store.close()


def summarize(store: Store, session_id: str, revision: str | None) -> Summary:
    """Return a session as it is, or as it was at `revision`. Raises `NotFound` and `BadRequest`."""
    if revision is None:
        return store.get_session(session_id)
    found, pieces = store.export(session_id, revision)
    (tail,) = deque(pieces, maxlen=1)
    header = document.decode_tail(tail, "")
    _, messages = store.read_messages(session_id, -1, 0, found.revision)
    return Summary(
        id=header.id,
        title=header.title,
        created_at_ms=parse_time(header.created_at),
        updated_at_ms=parse_time(header.updated_at),
        revision=found.revision,
        messages=messages,
        frozen=header.frozen,
        parent=header.parent,
    )


def verified_bytes(store: Store, session: Summary) -> Iterator[bytes]:
    """Yield a revision's canonical bytes. Raises `StoreUnavailable` at their end when they do not hash to it."""
    sha = hashlib.sha256()
    _, pieces = store.export(session.id, session.revision)
    for piece in pieces:
        sha.update(piece)
        yield piece
    if sha.hexdigest() != session.revision:
        raise StoreUnavailable(
            f"the stored bytes of {session.id} no longer hash to revision {session.revision}",
            hint="The database was changed from outside; restore it from a backup.",
        )


def has_content(path: Path, sha256: str) -> bool:
    """Tell whether the file is there with this content. Raises `Exists` for other content, and `BadRequest`."""
    found = files.find_sha256(path)
    if found is not None and found != sha256:
        raise Exists(f"{path} exists and differs", hint="Name another file, or move that one away.")
    return found is not None


def _write(store: Store, session: Summary, path: Path) -> bool:
    try:
        files.create_file(path, verified_bytes(store, session))
        return True
    except FileExistsError:
        if has_content(path, session.revision):
            return False
        raise Exists(f"{path} exists and differs", hint="Name another file, or move that one away.") from None
    except OSError as error:
        raise files.unwritable(path, error) from error


def _check_expected(revision: str | None) -> None:
    if revision is not None and not ids.is_sha256(revision):
        raise BadRequest(
            f"{revision[:80]!r} is not a revision", hint="A revision has 64 lower-case hex digits; see `session show`."
        )


__all__ = ["Details", "Exported", "Forked", "Frozen", "Holder", "Library", "Summary"]
