"""Options that commands about journals and evidence share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_SHA256_BYTES = 32


@dataclass(frozen=True, slots=True)
class Noted:
    """A hash that was noted earlier, and of which event; None when that was not noted."""

    sha256: bytes
    seq: int | None


class NotedHash(click.ParamType[Noted]):
    """Reads HASH or HASH@SEQ, as `journal verify` prints it."""

    name = "hash"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Noted:
        """Return the hash and the seq."""
        if isinstance(value, Noted):
            return value
        digits, at, seq = str(value).partition("@")
        try:
            sha256 = bytes.fromhex(digits)
        except ValueError:
            sha256 = b""
        if len(sha256) != _SHA256_BYTES or (at and not (seq.isascii() and seq.isdigit() and len(seq) < 19)):
            self.fail(f"{str(value)[:120]!r} is not HASH or HASH@SEQ: 64 hex digits, and the event's seq", param, ctx)
        return Noted(sha256, int(seq) if at else None)


def expected_option(command: F) -> F:
    """Add `--expect` to a command, as `noted`."""
    return click.option(
        "--expect",
        "noted",
        metavar="HASH[@SEQ]",
        type=NotedHash(),
        help="A head that was noted earlier: it must be the hash of that event, or of any one.",
    )(command)
