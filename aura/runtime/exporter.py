"""Exports many sessions, or in another program's format: the verbs behind `aura session export` beside the contract's
own, which is in `library.py` (docs/formats.md).

A file is complete or not there, and never written over. One session that fails stops no other. It prints nothing.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aura import ids
from aura.conversation import Summary
from aura.errors import AuraError, BadRequest, Exists, NotFound
from aura.runtime import files
from aura.runtime.library import has_content, summarize, verified_bytes
from aura.runtime.listing import reachable
from aura.store.open import find_store
from aura.store.protocol import SessionFilter, Store
from aura.wire import canonical, document
from aura.wire.formats import claude_code_export, codex_export, markdown, openai

ExportFormat = Literal["aura", "openai", "claude-code", "codex", "markdown"]
SUFFIXES: dict[ExportFormat, str] = {
    "aura": ".json",
    "openai": ".json",
    "claude-code": ".jsonl",
    "codex": ".jsonl",
    "markdown": ".md",
}
_ONE_EACH: frozenset[ExportFormat] = frozenset(("claude-code", "codex"))


@dataclass(frozen=True, slots=True)
class Written:
    """What one export did. `sha256` is of the session's own bytes in the file. `left_out` counts its messages that
    have no place in the format."""

    session: Summary
    path: str
    sha256: str
    written: bool
    left_out: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the export of one session ended: `done`, or `error`."""

    session_id: str
    done: Written | None = None
    error: AuraError | None = None


@dataclass(frozen=True, slots=True)
class _Rendered:
    session: Summary
    pieces: Iterable[bytes]
    sha256: str
    left_out: int


class Exporter:
    """Exports from one store directory. One thread at a time; it blocks. Close it."""

    def __init__(self, directory: Path, *, format: ExportFormat = "aura") -> None:
        """Look at `directory` (`<write home>/sessions`), which need not exist. Raises `StoreUnavailable`."""
        self._format: ExportFormat = format
        with reachable(directory):
            self._store: Store | None = find_store(directory)

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def all_ids(self) -> Sequence[str]:
        """Return the ids of all sessions, the most recently updated first."""
        return [item.id for item in self._store.list_sessions(SessionFilter()).items] if self._store else []

    def to_directory(self, session_ids: Iterable[str], directory: Path) -> Iterator[Outcome]:
        """Write each session to a file of its own, `<id>` and the format's ending, in `directory`, which is made.

        Yields how each went. Raises `BadRequest` when the directory cannot be made.
        """
        try:
            directory.mkdir(exist_ok=True)
        except OSError as error:
            raise files.unwritable(directory, error) from error
        for session_id in session_ids:
            rendered = self._render_or_fail(session_id, None)
            if isinstance(rendered, Outcome):
                yield rendered
                continue
            try:
                done = _to_file(rendered, directory.absolute() / f"{session_id}{SUFFIXES[self._format]}")
                yield Outcome(session_id, done)
            except AuraError as error:
                yield Outcome(session_id, error=error)

    def to_stream(
        self, session_ids: Sequence[str], write: Callable[[bytes], object], revision: str | None = None
    ) -> Iterator[Outcome]:
        """Give each session to `write`: as a line, or a whole text. Yields how each went.

        Raises `BadRequest` for several sessions in a format of one per file, and what `write` raises.
        """
        self._check_count(session_ids)
        first = True
        for session_id in session_ids:
            rendered = self._render_or_fail(session_id, revision)
            if isinstance(rendered, Outcome):
                yield rendered
                continue
            if not first and self._format == "markdown":
                write(b"\n")
            first = False
            for piece in rendered.pieces:
                write(piece)
            if self._format == "aura":
                write(b"\n")
            yield Outcome(session_id, _written(rendered, files.STANDARD_STREAM, written=True))

    def to_file(self, session_ids: Sequence[str], output: str, revision: str | None = None) -> list[Outcome]:
        """Write all sessions to one file, a line or a text each, and return how each went.

        Raises `BadRequest` for a place that cannot be written, and `Exists` when other content is there.
        """
        self._check_count(session_ids)
        if not output or output.endswith("/"):
            raise BadRequest(f"{output!r} is not a file name", hint="Name a file, or - for standard output.")
        path = Path(output).absolute()
        outcomes: list[Outcome] = []
        sha = hashlib.sha256()

        def pieces() -> Iterator[bytes]:
            written: list[bytes] = []
            for outcome in self.to_stream(session_ids, written.append, revision):
                outcomes.append(outcome)
                for piece in written:
                    sha.update(piece)
                    yield piece
                written.clear()

        written = _create(path, pieces(), sha.hexdigest)
        return [_placed(outcome, str(path), written) for outcome in outcomes]

    def _check_count(self, session_ids: Sequence[str]) -> None:
        if len(session_ids) > 1 and self._format in _ONE_EACH:
            raise BadRequest(
                f"a {self._format} file holds one session", hint="Name a directory that ends in /, or one session."
            )

    def _render_or_fail(self, session_id: str, revision: str | None) -> _Rendered | Outcome:
        try:
            return self._render(session_id, revision)
        except AuraError as error:
            return Outcome(session_id, error=error)

    def _render(self, session_id: str, revision: str | None) -> _Rendered:
        ids.check_session_id(session_id)
        if self._store is None:
            raise NotFound(f"there is no session {session_id}: the store is empty", hint="Import one first.")
        session = summarize(self._store, session_id, ids.check_revision_prefix(revision))
        if self._format == "aura":
            deque(verified_bytes(self._store, session), maxlen=0)
            return _Rendered(session, verified_bytes(self._store, session), session.revision, 0)
        text, left_out = self._convert(session)
        return _Rendered(session, (text,), hashlib.sha256(text).hexdigest(), left_out)

    def _convert(self, session: Summary) -> tuple[bytes, int]:
        assert self._store is not None, "a session was found in it"
        stored = self._store.load_conversation(session.id, session.revision)
        header, messages = stored.conversation.header, document.read_messages(stored.conversation.messages)
        match self._format:
            case "openai":
                chat = openai.write_conversation(header, messages)
                return canonical.encode(chat.fields) + b"\n", chat.left_out
            case "markdown":
                shown = markdown.write_transcript(header, messages)
                return canonical.encode_text(shown.text), shown.left_out
            case "codex":
                lines = codex_export.write_session(header, messages)
            case _:
                lines = claude_code_export.write_session(header, messages)
        return b"".join(line + b"\n" for line in lines.lines), lines.left_out


def _written(rendered: _Rendered, path: str, *, written: bool) -> Written:
    return Written(rendered.session, path, rendered.sha256, written, rendered.left_out)


def _placed(outcome: Outcome, path: str, written: bool) -> Outcome:
    done = outcome.done
    if done is None:
        return outcome
    return Outcome(outcome.session_id, Written(done.session, path, done.sha256, written, done.left_out))


def _to_file(rendered: _Rendered, path: Path) -> Written:
    sha = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for piece in rendered.pieces:
            sha.update(piece)
            yield piece

    return _written(rendered, str(path), written=_create(path, hashed(), sha.hexdigest))


def _create(path: Path, pieces: Iterable[bytes], sha256: Callable[[], str]) -> bool:
    """Make the file, or find it there with the same content. `sha256` is known once `pieces` has ended."""
    try:
        files.create_file(path, pieces)
        return True
    except FileExistsError:
        if has_content(path, sha256()):
            return False
        raise Exists(f"{path} exists and differs", hint="Name another file, or move that one away.") from None
    except OSError as error:
        raise files.unwritable(path, error) from error


__all__ = ["SUFFIXES", "ExportFormat", "Exporter", "Outcome", "Written"]
