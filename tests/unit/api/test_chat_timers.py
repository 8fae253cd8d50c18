"""The timers of a stream: what arms them, what counts as life, and what never does (gateway.md 3.8)."""

from __future__ import annotations

from aura import events as e
from aura.api.gateway.timers import ChatTimers

DELTA = e.Delta("m", 0, "x")
STARTED = e.ToolStarted(call_id="c", name="Bash", args={})
FINISHED = e.ToolFinished(call_id="c", name="Bash", status="ok", result="")


def test_the_first_chunk_is_waited_for_from_the_request_on() -> None:
    timers = ChatTimers(1000, first_chunk_ms=90)
    timers.saw(e.RunStarted(run_id="r", message_id="m"), 1050)
    timers.saw(e.SessionInfo(model="m"), 1050)
    timers.saw_live(e.Spinner("waiting"), 1060)
    assert (timers.left_ms(1050), timers.left_ms(1090), timers.left_ms(2000)) == (40, 0, 0)
    assert "sent nothing for 0.09 s" in timers.reason()
    timers.saw_live(DELTA, 1080)
    assert timers.left_ms(9999) is None


def test_a_thought_and_a_durable_message_are_first_chunks_too() -> None:
    for item in (e.Delta("m", 0, "x", thinking=True), e.ToolProgress("t", "c", 1, None, None)):
        timers = ChatTimers(0, first_chunk_ms=90)
        timers.saw_live(item, 1)
        assert timers.left_ms(99) is None
    timers = ChatTimers(0, first_chunk_ms=90)
    timers.saw(e.MessageAssistant(message_id="m", content=""), 1)
    assert timers.left_ms(99) is None


def test_silence_is_counted_from_the_last_sign_of_life_but_not_while_a_tool_runs() -> None:
    timers = ChatTimers(0, inactivity_ms=50)
    assert timers.left_ms(1000) is None
    timers.saw_live(DELTA, 100)
    assert (timers.left_ms(120), timers.left_ms(150)) == (30, 0)
    assert "nothing happened for 0.05 s" in timers.reason()
    timers.saw(STARTED, 140)
    assert timers.left_ms(9999) is None
    timers.saw(FINISHED, 10_000)
    assert timers.left_ms(10_010) == 40


def test_without_timers_nothing_expires() -> None:
    timers = ChatTimers(0)
    timers.saw_live(DELTA, 1)
    assert timers.left_ms(10**9) is None
