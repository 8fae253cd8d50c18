"""The ready file: how a launcher learns that a server is up, or why it is not (contract.md, `aura serve`)."""

from __future__ import annotations

from pathlib import Path

from aura import API_VERSION
from aura.errors import AuraError, StartupFailed
from aura.jsontypes import JsonValue
from aura.runtime.files import replace_file
from aura.wire import canonical

STARTUP_CODES = frozenset(
    (
        "unauthorized",
        "session_frozen",
        "session_locked",
        "not_found",
        "invalid_id",
        "resume_failed",
        "mcp_unavailable",
        "config_invalid",
        "launcher_lost",
        "startup_failed",
    )
)


class ReadyFile:
    """A file that appears whole, with mode 0600, or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def clear(self) -> None:
        """Remove a file that an earlier server left. Raises `StartupFailed` if it could not be written again."""
        try:
            self._path.unlink(missing_ok=True)
            probe = self._path.with_name(f".{self._path.name}.probe")
            probe.touch(mode=0o600)
            probe.unlink()
        except OSError as error:
            raise StartupFailed(
                f"the ready file {self._path} cannot be written: {error.strerror}",
                hint="Name a file in a directory that exists and is writable.",
            ) from error

    def announce(self, fields: dict[str, JsonValue]) -> None:
        """Say that the server is up. Raises `OSError`."""
        self._write({"api": API_VERSION, **fields})

    def report(self, error: AuraError) -> None:
        """Say why the server is not up. Raises `OSError`."""
        self._write(
            {
                "api": API_VERSION,
                "error": {
                    "code": error.code,
                    "message": error.message,
                    "retryable": error.retryable,
                    "details": dict(error.details),
                },
            }
        )

    def _write(self, fields: dict[str, JsonValue]) -> None:
        replace_file(self._path, (canonical.encode(fields), b"\n"), 0o600)


def as_startup_error(error: AuraError) -> AuraError:
    """Return `error` with a code that the contract has for start-up; everything else is `startup_failed`."""
    if error.code in STARTUP_CODES or error.code.startswith("provider_"):
        return error
    return StartupFailed(error.message, hint=error.hint, details=error.details)
