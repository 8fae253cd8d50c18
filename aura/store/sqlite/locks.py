"""Files that processes agree by: the writers' lock, the session locks, and the ballast. None of them is ever unlinked,
except the ballast, which exists to be given up.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aura import limits
from aura.errors import StoreUnavailable


class WriterLock:
    """The lock that lets one process at a time into a write transaction: fair, where SQLite's own handler is not."""

    def __init__(self, directory: Path) -> None:
        self._fd = os.open(directory / ".writer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def held(self, wait_ms: int | None = None) -> Iterator[None]:
        """Hold the lock for the block. One thread per instance.

        Without `wait_ms` it waits in the system's own queue, which is fair, for as long as it takes; with it, it tries
        that long and raises `StoreUnavailable` then.
        """
        if wait_ms is None:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        elif not _lock_within(self._fd, wait_ms):
            raise StoreUnavailable(
                f"another process held the writers' lock for over {wait_ms} ms", hint="Find out what it waits for."
            )
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the file descriptor back."""
        os.close(self._fd)


class SessionLock:
    """A process's hold on one session, for as long as this object is open; the system ends it with the process."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    @property
    def is_held(self) -> bool:
        """False once the session was let go."""
        return self._fd is not None

    def close(self) -> None:
        """Let the session go. Repeating it does nothing."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def find_session_lock(directory: Path, session_id: str) -> SessionLock | None:
    """Return the held lock of a session, or None when another holder has it.

    It tries again for `limits.LOCK_RETRY_MS`, so that somebody who merely looks whether it is held does not count.
    """
    folder = directory / ".locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(folder / f"{session_id}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        locked = _lock_within(fd, limits.LOCK_RETRY_MS)
    except BaseException:
        os.close(fd)
        raise
    if locked:
        return SessionLock(fd)
    os.close(fd)
    return None


def _lock_within(fd: int, wait_ms: int) -> bool:
    deadline = time.monotonic() + wait_ms / 1000
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(limits.LOCK_RETRY_PAUSE_MS / 1000)


def is_session_locked(directory: Path, session_id: str) -> bool:
    """Tell whether a process holds the session now. It looks by a shared lock for an instant."""
    path = directory / ".locks" / f"{session_id}.lock"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


class Ballast:
    """A file that takes up room, so that terminal records still fit on a full disk once it is given up."""

    def __init__(self, directory: Path, size_bytes: int = limits.BALLAST_BYTES) -> None:
        self._path = directory / ".ballast"
        self._size_bytes = size_bytes

    def ensure(self) -> None:
        """Make the file if it is missing, or shorter than it should be, as a power cut can leave it.

        Raises `OSError` when there is no room for it, and `StoreUnavailable` when somebody else has been at it for
        over `limits.BALLAST_WAIT_MS`. Any thread, any process.
        """
        if self._is_laid():
            return
        # The folder itself is the lock: two makers of the one part would each replace the ballast by the other's.
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not _lock_within(folder, limits.BALLAST_WAIT_MS):
                raise StoreUnavailable("somebody else is making the ballast", hint="Find out what it waits for.")
            if not self._is_laid():
                self._lay()
        finally:
            os.close(folder)

    def _lay(self) -> None:
        part = self._path.with_name(".ballast.part")  # one name: a crash leaves at most one
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, self._size_bytes)
            os.replace(part, self._path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def give_up(self) -> bool:
        """Free the room; return False if it was free already."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def _is_laid(self) -> bool:
        try:
            return self._path.stat().st_size >= self._size_bytes
        except FileNotFoundError:
            return False
