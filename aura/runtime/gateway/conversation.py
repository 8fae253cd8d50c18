"""Brings the stored conversation in line with the one that a chat request carries (interfaces.md sections 8 and 10).

What both share is kept, message by message, with the tool exchanges that only the store knows. They are compared by
turns, as this server would have shown them. What the caller has instead of the rest is appended; the rest stays in
older revisions. Pure, but for the history that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from aura.conversation import Message, MessageType
from aura.engine.history import History
from aura.wire.chat_request import ChatMessage

SEPARATOR = "\n\n"  # between text before and after tools that the server ran (streaming-guide.md, multi-turn)


@dataclass(slots=True)
class _Turn:
    """What one side said until the other did. `until` is the index after its last message."""

    role: str
    text: str = ""
    until: int = 0
    messages: list[ChatMessage] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    after_tool: bool = False

    def add(self, message: ChatMessage, until: int) -> None:
        self.until = until
        self.messages.append(message)
        if message.role == "tool":
            self.results[message.tool_call_id] = message.content
            self.after_tool = True
        elif message.content:
            self.text += SEPARATOR + message.content if self.after_tool else message.content
            self.after_tool = False

    def agrees(self, other: _Turn) -> bool:
        """Tell whether the caller's turn `other` is this stored one. Clients trim answers."""
        if (self.role, self.text.strip()) != (other.role, other.text.strip()):
            return False
        return all(self.results.get(call_id) == result for call_id, result in other.results.items())


def reconcile(history: History, conversation: Sequence[ChatMessage], new_id: Callable[[], str], at: str) -> None:
    """Make `history` say what `conversation` says. `at` is the time of what is appended, RFC 3339."""
    stored = _turns((_shown(message), index + 1) for index, message in enumerate(history.messages))
    wanted = _turns((message, index + 1) for index, message in enumerate(conversation))
    shared = 0
    while shared < min(len(stored), len(wanted)) and stored[shared].agrees(wanted[shared]):
        shared += 1
    known = stored[shared].results if shared < len(stored) else {}
    keep = stored[shared - 1].until if shared else 0
    if shared == len(stored):
        keep = len(history.messages)
    if keep < len(history.messages):
        history.drop(len(history.messages) - keep)
    for turn in wanted[shared:]:
        for message in _complete(turn, known):
            history.append(_stored(message, new_id(), at))
        known = {}


def _shown(message: Message) -> ChatMessage | None:
    if message.type != MessageType.NORMAL or message.role == "system":
        return None
    return ChatMessage(message.role, message.content, message.calls, message.tool_call_id)


def _turns(messages: Iterable[tuple[ChatMessage | None, int]]) -> list[_Turn]:
    turns: list[_Turn] = []
    for message, until in messages:
        if message is None:
            if turns:
                turns[-1].until = until
            continue
        side = "user" if message.role == "user" else "assistant"
        if side == "user" or not turns or turns[-1].role != side:
            turns.append(_Turn(side))
        turns[-1].add(message, until)
    return turns


def _complete(turn: _Turn, known: dict[str, str]) -> list[ChatMessage]:
    """Return the turn's messages with complete call/result pairs: results that the caller was not given are taken from
    the store, calls and results that have no other half are left out."""
    messages: list[ChatMessage] = []
    open_calls: set[str] = set()
    for message in turn.messages:
        if message.role == "tool":
            if message.tool_call_id in open_calls:
                open_calls.remove(message.tool_call_id)
                messages.append(message)
            continue
        messages += _results(open_calls, known)
        calls = tuple(call for call in message.calls if call.id in turn.results or call.id in known)
        open_calls = {call.id for call in calls}
        if message.content or calls:
            messages.append(replace(message, calls=calls))
    return messages + _results(open_calls, known)


def _results(open_calls: set[str], known: dict[str, str]) -> list[ChatMessage]:
    missing = [ChatMessage("tool", known.get(call_id, ""), tool_call_id=call_id) for call_id in sorted(open_calls)]
    open_calls.clear()
    return missing


def _stored(message: ChatMessage, message_id: str, at: str) -> Message:
    role = "tool" if message.role == "tool" else "user" if message.role == "user" else "assistant"
    return Message(
        role=role,  # type: ignore[arg-type]
        content=message.content,
        id=message_id,
        calls=message.calls,
        tool_call_id=message.tool_call_id,
        created_at=at,
    )
