"""An evidence bundle as bytes: a tar archive of known files in a known order, the same bytes for the same contents.

It carries no time, owner or mode that could differ. Archives are read as a stream; nothing is ever unpacked to a disk.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Protocol, cast

from aura import limits
from aura.errors import InvalidSession

MANIFEST, SESSION, JOURNAL, SUMS = "manifest.json", "session.json", "journal.jsonl", "SHA256SUMS"
MEMBERS = (MANIFEST, SESSION, JOURNAL, SUMS)
_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a bundle, with its size known beforehand."""

    name: str
    size_bytes: int
    pieces: Iterable[bytes]


class Readable(Protocol):
    """Anything with bytes to read."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


def write_archive(members: Iterable[Member]) -> Iterator[bytes]:
    """Yield the bytes of an archive. Raises `ValueError` if a member's pieces do not have its size."""
    total = 0
    for member in members:
        info = tarfile.TarInfo(member.name)
        info.size, info.mode, info.mtime = member.size_bytes, _MODE, 0
        header = info.tobuf(tarfile.PAX_FORMAT)
        yield header
        size = 0
        for piece in member.pieces:
            size += len(piece)
            yield piece
        if size != member.size_bytes:
            raise ValueError(f"{member.name} has {size} bytes where {member.size_bytes} were announced")
        padding = -size % tarfile.BLOCKSIZE
        yield bytes(padding)
        total += len(header) + size + padding
    end = 2 * tarfile.BLOCKSIZE
    yield bytes(end + -(total + end) % tarfile.RECORDSIZE)


def read_archive(file: Readable) -> Iterator[tuple[str, int, Iterator[bytes]]]:
    """Yield (name, size, pieces) of each member; the pieces must be used up before the next one is asked for.

    Raises `InvalidSession` for what is no archive, and for members that are no plain files.
    """
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r|") as archive:
            for info in archive:
                content = archive.extractfile(info) if info.isreg() else None
                if content is None:
                    raise InvalidSession(f"{info.name[:80]!r} in it is not a plain file", hint=_HINT)
                with content:
                    yield info.name, info.size, _pieces(content)
    except tarfile.TarError as error:
        raise _no_bundle(error) from error


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    try:
        while piece := content.read(limits.FILE_PIECE_BYTES):
            yield piece
    except tarfile.TarError as error:
        raise _no_bundle(error) from error


def _no_bundle(error: tarfile.TarError) -> InvalidSession:
    return InvalidSession(f"this is no whole evidence bundle: {error}", hint=_HINT)


_HINT = "A bundle is the file that `aura evidence export` wrote, not unpacked."
