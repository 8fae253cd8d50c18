"""Files that a user names: reading one or standard input, writing one atomically. It knows nothing of their contents.

A written file is complete or not there: its bytes are synced under another name in the same directory before they get
theirs, and the directory is synced after it (contract.md, row Atomic writes). Any thread may call these functions.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from aura import limits
from aura.errors import BadRequest

STANDARD_STREAM = "-"
_NO_HARD_LINKS = frozenset((errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK))


def read_input(name: str, max_bytes: int = limits.IMPORT_MAX_BYTES) -> bytes:
    """Return the bytes of the file `name`, or of standard input for `-`.

    Raises `BadRequest` when it is missing, unreadable or a directory, and, with `details.reason` `too_large`, when it
    has more than `max_bytes`.
    """
    if name == STANDARD_STREAM:
        if sys.stdin is None:
            raise BadRequest("standard input is closed", hint="Name a file.")
        return _read_stream(sys.stdin.buffer, "standard input", max_bytes)
    try:
        with open(name, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size > max_bytes:
                raise too_large(name, max_bytes)
            return _read_stream(file, name, max_bytes)
    except OSError as error:
        raise unreadable(name, error) from error


def find_sha256(path: Path) -> str | None:
    """Return the SHA-256 of a regular file, None when nothing has that name.

    Raises `BadRequest` for a file that cannot be read and for everything that is not a regular file.
    """
    sha = hashlib.sha256()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadRequest(f"{path} is not a regular file", hint="Name a file, or - for standard output.")
        with path.open("rb", buffering=0) as file:
            while piece := file.read(limits.FILE_PIECE_BYTES):
                sha.update(piece)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(str(path), error) from error
    return sha.hexdigest()


def create_file(path: Path, pieces: Iterable[bytes], mode: int = 0o666) -> None:
    """Make a file that was not there, atomically. `mode` is subject to the umask.

    Raises `FileExistsError` when something has that name, other `OSError`s, and what `pieces` raises; then no file was
    made.
    """
    give_name(_write_beside(path, pieces, mode), path)


def make_part(path: Path, mode: int = 0o600) -> Path:
    """Make an empty file beside `path`, to be filled and then given that name. Raises `OSError`."""
    part = _beside(path)
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
    return part


def give_name(temporary: Path, path: Path) -> None:
    """Give a file that is complete and synced the name `path`, which was free. Its old name is gone in any case.

    Raises `FileExistsError` when something has that name, and other `OSError`s.
    """
    try:
        _link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def replace_file(path: Path, pieces: Iterable[bytes], mode: int = 0o600) -> None:
    """Make or replace a file atomically. `mode` is subject to the umask.

    Raises `OSError` and what `pieces` raises; then an earlier file is as it was.
    """
    temporary = _write_beside(path, pieces, mode)
    try:
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def unwritable(path: Path, error: OSError) -> BadRequest:
    """Return the error for a file that could not be written, for callers that have no better one."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return BadRequest(f"{path.parent} is not a directory", hint="Make it first, or name another file.")
    return BadRequest(f"{path} cannot be written: {error.strerror}", hint="Name a file in another directory.")


def unreadable(name: str, error: OSError) -> BadRequest:
    """Return the error for a file that could not be read."""
    return BadRequest(f"{name} cannot be read: {error.strerror}", hint="Name a readable file, or - for standard input.")


def too_large(name: str, max_bytes: int) -> BadRequest:
    """Return the error for an input, or one document of it, with more than `max_bytes`."""
    return BadRequest(f"{name} has more than {max_bytes} bytes", details={"reason": "too_large"})


def _read_stream(stream: BinaryIO, name: str, max_bytes: int) -> bytes:
    pieces, size = [], 0
    try:
        while piece := stream.read(limits.FILE_PIECE_BYTES):
            size += len(piece)
            if size > max_bytes:
                raise too_large(name, max_bytes)
            pieces.append(piece)
    except OSError as error:
        raise unreadable(name, error) from error
    return b"".join(pieces)


def _write_beside(path: Path, pieces: Iterable[bytes], mode: int) -> Path:
    temporary = _beside(path)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb", buffering=limits.FILE_BUFFER_BYTES) as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(fd)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _beside(path: Path) -> Path:
    return path.with_name(f".aura-{os.getpid()}-{os.urandom(4).hex()}.tmp")


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)  # unlike a rename it never takes the place of a file that came meanwhile
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        os.rename(temporary, path)


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
