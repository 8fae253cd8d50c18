"""Opens the database: files, pragmas, read-only connections. It knows no table.

One file, WAL, synchronous=FULL (DESIGN.md section 4). A connection is used by one thread at a time; read-only ones are
kept in a pool. apsw runs a statement only as far as it is iterated, so everything here and above it fetches all rows at
once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import apsw

from aura import limits
from aura.errors import StoreUnavailable
from aura.store.sqlite.errors import translated
from aura.wire import canonical

DATABASE_NAME = "aura.db"

SQL_INTEGER_END = 1 << 63  # SQLite holds integers below it
SqlValue = int | float | str | bytes | None
Row = tuple[SqlValue, ...]
Connection: TypeAlias = apsw.Connection  # for annotations above this package, which may not import apsw


def open_writer(path: Path) -> apsw.Connection:
    """Return a connection that may write, its files made with mode 0600. Raises `StoreUnavailable`.

    It is in WAL mode only after `enter_wal`, once it is known that the file is ours.
    """
    with translated():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(_uri(path, "mode=rw"), flags=flags)
        try:
            connection.set_busy_timeout(limits.BUSY_TIMEOUT_MS)
            for pragma in (
                "synchronous = FULL",
                "wal_autocheckpoint = 0",
                f"journal_size_limit = {limits.JOURNAL_SIZE_LIMIT_BYTES}",
            ):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            _common_pragmas(connection)
        except BaseException:
            close_connection(connection)
            raise
    return connection


def enter_wal(connection: apsw.Connection) -> None:
    """Bring the file into WAL mode; the caller holds the writers' file lock, or the file is in that mode already."""
    row = fetch_one(connection, "PRAGMA journal_mode = WAL")
    if row != ("wal",):
        raise StoreUnavailable(
            "the file system cannot hold the database", hint="Use a local file system that can map and lock files."
        )


def is_wal(connection: apsw.Connection) -> bool:
    """Tell whether the file is in WAL mode."""
    return fetch_one(connection, "PRAGMA journal_mode") == ("wal",)


def make_directory(path: Path) -> None:
    """Make `path` with mode 0700, and its parents; each new entry is synced, so that a crash cannot lose the store."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_reader(path: Path) -> apsw.Connection:
    """Return a read-only connection. Raises `StoreUnavailable`.

    In a directory that cannot be written SQLite cannot make its shared-memory file: there the database is opened as
    immutable, which is sound while no WAL is beside it.
    """
    immutable = not os.access(path.parent, os.W_OK) and not _has_wal(path)
    return open_immutable(path) if immutable else _open_read_only(path, "mode=ro")


def open_immutable(path: Path) -> apsw.Connection:
    """Return a read-only connection to a file that nobody writes; nothing is made beside it. Raises
    `StoreUnavailable`."""
    return _open_read_only(path, "mode=ro&immutable=1")


def _open_read_only(path: Path, options: str) -> apsw.Connection:
    uri = _uri(path, options)
    with translated():
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(limits.BUSY_TIMEOUT_MS)
            _common_pragmas(connection)
        except BaseException:
            close_connection(connection)
            raise
    return connection


def close_connection(connection: apsw.Connection) -> None:
    """Close a connection whatever its disk does: what was committed is in the WAL, and nothing else can be lost."""
    with suppress(apsw.Error):
        connection.close()


def fetch_all(connection: apsw.Connection, sql: str, *values: SqlValue) -> list[Row]:
    """Run one statement to its end and return its rows.

    Lone surrogates in `values` count as U+FFFD, as they do in canonical JSON; so an id that holds some is not found.
    """
    try:
        return connection.execute(sql, values).fetchall()
    except UnicodeEncodeError:
        cleaned = [canonical.clean(value) if isinstance(value, str) else value for value in values]
        return connection.execute(sql, cleaned).fetchall()


def fetch_one(connection: apsw.Connection, sql: str, *values: SqlValue) -> Row | None:
    """Run one statement to its end and return its first row, or None."""
    rows = fetch_all(connection, sql, *values)
    return rows[0] if rows else None


def sqlite_version() -> str:
    """Return the version of the SQLite library in use."""
    return apsw.sqlite_lib_version()


class ReaderPool:
    """Read-only connections for any native thread; each is used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """Lend a connection for the block. Failures leave it as store errors."""
        connection = self._take()
        try:
            with translated():
                yield connection
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close the idle connections, and every other one when it comes back."""
        with self._lock:
            self._closed, idle = True, self._idle
            self._idle = []
        for connection in idle:
            close_connection(connection)

    def _take(self) -> apsw.Connection:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            if self._idle:
                return self._idle.pop()
        return open_reader(self._path)

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < limits.READERS_KEPT_COUNT:
                self._idle.append(connection)
                return
        close_connection(connection)


def _common_pragmas(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON").fetchall()
    connection.execute("PRAGMA recursive_triggers = ON").fetchall()


def _uri(path: Path, options: str) -> str:
    return f"file:{quote(os.fsencode(path))}?{options}"


def _has_wal(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0
