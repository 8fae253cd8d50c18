"""Stored sessions through the offline commands, `aura session … --json`: one subprocess, one JSON object."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TypeVar

from marshmallow import Schema

from aura_automation import _schemas
from aura_automation._decode import command_failure, excerpt, load, read_json
from aura_automation._limits import STORE_TIMEOUT_S
from aura_automation.aura import Aura
from aura_automation.codes import InvalidId
from aura_automation.errors import AutomationError, ContractDrift, ProgramFailed
from aura_automation.models import Exported, Forked, Frozen, Imported, SessionList, Summary

T = TypeVar("T")

_LIST = _schemas.SessionListSchema()
_SUMMARY = _schemas.SummarySchema()
_IMPORTED = _schemas.ImportedSchema()
_EXPORTED = _schemas.ExportedSchema()
_FORKED = _schemas.ForkedSchema()
_FROZEN = _schemas.FrozenSchema()


class Store:
    """Stored sessions. Every method is safe to repeat and to call from any thread; each starts one process.

    Every method raises the typed error of the command's code, `ProgramFailed` when the program could not run,
    did not say why it failed, or took longer than `timeout_s`, and `ContractDrift` when its answer does not
    fit the contract. `StoreUnavailable` is possible everywhere.
    """

    def __init__(self, aura: Aura, *, timeout_s: float = STORE_TIMEOUT_S) -> None:
        """The store of `aura`'s last config home. A command may take `timeout_s` (120 unless given)."""
        self._aura = aura
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"Store({self._aura!r})"

    def list(self) -> SessionList:
        """Return all sessions."""
        return self._run(_LIST, SessionList, "list")

    def show(self, session_id: str) -> Summary:
        """Return one session. Raises `NotFound`, `InvalidId`."""
        return self._run(_SUMMARY, Summary, "show", _id(session_id))

    def import_(self, file: str | os.PathLike[str], *, id: str | None = None, freeze: bool = False) -> Imported:
        """Store the session in `file`, under `id` or its own, and freeze it if asked.

        The same conversation again changes nothing. Raises `BadRequest` (no readable file), `InvalidSession`,
        `Exists` (another conversation has the id), `InvalidId`, `SessionLocked`.
        """
        words = ["import", _path(file)]
        words += [] if id is None else ["--id", _id(id)]
        words += ["--freeze"] if freeze else []
        return self._run(_IMPORTED, Imported, *words)

    def export(self, session_id: str, output: str | os.PathLike[str]) -> Exported:
        """Write the stored bytes to the file `output`, whose SHA-256 is then the revision.

        An identical file stays as it is. Raises `NotFound`, `InvalidId`, `Exists` (a different file),
        `BadRequest`.
        """
        return self._run(_EXPORTED, Exported, "export", _id(session_id), "--output", _path(output))

    def fork(self, parent: str, child: str, *, title: str | None = None, expect_revision: str | None = None) -> Forked:
        """Copy `parent` to the new session `child`; the parent is only read.

        The same fork again is returned as stored. Raises `NotFound`, `Exists`, `RevisionMismatch` (the parent
        is not at `expect_revision`), `InvalidId`.
        """
        words = ["fork", _id(parent), "--id", _id(child)]
        words += [] if title is None else ["--title", title]
        words += [] if expect_revision is None else ["--expect-revision", expect_revision]
        return self._run(_FORKED, Forked, *words)

    def freeze(self, session_id: str, *, expect_revision: str | None = None) -> Frozen:
        """Freeze a session, for ever. Again, it changes nothing.

        Raises `NotFound`, `RevisionMismatch`, `SessionLocked` (a server holds it), `InvalidId`.
        """
        words = ["freeze", _id(session_id)]
        words += [] if expect_revision is None else ["--expect-revision", expect_revision]
        return self._run(_FROZEN, Frozen, *words)

    def _run(self, schema: Schema, kind: type[T], *words: str) -> T:
        where = f"aura session {words[0]}"
        try:
            done = subprocess.run(
                self._aura.command("session", *words, "--json"),
                cwd=self._aura.cwd,
                env=self._aura.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"{where} took longer than {self._timeout_s:g} s and was ended"
            raise ProgramFailed(problem, details={"reason": "timeout"}) from None
        except (OSError, ValueError) as error:
            problem = f"{where} could not be started: {error}"
            raise ProgramFailed(problem, details={"reason": "not_started"}, hint="check binary and cwd") from error
        if done.returncode != 0:
            raise _failure(where, done.returncode, done.stderr)
        return load(schema, kind, read_json(done.stdout, where), where)


def _failure(where: str, exit_code: int, stderr: bytes) -> AutomationError:
    text = stderr.decode("utf-8", "replace").strip()
    for candidate in (text, text.rpartition("\n")[2]):  # a warning of the interpreter may come first
        try:
            document = read_json(candidate, where)
        except ContractDrift:
            continue
        if isinstance(document, dict) and "error" in document:
            return command_failure(document, f"{where} (stderr)")
    said = f": {excerpt(text)}" if text else ""
    return ProgramFailed(
        f"{where} ended with status {exit_code} and no error object{said}",
        details={"reason": "exited", "exit_code": exit_code},
    )


def _id(session_id: str) -> str:
    if not session_id or session_id.startswith("-") or "\0" in session_id:
        raise InvalidId(f"{session_id!r} is not a session id", hint="an id begins with a letter or a digit")
    return session_id


def _path(path: str | os.PathLike[str]) -> str:
    return str(Path(path).absolute())
