"""The SSE iterator: durable events exactly once and in order, live events as they come, across reconnects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from aura_automation._decode import read_event, read_transient
from aura_automation._event_schemas import DURABLE
from aura_automation._http import Frame
from aura_automation._retry import Backoff, is_passing
from aura_automation.errors import AutomationError, ContractDrift, NetworkError
from aura_automation.models import Event, TransientEvent

WHERE = "GET /v1/events"


def follow(
    connect: Callable[[int], AbstractContextManager[Iterator[Frame]]], after: int, backoff: Backoff
) -> Iterator[Event | TransientEvent]:
    """Yield what comes after seq `after`. `connect(cursor)` opens a stream; `backoff` bounds an outage. Never
    ends.

    Raises what `Client.events` says.
    """
    cursor = after
    while True:
        try:
            with connect(cursor) as frames:
                for frame in frames:
                    backoff.succeeded()
                    item = _read(frame, cursor)
                    if item is None:
                        continue
                    if isinstance(item, Event):
                        cursor = item.seq
                    yield item
            ended: AutomationError = NetworkError(f"{WHERE}: the server ended the stream")
        except AutomationError as error:
            if not is_passing(error):
                raise
            ended = error
        backoff.failed(ended)


def _read(frame: Frame, cursor: int) -> Event | TransientEvent | None:
    if frame.event == "heartbeat":
        return None
    if frame.event not in DURABLE:
        return read_transient(frame.event, frame.data, WHERE)
    event = read_event(frame.data, WHERE)
    if event.type != frame.event:
        raise ContractDrift(WHERE, "event", f"{frame.event!r} is not the type in the data, {event.type!r}")
    if frame.id != str(event.seq):
        raise ContractDrift(WHERE, "id", f"{frame.id!r} is not the seq in the data, {event.seq}")
    if event.seq != cursor + 1:
        raise ContractDrift(WHERE, "seq", f"{event.seq} follows {cursor}")
    return event
