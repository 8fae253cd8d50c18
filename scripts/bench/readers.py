"""Readers of a served session: event streams and long-polls that note when each event arrives. One thread, no library.

It parses no more than it must, so that what is measured is the server and not the readers.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

STAMP = re.compile(rb'"seq":(\d+),"time":"([^"]+)"')
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
WAIT_S = 30


@dataclass(slots=True)
class Reader:
    """One connection. `seen` has (seq, event's own time in Unix ms, arrival in Unix ms)."""

    connection: socket.socket
    is_poll: bool
    buffer: bytes = b""
    after: int = 0
    seen: list[tuple[int, float, float]] = field(default_factory=list)


class Readers:
    """Streams and long-polls after `after`; `read` serves all of them."""

    def __init__(self, url: str, token: str, *, streams: int, polls: int, after: int) -> None:
        self._host = urlsplit(url).netloc
        self._token = token
        self._selector = selectors.DefaultSelector()
        self.readers = [self._open(n >= streams, after) for n in range(streams + polls)]

    def read(self, until_s: float) -> None:
        """Read until the monotonic time `until_s`."""
        while (left_s := until_s - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                self._take(key.data)

    def close(self) -> None:
        """Close all connections."""
        for reader in self.readers:
            reader.connection.close()

    def _open(self, is_poll: bool, after: int) -> Reader:
        host, _, port = self._host.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=WAIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = Reader(connection, is_poll, after=after)
        self._ask(reader, f"/v1/journal?after={after}&wait={WAIT_S}" if is_poll else f"/v1/events?after={after}")
        self._selector.register(connection, selectors.EVENT_READ, reader)
        return reader

    def _ask(self, reader: Reader, path: str) -> None:
        head = f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        reader.connection.sendall(head.encode())

    def _take(self, reader: Reader) -> None:
        data = reader.connection.recv(1 << 18)
        now_ms = time.time() * 1000
        if not data:
            raise RuntimeError("the server closed a reader's connection")
        reader.buffer += data
        if reader.is_poll:
            self._take_page(reader, now_ms)
            return
        whole, found, rest = reader.buffer.rpartition(b"\n\n")
        if found:
            self._note(reader, whole, now_ms)
            reader.buffer = rest

    def _take_page(self, reader: Reader, now_ms: float) -> None:
        head, found, body = reader.buffer.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if not found or length is None or len(body) < int(length[1]):
            return
        self._note(reader, body, now_ms)
        reader.buffer = b""
        self._ask(reader, f"/v1/journal?after={reader.after}&wait={WAIT_S}")

    def _note(self, reader: Reader, text: bytes, now_ms: float) -> None:
        for seq, stamp in STAMP.findall(text):
            at_ms = datetime.fromisoformat(stamp.decode()).timestamp() * 1000
            reader.seen.append((int(seq), at_ms, now_ms))
            reader.after = int(seq)
