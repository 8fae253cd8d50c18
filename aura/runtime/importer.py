"""Imports conversations, one or many, ours or foreign: the verb behind `aura session import` (contract.md;
interfaces.md 4, 9 and 11; docs/formats.md).

One bad input stops no other. One conversation is in memory at a time. It prints nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from aura import ids, limits
from aura.clock import Clock, SystemClock
from aura.conversation import Conversation, Parent, Summary
from aura.errors import AuraError, BadRequest, Exists, InvalidId, StoreUnavailable
from aura.runtime import inputs
from aura.runtime.inputs import Input, Piece
from aura.runtime.listing import reachable
from aura.store.open import open_store
from aura.store.protocol import Imported, Store
from aura.wire import document
from aura.wire.formats import claude_code, codex, openai
from aura.wire.formats.detect import Format
from aura.wire.formats.drafts import Foreign

OnConflict = Literal["fail", "skip", "fork"]

_ID_MAX_CHARS = 128
_DIGEST_CHARS = 12


@dataclass(frozen=True, slots=True)
class Done:
    """What one import did. `source_sha256` is the digest of the input, or of its line. `conflict` says how another
    conversation under the id was met, None where there was none."""

    session: Summary
    created: bool
    frozen_now: bool
    source_sha256: str
    format: Format
    warnings: tuple[str, ...] = ()
    conflict: Literal["skipped", "forked"] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the import of one conversation ended: `done`, or `error`. `line` is set for one of several in a file, and
    `bytes_count` is its size."""

    input: str
    line: int | None
    done: Done | None = None
    error: AuraError | None = None
    bytes_count: int = 0


class Importer:
    """Imports into one store directory. One thread at a time; it blocks. Close it."""

    def __init__(
        self,
        directory: Path,
        *,
        format: Format | None = None,
        session_id: str | None = None,
        freeze: bool = False,
        on_conflict: OnConflict = "fail",
        clock: Clock | None = None,
    ) -> None:
        """Take what holds for all inputs. `format` is found out when it is None; `session_id` is for a single one.

        Nothing is made in `directory` before the first conversation is stored. Raises `InvalidId`.
        """
        if session_id is not None:
            ids.check_session_id(session_id)
        self._directory = directory
        self._format = format
        self._session_id = session_id
        self._freeze = freeze
        self._on_conflict: OnConflict = on_conflict
        self._clock = clock or SystemClock()
        self._store: Store | None = None

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def import_input(self, source: Input) -> Iterator[Outcome]:
        """Store all conversations of one file, and yield how each went, in order.

        Raises `StoreUnavailable`, after which no import can succeed; every other failure is an outcome.
        """
        try:
            for piece in inputs.read_pieces(source.name, self._format):
                if isinstance(piece, Piece):
                    yield self._import_piece(source.name, piece)
                else:
                    yield Outcome(source.name, piece.line, error=piece.error)
        except StoreUnavailable:
            raise
        except AuraError as error:
            yield Outcome(source.name, None, error=error)

    def _import_piece(self, name: str, piece: Piece) -> Outcome:
        if self._session_id is not None and piece.line is not None:
            error = BadRequest("--id names one session, and there are several", hint="Import them without --id.")
            return Outcome(name, piece.line, error=error)
        try:
            return Outcome(name, piece.line, done=self._store_piece(piece), bytes_count=len(piece.data))
        except StoreUnavailable:
            raise
        except AuraError as error:
            return Outcome(name, piece.line, error=error)

    def _store_piece(self, piece: Piece) -> Done:
        foreign = self._convert(piece)
        at_ms = self._clock.now_ms()
        store = self._open()
        conflict: Literal["skipped", "forked"] | None = None
        try:
            imported = store.import_session(foreign.conversation, freeze=self._freeze, at_ms=at_ms)
        except Exists:
            if self._on_conflict == "fail":
                raise
            if self._on_conflict == "skip":
                conflict = "skipped"
                imported = Imported(store.get_session(foreign.conversation.header.id), created=False, frozen_now=False)
            else:
                conflict = "forked"
                beside = _beside(store, foreign.conversation)
                imported = store.import_session(beside, freeze=self._freeze, at_ms=at_ms)
        return Done(
            session=imported.session,
            created=imported.created,
            frozen_now=imported.frozen_now,
            source_sha256=hashlib.sha256(piece.data).hexdigest(),
            format=piece.format,
            warnings=(*foreign.warnings, *_warn_of_large(foreign.conversation)),
            conflict=conflict,
        )

    def _convert(self, piece: Piece) -> Foreign:
        wanted = self._session_id
        match piece.format:
            case "openai" if piece.value is None:
                return openai.read_lines(piece.data, id=wanted)
            case "openai":
                return openai.read_conversation(piece.value, piece.data, id=wanted)
            case "claude-code":
                return claude_code.read_session(piece.data, id=wanted)
            case "codex":
                return codex.read_session(piece.data, id=wanted)
        try:
            return Foreign(document.read_document(piece.value, id=wanted), ())
        except InvalidId as error:
            raise InvalidId(f"the document's id: {error.message}", hint="Give it one with --id.") from error

    def _open(self) -> Store:
        if self._store is None:
            with reachable(self._directory):
                self._store = open_store(self._directory)
        return self._store


def _warn_of_large(conversation: Conversation) -> tuple[str, ...]:
    large = sum(len(body) > limits.INLINE_MAX_BYTES for body in conversation.messages)
    if not large:
        return ()
    return (f"{large} of its messages have over {limits.INLINE_MAX_BYTES} bytes: they are stored whole",)


def _beside(store: Store, conversation: Conversation) -> Conversation:
    """Return the conversation under an id of its own, which its content decides.

    Its parent is the session that has its id, where it goes on from that one's messages; else what it was.
    """
    header = conversation.header
    digest = hashlib.sha256()
    for piece in document.iterate_document(conversation.messages, header):
        digest.update(piece)
    kept = header.id[: _ID_MAX_CHARS - _DIGEST_CHARS - 1]
    stored = store.load_conversation(header.id)
    before = stored.conversation.messages
    goes_on = conversation.messages[: len(before)] == before and stored.conversation.header.system == header.system
    parent = Parent(header.id, stored.revision) if goes_on else header.parent
    own_id = f"{kept}-{digest.hexdigest()[:_DIGEST_CHARS]}"
    return Conversation(replace(header, id=own_id, parent=parent), conversation.messages)


__all__ = ["Done", "Format", "Importer", "Input", "OnConflict", "Outcome"]
