"""Where the server is. A restarted server may have another port: its ready file says so. Nothing is sent from
here.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from aura_automation._decode import read_ready
from aura_automation.codes import BadRequest
from aura_automation.errors import AutomationError


def checked_url(url: str) -> str:
    """Return `url` without a trailing slash. Raises `BadRequest` for one that is not
    http(s)://host[:port][/prefix].
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None:
        raise BadRequest("not the address of a server", hint="give a URL like http://127.0.0.1:8123")
    return url.rstrip("/")


class Endpoint:
    """The server's present URL. Any thread may use it: the URL is replaced whole."""

    def __init__(self, url: str, *, ready_file: Path | None = None, session_id: str | None = None) -> None:
        """`BadRequest` for a bad URL. With `ready_file` and `session_id`, `refresh` follows restarts."""
        self.url = checked_url(url)
        self._ready_file = ready_file
        self._session_id = session_id

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    def refresh(self) -> None:
        """Take the URL of the ready file, if there is a good one of the same session; else keep the present
        one.
        """
        if self._ready_file is None:
            return
        try:
            ready = read_ready(self._ready_file.read_bytes(), str(self._ready_file))
            if ready.session_id == self._session_id:
                self.url = checked_url(ready.url)
        except (OSError, AutomationError):
            return  # no server now; the caller reports that it could not be reached
