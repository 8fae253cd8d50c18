"""Finds and reads configuration files. It knows where they lie and how large they may be, not what is in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from aura import limits
from aura.errors import ConfigInvalid

YAML_SUFFIXES = (".yaml", ".yml")
MARKDOWN_SUFFIXES = (".md",)
_EXAMPLE = ".example."


def list_files(home: Path, kind: str, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of `<home>/config/<kind>` and the directories below it, in the order of their paths.

    Left out are names that hold `.example.` and hidden ones. Symbolic links to files are followed, links to
    directories below `kind` are not.

    Raises `ConfigInvalid` when a directory cannot be listed or holds far too many files.
    """
    found = []
    for path in _walk(home / "config" / kind):
        if path.suffix in suffixes and _EXAMPLE not in path.name:
            found.append(path)
        if len(found) > limits.CONFIG_FILES_MAX_COUNT:
            raise ConfigInvalid(f"{home}/config/{kind} holds more than {limits.CONFIG_FILES_MAX_COUNT} files")
    return sorted(found)


def read_text(path: Path) -> str:
    """Return the text of a configuration file, with line ends as `\\n` and without a byte order mark.

    Raises `ConfigInvalid` when it cannot be read, is not a regular file, is larger than
    `limits.CONFIG_FILE_MAX_BYTES`, or is not UTF-8.
    """
    try:
        data = _read_bytes(path)
    except OSError as error:
        raise ConfigInvalid(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > limits.CONFIG_FILE_MAX_BYTES:
        raise ConfigInvalid(
            f"{path}: is larger than {limits.CONFIG_FILE_MAX_BYTES} bytes", hint="Split it into several files."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigInvalid(
            f"{path}:{line}: byte {error.start} is not UTF-8", hint="Save the file as UTF-8."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_bytes(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):  # opening a named pipe would wait for ever
        raise ConfigInvalid(f"{path}: is not a regular file")
    with path.open("rb") as file:
        return file.read(limits.CONFIG_FILE_MAX_BYTES + 1)


def _walk(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if not name.startswith("."):
                yield Path(folder) / name


def _refuse(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        return
    raise ConfigInvalid(f"{error.filename}: cannot be listed: {error.strerror}") from error
