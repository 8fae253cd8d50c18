"""A file system for SQLite that fails when told to, and one that forgets what was not synced at a power cut.

Both are one VFS over the real one, made the default of this process, so that the store under test needs no hook. Only
files whose names begin with `aura.db` in the armed directory are touched. Shared memory and its locks are not theirs:
apsw passes them to the real VFS, and a power cut loses both anyway. Nothing is really synced: the files are of use for
seconds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import apsw

Kind = Literal["io", "full"]
Mode = Literal["once", "from"]

# What a disk can refuse for want of room, and what it can refuse at all.
FULL_OPERATIONS = frozenset(("write", "truncate", "open"))
IO_ERRORS = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "size": apsw.SQLITE_IOERR_FSTAT,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "access": apsw.SQLITE_IOERR_ACCESS,
    "lock": apsw.SQLITE_IOERR_LOCK,
    "open": apsw.SQLITE_CANTOPEN,
}


@dataclass(slots=True)
class Fault:
    """Fail operation number `at` (from 1), or that one and all later ones. `hits` counts what was failed."""

    kind: Kind
    mode: Mode
    at: int
    seen: int = 0
    hits: int = 0

    def check(self, operation: str) -> None:
        """Count an operation; raise what SQLite is to be told when it is its turn."""
        if self.kind == "full" and operation not in FULL_OPERATIONS:
            return
        self.seen += 1
        if self.seen == self.at or (self.seen > self.at and self.mode == "from"):
            self.hits += 1
            raise self._error(operation)

    def _error(self, operation: str) -> Exception:
        if self.kind == "full":
            return apsw.FullError("injected")
        if operation == "open":
            return apsw.CantOpenError("injected")
        error = apsw.IOError("injected")
        error.extendedresult = IO_ERRORS[operation]
        return error


@dataclass(slots=True)
class Disk:
    """What would be left of each file after a power cut: what was synced, and some of what was written since.

    A directory entry is durable once the directory was synced. SQLite does that with the first sync of a journal or of
    a WAL, and with a deletion that asks for it.
    """

    durable: dict[str, bytearray] = field(default_factory=dict)
    pending: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)  # None: truncated to that size
    fresh: set[str] = field(default_factory=set)  # made since the directory was synced
    removed: dict[str, bytearray] = field(default_factory=dict)  # and deleted since then
    syncs: int = 0

    def adopt(self, directory: Path) -> None:
        """Take the files that are there for durable."""
        for path in directory.glob("aura.db*"):
            if not path.name.endswith("-shm"):
                self.durable[path.name] = bytearray(path.read_bytes())

    def open(self, name: str) -> None:
        """Note a file, which may be new."""
        if name not in self.durable:
            self.durable[name] = bytearray()
            self.fresh.add(name)

    def write(self, name: str, offset: int, data: bytes | None) -> None:
        """Note a write, or a truncation to `offset`."""
        self.pending.setdefault(name, []).append((offset, data))

    def sync(self, name: str) -> None:
        """Make what was written to one file durable, and the entries of all if it is a new journal or WAL."""
        self.syncs += 1
        apply(self.durable[name], self.pending.pop(name, []))
        if name in self.fresh and name.endswith(("-journal", "-wal")):
            self.sync_directory()

    def fail_sync(self, name: str) -> None:
        """Lose what was written to one file since its last sync, as a disk does that says so once."""
        self.syncs += 1
        self.pending.pop(name, None)

    def sync_directory(self) -> None:
        """Make what was made and deleted durable."""
        self.fresh.clear()
        self.removed.clear()

    def delete(self, name: str, sync_directory: bool) -> None:
        """Remove a file."""
        content = self.durable.pop(name, bytearray())
        self.pending.pop(name, None)
        if name not in self.fresh:
            self.removed[name] = content
        self.fresh.discard(name)
        if sync_directory:
            self.sync_directory()

    def cut(self, target: Path, chance: random.Random) -> None:
        """Write what is left into `target`: all that was synced, and of the rest what chance has kept."""
        target.mkdir()
        for name, old in self.removed.items():
            if chance.random() < 0.5:
                (target / name).write_bytes(old)
        for name, synced in self.durable.items():
            if name in self.fresh and chance.random() < 0.5:
                continue
            content = bytearray(synced)
            kept = chance.choice((0.0, 0.5, 0.9))
            apply(content, [tear(item, chance) for item in self.pending.get(name, []) if chance.random() < kept])
            (target / name).write_bytes(content)
        ballast = chance.choice((None, ".ballast", ".ballast.part"))
        if ballast is not None:  # made, and not synced: it can be short
            (target / ballast).write_bytes(bytes(chance.choice((0, 4096))))


def apply(content: bytearray, writes: list[tuple[int, bytes | None]]) -> None:
    """Apply writes to a file's content; a gap is filled with zeros."""
    for offset, data in writes:
        if data is None:
            del content[offset:]
            continue
        if offset > len(content):
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data


def tear(write: tuple[int, bytes | None], chance: random.Random, sector_bytes: int = 512) -> tuple[int, bytes | None]:
    """Return a write, or now and then only its first or its last sectors."""
    offset, data = write
    if data is None or len(data) <= sector_bytes or chance.random() < 0.7:
        return write
    middle = sector_bytes * chance.randrange(1, len(data) // sector_bytes + 1)
    return (offset, data[:middle]) if chance.random() < 0.5 else (offset + middle, data[middle:])


class FaultVfs(apsw.VFS):
    """The default VFS of this process from its making on. Without a fault and a disk it only passes on."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.disk: Disk | None = None
        self.cut_at_sync: int | None = None
        self.lose_at_sync: int | None = None
        self.is_cut = False
        self._directory = ""
        super().__init__("aura-fault", "unix", makedefault=True)

    @contextmanager
    def failing(self, directory: Path, fault: Fault) -> Iterator[Fault]:
        """Let operations on the store in `directory` fail."""
        self._directory, self.fault = f"{directory}/", fault
        try:
            yield fault
        finally:
            self.fault = None

    @contextmanager
    def forgetting(self, directory: Path, cut_at: int | None = None, lose_at: int | None = None) -> Iterator[Disk]:
        """Cut the power when the store in `directory` begins its sync number `cut_at`.

        Sync number `lose_at` fails once instead, and what it should have kept is lost for good.
        """
        disk = Disk()
        disk.adopt(directory)
        self._directory, self.disk, self.is_cut = f"{directory}/", disk, False
        self.cut_at_sync, self.lose_at_sync = cut_at, lose_at
        try:
            yield disk
        finally:
            self.disk, self.cut_at_sync, self.lose_at_sync = None, None, None

    def check(self, operation: str, path: str) -> bool:
        """Tell whether a file is watched, after the fault had its say."""
        if not path.startswith(f"{self._directory}aura.db"):
            return False
        if self.is_cut and self.disk is not None:
            raise apsw.IOError("the power is gone")
        if self.fault is not None:
            self.fault.check(operation)
        return self.disk is not None

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        watched = self.check("open", path)
        file = _File(self, name, path, flags)
        if watched and self.disk is not None:
            self.disk.open(os.path.basename(path))
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        watched = self.check("delete", filename)
        super().xDelete(filename, syncdir)
        if watched and self.disk is not None:
            self.disk.delete(os.path.basename(filename), syncdir)

    def xAccess(self, pathname: str, flags: int) -> bool:
        self.check("access", pathname)
        return super().xAccess(pathname, flags)

    def sync(self, disk: Disk, name: str) -> None:
        """Sync a file of the simulated disk; this may be the moment of the cut or of the loss."""
        number = disk.syncs + 1
        if number == self.cut_at_sync:
            self.is_cut = True
            raise apsw.IOError("the power is gone")
        if number == self.lose_at_sync:
            disk.fail_sync(name)
            error = apsw.IOError("injected")
            error.extendedresult = IO_ERRORS["sync"]
            raise error
        disk.sync(name)


class _File(apsw.VFSFile):
    def __init__(self, vfs: FaultVfs, name: str | apsw.URIFilename | None, path: str, flags: list[int]) -> None:
        self._vfs = vfs
        self._path = path
        super().__init__("unix", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._vfs.check("read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._vfs.check("write", self._path):
            self._disk.write(self._name, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        if self._vfs.check("truncate", self._path):
            self._disk.write(self._name, newsize, None)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if self._vfs.check("sync", self._path):
            self._vfs.sync(self._disk, self._name)

    def xFileSize(self) -> int:
        self._vfs.check("size", self._path)
        return super().xFileSize()

    def xLock(self, level: int) -> None:
        self._vfs.check("lock", self._path)
        try:
            super().xLock(level)
        except apsw.IOError as error:
            # A read-only connection asks for it at its end, in vain. Busy means the same to SQLite, and raises nothing.
            raise apsw.BusyError("a read-only file cannot be locked") from error

    @property
    def _disk(self) -> Disk:
        assert self._vfs.disk is not None
        return self._vfs.disk

    @property
    def _name(self) -> str:
        return os.path.basename(self._path)
