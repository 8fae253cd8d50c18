"""Knows which kinds of configuration there are, and says what it thinks of those that this version does not read.

A kind that can only take rights away from an agent must not be ignored silently, so its files are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aura.config.files import MARKDOWN_SUFFIXES, YAML_SUFFIXES, list_files
from aura.errors import ConfigInvalid

KINDS_READ = ("agents", "providers", "mcp", "features", "sandbox", "commands")
_LATER: Mapping[str, str] = {
    "modes": "modes",
    "prompts": "system prompts",
    "lsp": "language servers",
    "tasks": "tasks",
    "rules": "stored approvals",
}
_LATER_RESTRICTING: Mapping[str, str] = {"hooks": "hooks", "tools": "tool overrides"}


def read_kind_notices(home: Path) -> list[str]:
    """Return a notice for every folder of `<home>/config` whose files are not read.

    Raises `ConfigInvalid` for files of a kind that would restrict agents if it were supported.
    """
    folder = home / "config"
    try:
        kinds = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigInvalid(f"{folder}: cannot be listed: {error.strerror}") from error
    return [notice for kind in kinds if kind not in KINDS_READ for notice in _notices(home, kind)]


def _notices(home: Path, kind: str) -> list[str]:
    files = list_files(home, kind, YAML_SUFFIXES + MARKDOWN_SUFFIXES)
    if not files:
        return []
    folder = home / "config" / kind
    if kind in _LATER_RESTRICTING:
        what = _LATER_RESTRICTING[kind]
        raise ConfigInvalid(f"{files[0]}: {what} are not supported yet", hint=f"Move the files out of {folder}.")
    if kind in _LATER:
        return [f"{folder}: not read, {_LATER[kind]} are not supported yet"]
    from difflib import get_close_matches  # rarely needed, and slow to import

    close = get_close_matches(kind, KINDS_READ, n=1)
    guess = f"; did you mean {close[0]}?" if close else ""
    return [f"{folder}: not read, the kinds are {', '.join(KINDS_READ)}{guess}"]
