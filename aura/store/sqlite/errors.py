"""Turns what SQLite and the file system say into the store's errors. The only place that knows apsw's exceptions by
name."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from aura.errors import AuraError, Internal, SessionFrozen, StoreFull, StoreUnavailable

_FULL_HINT = "Free some space on the disk; what was saved before is safe."
_ACCESS_HINT = "Check the permissions of the sessions directory, and that it is a directory."
_DISK_HINT = "Check the disk and the file system."
_ACCESS = frozenset(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENOENT, errno.ELOOP)
)


def is_full(error: Exception | None) -> bool:
    """Tell whether `error` means that there is no room left.

    SQLite says so in two ways: the database or its WAL cannot grow, or the shared-memory file cannot.
    """
    match error:
        case StoreFull() | apsw.FullError():
            return True
        case apsw.IOError():
            return bool(getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE)
        case OSError():
            return error.errno in (errno.ENOSPC, errno.EDQUOT)
        case _:
            return False


def translate(error: Exception) -> AuraError:
    """Return the store error for `error`, which came out of apsw or the file system."""
    match error:
        case AuraError():
            return error
        case _ if is_full(error):
            return StoreFull("there is no room left for the database", hint=_FULL_HINT)
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable(
                "another program holds the database's lock", hint="End the program that keeps a transaction open."
            )
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreUnavailable(
                "the database is damaged or is not a database", hint="Restore aura.db from a backup, or move it away."
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError():
            return StoreUnavailable("the database cannot be opened or written", hint=_ACCESS_HINT)
        case OSError() if error.errno in _ACCESS:
            return StoreUnavailable(
                f"the sessions directory cannot be used: {os.strerror(error.errno)}", hint=_ACCESS_HINT
            )
        case apsw.ConstraintError() if "session is frozen" in str(error):
            return SessionFrozen("the session is frozen", hint="Fork it and work on the fork.")
        case apsw.IOError():
            return StoreUnavailable(f"the disk failed: {error}", hint=_DISK_HINT)
        case OSError():
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            return StoreUnavailable(f"the disk failed: {reason}", hint=_DISK_HINT)
        case _:
            return Internal(f"the database refused a statement: {error}")


@contextmanager
def translated() -> Iterator[None]:
    """While the block runs, failures of SQLite and the file system leave it as store errors."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise translate(error) from error
