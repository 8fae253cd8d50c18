"""Checks evidence bundles without a database, a configuration or a network: `aura evidence verify`.

Everything is recomputed from the bundle's own bytes, in one pass. It proves that the parts belong together and are
complete; that the bundle is the one that was made is proved by a hash noted elsewhere.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from aura import limits
from aura.errors import BadRequest, InvalidSession
from aura.ids import is_sha256
from aura.jsontypes import JsonValue
from aura.runtime import files
from aura.runtime.bundle import JOURNAL, MANIFEST, MEMBERS, SESSION, SUMS, read_archive
from aura.runtime.evidence import FORMAT, reports_revision
from aura.store.journals import GENESIS_HASH
from aura.wire import canonical
from aura.wire.event_reader import Members
from aura.wire.line_chain import LineChain


@dataclass(frozen=True, slots=True)
class CheckedEvidence:
    """What a check found: `problems` is empty when the bundle holds. `sha256` is the hash of the bundle as it is read.

    `covered` is False when the first event's own hash is taken on trust. `expected_seq` is where the noted hash was
    found, None when none was given or it is not there.
    """

    session_id: str
    revision: str
    events: int
    first_seq: int
    last_seq: int
    head: str
    covered: bool
    sha256: str
    expected_seq: int | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Claims:
    """What the manifest says."""

    session_id: str
    revision: str
    revision_seq: int | None
    events: int
    first_seq: int
    last_seq: int
    start_seq: int
    start_sha256: str
    head_sha256: str
    files: dict[str, tuple[int, str]]


@dataclass(slots=True)
class _Check:
    claims: _Claims
    chain: LineChain
    sums: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def claim(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)


def check_evidence(name: str, expected: bytes | None = None, expected_seq: int | None = None) -> CheckedEvidence:
    """Check the bundle in the file `name` (`-`: standard input). What does not hold is in the answer.

    `expected` is a hash of the chain that was noted earlier: of event `expected_seq`, or of any one. Raises
    `BadRequest` for a file that cannot be read, and `InvalidSession` for what is no bundle.
    """
    last = 0
    with _opened(name) as file:
        hashing = _HashingReader(file)
        members = read_archive(hashing)
        check = _begin(members, expected)
        for index, (member, size, pieces) in enumerate(members, start=1):
            wanted = MEMBERS[index] if index < len(MEMBERS) else "nothing"
            if member != wanted:
                raise InvalidSession(f"the bundle has {member[:80]!r} where {wanted} belongs")
            _check_member(check, member, size, pieces)
            last = index
        hashing.drain()
    check.claim(last == len(MEMBERS) - 1, f"the bundle ends after {MEMBERS[last]}")
    _check_chain(check)
    expected_seqs = [seq for seq in check.chain.expected_seqs if expected_seq in (None, seq)]
    where = f"event {expected_seq}" if expected_seq is not None else "any event"
    check.claim(expected is None or bool(expected_seqs), f"the expected hash is not that of {where}")
    claims = check.claims
    return CheckedEvidence(
        session_id=claims.session_id,
        revision=claims.revision,
        events=claims.events,
        first_seq=claims.first_seq,
        last_seq=claims.last_seq,
        head=claims.head_sha256,
        covered=claims.start_seq < claims.first_seq,
        sha256=hashing.sha256(),
        expected_seq=expected_seqs[-1] if expected_seqs else None,
        problems=tuple(check.problems),
    )


def _begin(members: Iterator[tuple[str, int, Iterator[bytes]]], expected: bytes | None) -> _Check:
    name, size, pieces = next(members, ("", 0, iter(())))
    if name != MANIFEST or size > limits.MANIFEST_MAX_BYTES:
        raise InvalidSession("this is no evidence bundle: it does not begin with its manifest")
    data = b"".join(pieces)
    try:
        claims = _read_manifest(data)
    except ValueError as error:
        raise InvalidSession(f"{MANIFEST}: {error}") from error
    start = bytes.fromhex(claims.start_sha256)
    chain = LineChain(claims.start_seq, start, claims.first_seq, expected=expected, wanted_seq=claims.revision_seq)
    return _Check(claims, chain, {MANIFEST: hashlib.sha256(data).hexdigest()})


def _check_member(check: _Check, name: str, size: int, pieces: Iterator[bytes]) -> None:
    sha, kept = hashlib.sha256(), list[bytes]()
    for piece in pieces:
        sha.update(piece)
        if name == JOURNAL:
            check.chain.add(piece)
        elif name == SUMS and size <= limits.MANIFEST_MAX_BYTES:
            kept.append(piece)
    digest = sha.hexdigest()
    if name == SUMS:
        found = "".join(f"{check.sums.get(item, '')}  {item}\n" for item in MEMBERS[:-1])
        check.claim(b"".join(kept) == found.encode(), f"{SUMS} does not list the hashes of the files")
        return
    check.sums[name] = digest
    check.claim((size, digest) == check.claims.files.get(name), f"{name} is not the file that the manifest names")
    if name == SESSION:
        check.claim(digest == check.claims.revision, f"{SESSION} is not the revision that the manifest names")
    if name == JOURNAL:
        check.chain.end()


def _check_chain(check: _Check) -> None:
    claims, chain = check.claims, check.chain
    check.claim(chain.problem is None, f"{JOURNAL}: {chain.problem}")
    check.claim(chain.seq == claims.last_seq, f"{JOURNAL} ends with event {chain.seq}, not {claims.last_seq}")
    check.claim(chain.sha256.hex() == claims.head_sha256, "the chain of the lines does not end with the head's hash")
    check.claim(claims.events == claims.last_seq - claims.first_seq + 1, "the manifest counts other events")
    reported = chain.wanted is not None and reports_revision(_decoded(chain.wanted), claims.revision)
    check.claim(claims.revision_seq is None or reported, f"event {claims.revision_seq} does not report the revision")
    genesis = (claims.start_seq, claims.start_sha256) == (0, GENESIS_HASH.hex())
    check.claim(claims.first_seq > 1 or genesis, "the chain does not begin where journals begin")
    check.claim(claims.start_seq in (claims.first_seq - 1, claims.first_seq), "the chain begins elsewhere")


def _read_manifest(data: bytes) -> _Claims:
    value = canonical.decode(data)
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    manifest = Members("manifest", value)
    if manifest.text("format") != FORMAT:
        raise ValueError(f"its format is {manifest.text('format')[:80]!r}, this program knows {FORMAT!r}")
    journal = manifest.object("journal")
    start, head = journal.object("start"), journal.object("head")
    seq = None if manifest.any("revision_seq") is None else manifest.whole("revision_seq")
    return _Claims(
        session_id=manifest.text("session_id"),
        revision=manifest.text("revision"),
        revision_seq=seq,
        events=journal.whole("events"),
        first_seq=journal.whole("first_seq"),
        last_seq=journal.whole("last_seq"),
        start_seq=start.whole("seq"),
        start_sha256=_sha256(start, "sha256"),
        head_sha256=_sha256(head, "sha256"),
        files={item.text("name"): (item.whole("bytes"), _sha256(item, "sha256")) for item in manifest.items("files")},
    )


def _decoded(line: bytes) -> JsonValue:
    try:
        return canonical.decode(line)
    except canonical.NotCanonical:
        return None


def _sha256(members: Members, name: str) -> str:
    text = members.text(name)
    if not is_sha256(text):
        raise members.error(name, "a SHA-256 in lower-case hex")
    return text


class _HashingReader:
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._sha.update(data)
        return data

    def drain(self) -> None:
        """Read what is left."""
        while self.read(limits.FILE_PIECE_BYTES):
            pass

    def sha256(self) -> str:
        """Return the hash of what was read."""
        return self._sha.hexdigest()


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == files.STANDARD_STREAM:
        if sys.stdin is None:
            raise BadRequest("standard input is closed", hint="Name a file.")
        yield sys.stdin.buffer
        return
    try:
        with open(name, "rb") as file:
            yield file
    except OSError as error:
        raise files.unreadable(name, error) from error
