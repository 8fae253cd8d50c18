"""The conversation that a turn works on: messages, system prompt, meta and todos, in memory.

It belongs to one run thread at a time. It knows neither the store nor the wire: the runtime turns it into checkpoints.
A message that was saved is never changed here; views for a model are made in `view`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aura.conversation import Call, Message, find_broken_pair, is_shown_to_model
from aura.jsontypes import JsonObject, JsonValue


class History:
    """A mutable conversation. `append` adds messages and `drop` takes the last ones away; nothing rewrites them."""

    def __init__(
        self,
        messages: Sequence[Message] = (),
        *,
        system: str = "",
        title: str = "",
        meta: Mapping[str, JsonValue] | None = None,
        todos: JsonObject | None = None,
    ) -> None:
        self._messages = list(messages)
        self._cuts: list[int] = []
        self.system = system
        self.title = title
        self.meta: dict[str, JsonValue] = dict(meta or {})
        self.todos = todos

    @property
    def messages(self) -> Sequence[Message]:
        """All messages in order, the system prompt not among them. Not to be changed by the caller."""
        return self._messages

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        self._messages.append(message)

    def drop(self, count: int) -> int:
        """Remove the last `count` messages and return how many were removed.

        More are removed where the cut would part a call from its result. Raises `ValueError` for a `count` that is not
        from 1 to the number of messages.
        """
        if not 1 <= count <= len(self._messages):
            raise ValueError(f"cannot drop {count} of {len(self._messages)} messages")
        keep = len(self._messages) - count
        while keep and find_broken_pair(self._messages[:keep]) is not None:
            keep -= 1
        dropped = len(self._messages) - keep
        del self._messages[keep:]
        self._cuts.append(keep)
        return dropped

    @property
    def cuts(self) -> Sequence[int]:
        """How many messages each `drop` so far has left. Whoever saves learns from it what is no longer there."""
        return self._cuts

    def view(self) -> list[Message]:
        """Return the messages that a model may see, in order."""
        return [message for message in self._messages if is_shown_to_model(message)]

    def open_calls(self) -> list[Call]:
        """Return the calls of the last assistant message that have no result yet, in order."""
        answered: set[str] = set()
        for message in reversed(self._messages):
            if message.role == "assistant":
                return [call for call in message.calls if call.id not in answered]
            answered.add(message.tool_call_id)
        return []

    def since(self, count: int) -> Sequence[Message]:
        """Return the messages after the first `count` ones."""
        return self._messages[count:]
