"""What went wrong with an MCP server, in words that hold no secret."""

from __future__ import annotations

from collections.abc import Iterable

from aura import limits
from aura.config.spec import Secret


class McpFailure(Exception):
    """A server could not be connected, or a call of it failed; the text says why, without a secret."""


class Redactor:
    """Takes secrets out of text that others wrote: of what a server answers or writes to standard error."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        values = {secret.reveal() for secret in secrets}
        # The longest first: one secret may hold another.
        self._values = sorted((value for value in values if len(value) >= limits.MCP_SECRET_MIN_CHARS), key=len)[::-1]

    def clean(self, text: str) -> str:
        """Return `text` on one line, without secrets, and at most `limits.MESSAGE_EXCERPT_BYTES` characters long."""
        for value in self._values:
            text = text.replace(value, "[…]")
        return " ".join(text.split())[: limits.MESSAGE_EXCERPT_BYTES]
