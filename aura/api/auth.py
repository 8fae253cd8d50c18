"""Bearer authentication (contract.md, HTTP API; interfaces.md section 7).

It knows one token and compares in constant time.
"""

from __future__ import annotations

import hashlib
import hmac

from aura.errors import Unauthorized


class BearerAuth:
    """Checks `Authorization` headers against one token, of which only the digest is kept."""

    def __init__(self, token: str) -> None:
        self._digest = hashlib.sha256(token.encode()).digest()

    def check(self, header: str | None) -> None:
        """Raise `Unauthorized` unless `header` is `Bearer <token>`; the scheme's case does not matter."""
        scheme, _, presented = (header or "").strip().partition(" ")
        # WSGI gives header bytes as latin-1 text, so this is exactly what the caller sent.
        digest = hashlib.sha256(presented.strip().encode("latin-1", "replace")).digest()
        if scheme.lower() != "bearer" or not hmac.compare_digest(digest, self._digest):
            raise Unauthorized(
                "the bearer token is wrong" if header else "the Authorization header is missing",
                hint="Send Authorization: Bearer with the token that the server was started with.",
            )
