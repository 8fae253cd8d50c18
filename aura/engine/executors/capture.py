"""Keeps the beginning and the end of a stream of bytes in bounded memory, and all of it in a bounded file.

It knows nothing of processes or lines. A `Capture` belongs to one thread.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from aura import limits


@dataclass(frozen=True, slots=True)
class Captured:
    """What was kept. `left_out_bytes` were between `head` and `tail`; `spill` is the file that has them, if any."""

    head: bytes
    tail: bytes = b""
    left_out_bytes: int = 0
    spill: Path | None = None


class Capture:
    """Takes chunks; holds at most `cap_bytes` of them, half from the beginning and half from the end."""

    def __init__(self, cap_bytes: int, spill_dir: Path | None = None, name: str = "output") -> None:
        self._head_bytes = cap_bytes // 2
        self._tail_bytes = cap_bytes - self._head_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._total_bytes = 0
        self._spill = Spill(spill_dir, name) if spill_dir is not None else None

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes of the stream."""
        kept_whole = self._total_bytes <= self._head_bytes + self._tail_bytes
        self._total_bytes += len(chunk)
        if self._spill is not None and self._total_bytes > self._head_bytes + self._tail_bytes:
            if kept_whole:
                self._spill.write(bytes(self._head + self._tail))
            self._spill.write(chunk)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        excess = len(self._tail) - self._tail_bytes
        if excess > 0:
            del self._tail[:excess]

    def finish(self) -> Captured:
        """Close the file and return what was kept. Nothing may be fed afterwards."""
        spill = self._spill.close() if self._spill is not None else None
        left_out_bytes = self._total_bytes - len(self._head) - len(self._tail)
        return Captured(bytes(self._head), bytes(self._tail), left_out_bytes, spill)


class Spill:
    """A file of its own name in a directory that is made when needed; at most `limits.SPILL_MAX_BYTES` long.

    A file that cannot be written (a full disk) is given up silently towards the command: it is a convenience, and
    `close` then returns None, so that nobody is pointed to it.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        self._descriptor: int | None = None
        self._path: Path | None = None
        self._room_bytes = limits.SPILL_MAX_BYTES
        self._broken = False

    def write(self, chunk: bytes) -> None:
        """Append as much of `chunk` as there is room for."""
        if self._broken or not self._room_bytes:
            return
        try:
            if self._descriptor is None:
                self._open()
            self._write_all(chunk[: self._room_bytes])
        except OSError:
            self._broken = True

    def close(self) -> Path | None:
        """Close the file; return its path if it is whole up to the bound, else remove it and return None."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._broken and self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None
        return self._path

    def _open(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor, path = tempfile.mkstemp(prefix=f"{self._name}-", suffix=".txt", dir=self._directory)
        self._path = Path(path)

    def _write_all(self, chunk: bytes) -> None:
        if self._descriptor is None:
            return
        self._room_bytes -= len(chunk)
        while chunk:
            chunk = chunk[os.write(self._descriptor, chunk) :]
