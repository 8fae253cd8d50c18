"""Cuts texts that are too large to keep: in the middle, with a marker that says how much is missing."""

from __future__ import annotations


def cut_middle(text: str, max_bytes: int) -> str:
    """Return `text`, or its beginning and its end with a marker in between: about `max_bytes` of UTF-8 in all."""
    if len(text) <= max_bytes // 4:  # no character has more than four bytes
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text
    half = max_bytes // 2
    head, tail = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    return f"{head}\n[… {len(data) - 2 * half} bytes left out …]\n{tail}"
