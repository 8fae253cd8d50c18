"""Reads pieces of bytes on a thread while those before them are used: SQLite works while a file is hashed and written.

The thread ends with the block. It knows nothing of what it reads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from aura import limits


@contextmanager
def read_ahead(pieces: Iterable[bytes], count: int = limits.READ_AHEAD_PIECES_COUNT) -> Iterator[Iterator[bytes]]:
    """Lend the same pieces, in order, of which up to `count` are read before they are asked for.

    What `pieces` raises is raised where the next piece is asked for.
    """
    reading = _Reading(pieces, count)
    try:
        yield reading.iterate()
    finally:
        reading.end()


class _Reading:
    def __init__(self, pieces: Iterable[bytes], count: int) -> None:
        self._pieces = pieces
        self._count = count
        self._ready: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._done = False
        self._wanted = True
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="aura-ahead", daemon=True)
        self._thread.start()

    def iterate(self) -> Iterator[bytes]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ready or self._done)
                if not self._ready:
                    break
                piece = self._ready.popleft()
                self._changed.notify()
            yield piece
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        with self._changed:
            self._wanted = False
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            for piece in self._pieces:
                if not self._offer(piece):
                    break
        except BaseException as error:  # noqa: BLE001 raised again where the piece is asked for
            self._error = error
        with self._changed:
            self._done = True
            self._changed.notify()

    def _offer(self, piece: bytes) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: len(self._ready) < self._count or not self._wanted)
            self._ready.append(piece)
            self._changed.notify()
            return self._wanted
