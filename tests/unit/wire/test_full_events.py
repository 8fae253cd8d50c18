"""Events that only the gateway records: notices to the contract's readers, whole for everybody else."""

from __future__ import annotations

import json

import pytest

from aura import events as e
from aura.wire.automation import envelope
from aura.wire.catalogue import CATALOGUE, encode_event
from aura.wire.stored_event import read_line, read_stored_event

OBSERVER = e.Observer("obs_1", "claiming", presence=True)
EVENTS: tuple[e.Event, ...] = (
    e.SessionInfo(model="m"),
    e.SessionInfo(model="m", context_limit=9),
    e.McpStatus(
        servers=(
            e.McpServerStatus("a", "stdio", "connected", 3),
            e.McpServerStatus("b", "http_streamable", "failed", reason="away"),
        )
    ),
    e.ToolRequested(call_id="c", name="Bash", args={"command": "ls"}),
    e.ToolUsage(call_ids=("c", "d"), input_tokens=4, output_tokens=2),
    e.ObserverAttached(observer=OBSERVER),
    e.ObserverDetached(observer=OBSERVER, because="released"),
    e.ClaimsExhausted(),
    e.LivenessDecided(policy="cancel"),
)


def test_there_is_one_of_each_kind() -> None:
    assert {event.kind for event in EVENTS} == {kind for kind, entry in CATALOGUE.items() if entry.event.full}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_one_is_a_notice_and_is_read_back_whole(event: e.Event) -> None:
    encoded = encode_event(event, None)
    assert (encoded.type, encoded.kind) == ("notice", event.kind)
    assert json.loads(encoded.data) == {"level": "info", "source": event.kind, "message": ""}
    assert read_stored_event(encoded.type, encoded.data, encoded.kind, encoded.ext) == event
    line = envelope(7, 1_700_000_000_123, encoded.type, "s1", None, encoded.data)
    assert read_line(line, encoded.kind, encoded.ext) == (event, 1_700_000_000_123)


def test_one_of_another_agent_keeps_its_agent() -> None:
    event = e.ToolRequested(source=e.Source("w1", "worker", "main"), call_id="c", name="Bash", args={})
    encoded = encode_event(event, None)
    assert read_stored_event(encoded.type, encoded.data, encoded.kind, encoded.ext) == event


@pytest.mark.parametrize("ext", ['{"data":{"policy":"maybe"}}', '{"data":{}}', '{"data":7}'])
def test_what_was_not_written_so_is_refused(ext: str) -> None:
    with pytest.raises(ValueError):
        read_stored_event("notice", b"{}", "liveness.decided", ext)
