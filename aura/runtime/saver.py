"""Turns a live conversation into checkpoints that cost only what is new (DESIGN.md section 4, Revisions).

It keeps the hash state of what is committed, and moves it on only after a commit. It writes nothing: the recorder does.
One thread at a time: the run thread while a run is live, the host's otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aura.clock import format_time
from aura.conversation import Header, count_non_system
from aura.engine.history import History
from aura.events import Reason, SessionPersisted
from aura.store.protocol import Checkpoint, NewMessage, StoredConversation
from aura.wire import document


@dataclass(frozen=True, slots=True)
class Save:
    """A save that may be committed: the event that reports it, and the checkpoint unless the content is stored."""

    event: SessionPersisted
    checkpoint: Checkpoint | None
    hasher: document.Hasher
    header: Header
    cuts_count: int


class Saver:
    """What is committed of one session. `prepare` never changes it, `adopt` does."""

    def __init__(self, stored: StoredConversation) -> None:
        self._hasher = document.Hasher()
        self._hasher.add(stored.conversation.messages)
        self._header = stored.conversation.header
        messages = document.read_messages(stored.conversation.messages)
        self._messages = count_non_system(messages)
        self._revision = stored.revision
        self._cuts_count = 0
        self.history = History(
            messages,
            system=self._header.system,
            title=self._header.title,
            meta=self._header.meta,
            todos=self._header.todos,
        )

    @property
    def revision(self) -> str:
        """The revision that is committed."""
        return self._revision

    @property
    def messages(self) -> int:
        """How many non-system messages are committed."""
        return self._messages

    def prepare(self, reason: Reason, now_ms: int) -> Save:
        """Return the save of the conversation as it is now. `changed` is False when only its date would change."""
        history = self.history
        cuts_count = len(history.cuts)
        keep = min((self._hasher.count, *history.cuts[self._cuts_count :]))
        dropped = keep < self._hasher.count
        fresh = history.since(keep)
        header = replace(
            self._header,
            title=history.title,
            system=history.system,
            meta=dict(history.meta),
            todos=history.todos,
        )
        if not fresh and not dropped and document.same_content(header, self._header):
            event = SessionPersisted(revision=self._revision, messages=self._messages, reason=reason, changed=False)
            return Save(event, None, self._hasher, self._header, cuts_count)
        header = replace(header, updated_at=format_time(now_ms))
        bodies = tuple(NewMessage(document.encode_message(message), message.role) for message in fresh)
        hasher = self._hash_first(keep) if dropped else self._hasher.copy()
        hasher.add(item.body for item in bodies)
        tail = document.encode_tail(header)
        revision = hasher.revision(header.system, tail)
        before = count_non_system(history.messages[:keep]) if dropped else self._messages
        messages = before + sum(item.role != "system" for item in bodies)
        checkpoint = Checkpoint(bodies, header, tail, revision, messages, reason, keep if dropped else None)
        event = SessionPersisted(revision=revision, messages=messages, reason=reason, changed=True)
        return Save(event, checkpoint, hasher, header, cuts_count)

    def adopt(self, save: Save) -> None:
        """Take a committed save as the state to go on from."""
        self._hasher, self._header = save.hasher, save.header
        self._revision, self._messages = save.event.revision, save.event.messages
        self._cuts_count = save.cuts_count

    def _hash_first(self, count: int) -> document.Hasher:
        hasher = document.Hasher()
        hasher.add(document.encode_message(message) for message in self.history.messages[:count])
        return hasher
