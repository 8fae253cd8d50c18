"""What child processes may see of this process's environment: everything but secrets (contract.md, Serve).

Removing a variable from `os.environ` is not enough: a child can read /proc/<parent>/environ, which shows the block that
the kernel laid out at start. `erase_from_environ` overwrites that block too.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

_SECRET_NAME = re.compile(r"AURA_SERVE_TOKEN|AURA_API_KEY|AURA_PROVIDERS_.*_TOKEN", re.DOTALL)


def child_environment(secrets: Collection[str] = ()) -> dict[str, str]:
    """Return a copy of `os.environ` without our own secrets and without any variable whose value is one of `secrets`.

    `secrets` are the configured provider tokens; empty ones are ignored.
    """
    values = {secret for secret in secrets if secret}
    return {
        name: value for name, value in os.environ.items() if not _SECRET_NAME.fullmatch(name) and value not in values
    }


def erase_from_environ(name: str) -> str | None:
    """Make sure that neither this process nor /proc/self/environ holds the variable any more; return what it was.

    Every copy of the string is overwritten in place: the kernel's block and the one the C library may have made. To be
    called at start, before any child and any thread that reads the environment in C.
    """
    value = os.environ.get(name)
    prefix = os.fsencode(name) + b"="
    for address in [*_strings_of_block(), *_strings_of_library()]:
        text = ctypes.string_at(address)
        if text.startswith(prefix):
            ctypes.memset(address + len(prefix), 0, len(text) - len(prefix))
    os.environ.pop(name, None)
    return value


def _strings_of_block() -> Iterator[int]:
    """Yield the addresses of the strings between env_start and env_end, fields 50 and 51 of /proc/self/stat."""
    fields = Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    address, end = int(fields[47]), int(fields[48])
    while 0 < address < end:
        yield address
        address += len(ctypes.string_at(address)) + 1


def _strings_of_library() -> Iterator[int]:
    """Yield the addresses of the strings that the C library's `environ` points to."""
    pointers = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    if ctypes.cast(pointers, ctypes.c_void_p).value is None:
        return
    index = 0
    while (address := pointers[index]) is not None:
        yield int(address)
        index += 1
