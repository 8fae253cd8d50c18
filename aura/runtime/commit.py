"""Which source commit this program is, for ServerInfo and the ready file: from a checkout's .git, without running
git.
"""

from __future__ import annotations

import re
from pathlib import Path

UNKNOWN = "unknown"
_SHA1 = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def find_commit(package: Path) -> str:
    """Return the commit that is checked out around `package`, or "unknown" for an installed wheel."""
    git = package.parent / ".git"
    head = _read(git / "HEAD")
    if _SHA1.fullmatch(head):
        return head
    ref = head.removeprefix("ref: ")
    loose = _read(git / ref) if ref != head else ""
    if _SHA1.fullmatch(loose):
        return loose
    for line in _read(git / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _SHA1.fullmatch(commit):
            return commit
    return UNKNOWN


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
