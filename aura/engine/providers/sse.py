"""Server-sent events as chat completion servers write them: bytes in, frames out.

The lines are split here because the HTTP library's own `iter_lines` also breaks at U+2028 and other characters that
stand unescaped in JSON strings, and because the SDK's chunk objects cost twice the CPU. What a frame means is not
decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from aura import limits


class LineTooLong(ValueError):
    """The server wrote more than `limits.PROVIDER_LINE_BYTES` without a line end."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event: its name, "" for the usual unnamed one, and its data."""

    event: str
    data: str


class SseDecoder:
    """Turns chunks of bytes, cut anywhere, into frames. One stream, one decoder, one thread."""

    def __init__(self, line_bytes: int = limits.PROVIDER_LINE_BYTES) -> None:
        self._line_bytes = line_bytes
        self._rest = b""
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the frames that `chunk` completes. Invalid UTF-8 becomes U+FFFD. Raises `LineTooLong`."""
        lines = (self._rest + chunk).splitlines(keepends=True)
        # A final "\r" may be half of "\r\n": it waits for the next chunk.
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        if len(self._rest) > self._line_bytes:
            raise LineTooLong(f"a line of the stream is longer than {self._line_bytes} bytes")
        frames = (self._line(line.rstrip(b"\r\n").decode("utf-8", "replace")) for line in lines)
        return [frame for frame in frames if frame is not None]

    def _line(self, line: str) -> Frame | None:
        if not line:
            return self._dispatch()
        name, _, value = line.removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "error":  # llama-server's own way to say it
            self._event = "error"
            self._data.append(value)
        return None

    def _dispatch(self) -> Frame | None:
        frame = Frame(self._event, "\n".join(self._data)) if self._data else None
        self._event = ""
        self._data = []
        return frame
