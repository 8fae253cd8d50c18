"""Writes evidence bundles: a session, its journal and the hashes that hold them together, checkable without a store.

A bundle is deterministic: the same session in the same state, exported by the same versions, gives the same bytes. It
has no secrets of its own; it holds what the session and the journal hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aura import __version__
from aura.conversation import Summary
from aura.errors import BadRequest, Exists, StoreUnavailable
from aura.jsontypes import JsonValue
from aura.runtime import files
from aura.runtime.bundle import JOURNAL, MANIFEST, SESSION, SUMS, Member, write_archive
from aura.runtime.journal import iterate_lines
from aura.runtime.stores import existing_store
from aura.store.about import read_versions
from aura.store.journals import EventFilter, JournalState, Verified
from aura.store.protocol import Store
from aura.wire import canonical

FORMAT = "aura evidence 1"
_SAVES_LOOKED_AT_COUNT = 64  # the revision was reported by the last save, but for saves made while we look


@dataclass(frozen=True, slots=True)
class ExportedEvidence:
    """What an export did. `path` is absolute, or `-`; `sha256` is the bundle's hash, `head` the chain's, of `last_seq`.

    `written` is False when the same file was there already.
    """

    session: Summary
    path: str
    events: int
    last_seq: int
    head: str
    sha256: str
    written: bool


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    size_bytes: int
    sha256: str


def export_evidence(
    directory: Path, session_id: str, output: str, write: Callable[[bytes], object] | None = None
) -> ExportedEvidence:
    """Write a session's bundle to the file `output`, or to `write` for `-`. The file is complete or not there.

    The chain and the revision are recomputed first: evidence that does not hold is not written. An identical file is
    left alone. Raises `NotFound`, `Exists` for a different file, `BadRequest` for a place that cannot be written, and
    `StoreUnavailable` when the journal or the session is not as it was written.
    """
    if write is None and (not output or output.endswith("/")):
        raise BadRequest(f"{output!r} is not a file name", hint="Name a file, or - for standard output.")
    with existing_store(directory, session_id) as store:
        session = store.get_session(session_id)
        verified = _verified(store, session_id)
        members = _members(store, session, verified)
        sha = hashlib.sha256()
        for piece in write_archive(members()):
            sha.update(piece)
        written = True
        if write is not None:
            for piece in write_archive(members()):
                write(piece)
        else:
            written = _write_file(Path(output).absolute(), sha.hexdigest(), write_archive(members()))
    state = verified.state
    return ExportedEvidence(
        session=session,
        path=files.STANDARD_STREAM if write is not None else str(Path(output).absolute()),
        events=verified.events,
        last_seq=state.last_seq,
        head=state.head.hex(),
        sha256=sha.hexdigest(),
        written=written,
    )


def _verified(store: Store, session_id: str) -> Verified:
    verified = store.verify_journal(session_id)
    if verified.problems:
        raise StoreUnavailable(
            f"the journal is not as it was written: {verified.problems[0].message}",
            hint="`aura journal verify` says more; restore the database from a backup.",
        )
    return verified


def _members(store: Store, session: Summary, verified: Verified) -> Callable[[], tuple[Member, ...]]:
    """Return what makes the bundle's members, anew for each pass."""
    document = _measure(SESSION, _document(store, session))
    if document.sha256 != session.revision:
        raise StoreUnavailable(
            f"the stored bytes of {session.id} no longer hash to revision {session.revision}",
            hint="The database was changed from outside; restore it from a backup.",
        )
    journal = _File(JOURNAL, verified.size_bytes, verified.sha256)
    manifest = canonical.encode(_manifest(store, session, verified, document, journal)) + b"\n"
    sums = _sums((_measure(MANIFEST, (manifest,)), document, journal))

    def members() -> tuple[Member, ...]:
        return (
            Member(MANIFEST, len(manifest), (manifest,)),
            Member(SESSION, document.size_bytes, _document(store, session)),
            Member(JOURNAL, journal.size_bytes, iterate_lines(store, verified.state)),
            Member(SUMS, len(sums), (sums,)),
        )

    return members


def _manifest(
    store: Store, session: Summary, verified: Verified, document: _File, journal: _File
) -> dict[str, JsonValue]:
    state = verified.state
    entries: list[JsonValue] = [
        {"name": item.name, "bytes": item.size_bytes, "sha256": item.sha256} for item in (document, journal)
    ]
    versions: dict[str, JsonValue] = {"aura": __version__, **read_versions()}
    return {
        "format": FORMAT,
        "session_id": session.id,
        "revision": session.revision,
        "revision_seq": _find_revision_seq(store, session, state),
        "messages": session.messages,
        "frozen": session.frozen,
        "journal": {
            "events": verified.events,
            "first_seq": state.first_seq,
            "last_seq": state.last_seq,
            "start": {"seq": state.start.seq, "sha256": state.start.sha256.hex()},
            "head": {"seq": state.last_seq, "sha256": state.head.hex()},
        },
        "files": entries,
        "made_by": versions,
    }


def _find_revision_seq(store: Store, session: Summary, state: JournalState) -> int | None:
    """Return the seq of the event that reported the bundle's revision; None where none did, as after a freeze."""
    where = EventFilter(types=("session.persisted",))
    after = store.find_start_of_last(session.id, state.last_seq, where, _SAVES_LOOKED_AT_COUNT)
    page = store.read_matching(session.id, after, state.last_seq, where, _SAVES_LOOKED_AT_COUNT)
    for line in reversed(page.lines.splitlines()):
        event = canonical.decode(line)
        if reports_revision(event, session.revision):
            assert isinstance(event, dict)
            return int(event["seq"])
    return None


def reports_revision(event: JsonValue, revision: str) -> bool:
    """Tell whether a decoded event says that the session was saved as `revision`."""
    data = event.get("data") if isinstance(event, dict) and event.get("type") == "session.persisted" else None
    return isinstance(data, dict) and data.get("revision") == revision


def _document(store: Store, session: Summary) -> Iterator[bytes]:
    return store.export(session.id, session.revision)[1]


def _measure(name: str, pieces: Iterable[bytes]) -> _File:
    sha, size = hashlib.sha256(), 0
    for piece in pieces:
        sha.update(piece)
        size += len(piece)
    return _File(name, size, sha.hexdigest())


def _sums(members: Iterable[_File]) -> bytes:
    """Return the file that `sha256sum -c` reads."""
    return "".join(f"{item.sha256}  {item.name}\n" for item in members).encode()


def _write_file(path: Path, sha256: str, pieces: Iterator[bytes]) -> bool:
    found = files.find_sha256(path)
    if found == sha256:
        return False
    differs = Exists(f"{path} exists and differs", hint="Name another file, or move that one away.")
    if found is not None:
        raise differs
    try:
        files.create_file(path, pieces)
    except FileExistsError:
        raise differs from None
    except OSError as error:
        raise files.unwritable(path, error) from error
    return True


__all__ = ["FORMAT", "ExportedEvidence", "export_evidence", "reports_revision"]
