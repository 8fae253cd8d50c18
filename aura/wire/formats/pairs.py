"""Completes calls and results of a foreign conversation, because saved history holds complete pairs (interfaces.md 4).

A result that comes late moves up to its call; a call without one gets an error result; a result without a call becomes
metadata. Records stay where they are, so that an export still writes the source as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aura.conversation import Call, Message, MessageType
from aura.wire.formats.drafts import Draft
from aura.wire.formats.records import Repair, Repairs

NO_RESULT = "[imported] The source holds no result of this call: it was interrupted, or the file ends before it."
_FOR_PEOPLE = frozenset((MessageType.DISPLAY_ONLY, MessageType.BOOKMARK, MessageType.METADATA))


def complete_pairs(drafts: Sequence[Draft], repairs: Repairs) -> list[Draft]:
    """Return the drafts with complete call/result pairs (`aura.conversation.find_broken_pair`)."""
    return list(_Pairing(drafts, repairs).run())


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that waits for its result. `source_id` is the id that the source knows it by."""

    call: Call
    source_id: str
    index: int
    at: str


class _Pairing:
    def __init__(self, drafts: Sequence[Draft], repairs: Repairs) -> None:
        self._drafts = drafts
        self._repairs = repairs
        self._results: dict[str, list[int]] = {}
        self._calls: dict[str, list[int]] = {}
        for index, draft in enumerate(drafts):
            if draft.message.role == "tool":
                self._results.setdefault(draft.message.tool_call_id, []).append(index)
            for call in draft.message.calls:
                self._calls.setdefault(call.id, []).append(index)
        self._taken: set[int] = set()
        self._open: list[_Open] = []

    def run(self) -> Iterator[Draft]:
        for index, draft in enumerate(self._drafts):
            message = draft.message
            if message.role == "tool":
                if index not in self._taken:
                    yield self._answer(draft)
            elif message.role == "system" or message.type in _FOR_PEOPLE:
                yield draft
            else:
                yield from self._close(index)
                yield self._ask(index, draft)
        yield from self._close(len(self._drafts))

    def _answer(self, draft: Draft) -> Draft:
        waiting = next((item for item in self._open if item.source_id == draft.message.tool_call_id), None)
        if waiting is None:
            self._repairs.add(Repair.NO_CALL)
            text = f"result of the unknown call {draft.message.tool_call_id!r}: {draft.message.content}"
            kept = Message("system", text, id=draft.message.id, type=MessageType.METADATA)
            return replace(draft, message=replace(kept, created_at=draft.message.created_at))
        self._open.remove(waiting)
        return _named(draft, waiting.call)

    def _close(self, index: int) -> Iterator[Draft]:
        for waiting in self._open:
            found = self._find_late(waiting, index)
            if found is not None:
                self._taken.add(found)
                yield _named(self._drafts[found], waiting.call)
                continue
            self._repairs.add(Repair.NO_RESULT)
            call = waiting.call
            text = Message("tool", NO_RESULT, tool_name=call.name, tool_call_id=call.id, created_at=waiting.at)
            yield Draft(text, repaired=True)
        self._open.clear()

    def _find_late(self, waiting: _Open, index: int) -> int | None:
        again = (item for item in self._calls[waiting.source_id] if item > waiting.index)
        end = next(again, len(self._drafts))
        late = (item for item in self._results.get(waiting.source_id, ()) if index <= item < end)
        return next((item for item in late if item not in self._taken), None)

    def _ask(self, index: int, draft: Draft) -> Draft:
        message, used = draft.message, set[str]()
        for call in message.calls:
            own = self._free_id(call.id, used)
            used.add(own)
            self._open.append(_Open(replace(call, id=own), call.id, index, message.created_at))
        if not message.calls:
            return draft
        return replace(draft, message=replace(message, calls=tuple(item.call for item in self._open)))

    def _free_id(self, wanted: str, used: set[str]) -> str:
        if wanted not in used:
            return wanted
        self._repairs.add(Repair.SAME_ID)
        count = 2
        while f"{wanted}#{count}" in used:
            count += 1
        return f"{wanted}#{count}"


def _named(draft: Draft, call: Call) -> Draft:
    name = draft.message.tool_name or call.name
    return replace(draft, message=replace(draft.message, tool_name=name, tool_call_id=call.id))
