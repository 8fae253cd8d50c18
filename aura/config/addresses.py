"""Checks HTTP addresses that somebody configured. It contacts none of them and never shows one."""

from __future__ import annotations

from urllib.parse import urlsplit


def find_address_problem(text: str, *, password_key: str = "token", query: bool = False) -> str | None:
    """Say what is wrong with an address, without showing it: it may hold a password. None when nothing is.

    A user name or password belongs into `password_key`. A query is taken only with `query`.
    """
    if not text.isascii() or not text.isprintable() or " " in text:
        return "the address holds characters that an address cannot hold"
    try:
        parts = urlsplit(text)
        port_ok = parts.port != 0
    except ValueError:
        return "the address has a bad host or port"
    if parts.scheme not in ("http", "https"):
        return "the address begins with neither http:// nor https://"
    if not parts.hostname or not port_ok:
        return "the address has a bad host or port"
    if parts.username is not None or parts.password is not None:
        return f"the address holds a user name or password, which belongs into the key {password_key}"
    if "#" in text:
        return "the address holds a fragment" if query else "the address holds a query or fragment"
    if "?" in text and not query:
        return "the address holds a query or fragment"
    return None
