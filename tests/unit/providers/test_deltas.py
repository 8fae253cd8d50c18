"""Deltas reach the run thread in order, however slow it is, and none after a cancel."""

from __future__ import annotations

import asyncio
import threading

import pytest

from aura.engine.providers.deltas import DeltaChannel
from aura.engine.scope import Cancelled

WAIT_S = 10


def test_deltas_are_delivered_in_order_on_the_calling_thread(io, scope):
    channel, seen = DeltaChannel(), []

    async def work() -> str:
        for text, thinking in (("a", True), ("b", True), ("c", False), ("d", True)):
            channel.put(text, thinking)
            await asyncio.sleep(0)
        return "reply"

    def on_delta(text: str, thinking: bool) -> None:
        seen.append((text, thinking, threading.get_ident()))

    assert channel.pump(io.submit(work()), scope, on_delta) == "reply"
    assert "".join(text for text, _, _ in seen) == "abcd"
    assert [text for text, thinking, _ in seen if not thinking] == ["c"]
    assert {ident for _, _, ident in seen} == {threading.get_ident()}


def test_what_piles_up_behind_a_slow_consumer_is_joined(io, scope, deltas):
    channel, first_seen, sent = DeltaChannel(), threading.Event(), threading.Event()

    async def work() -> None:
        channel.put("0", False)
        while not first_seen.is_set():
            await asyncio.sleep(0)
        for _ in range(1000):
            channel.put("x", False)
        sent.set()

    def slow(text: str, thinking: bool) -> None:
        deltas(text, thinking)
        first_seen.set()
        assert sent.wait(WAIT_S)

    channel.pump(io.submit(work()), scope, slow)
    assert deltas.content == ["0", "x" * 1000]


def test_nothing_is_shown_after_a_cancel(io, scope, deltas):
    channel = DeltaChannel()

    async def flood() -> None:
        while True:
            channel.put("x", False)
            await asyncio.sleep(0)

    def on_delta(text: str, thinking: bool) -> None:
        deltas(text, thinking)
        scope.cancel("request")

    job = io.submit(flood())
    with pytest.raises(Cancelled):
        channel.pump(job, scope, on_delta)
    assert len(deltas.all) == 1
    assert job.ended


def test_what_the_consumer_raises_stops_the_call(io, scope):
    channel, stopped = DeltaChannel(), threading.Event()

    async def work() -> None:
        try:
            channel.put("x", False)
            await asyncio.Event().wait()
        finally:
            stopped.set()

    def fail(text: str, thinking: bool) -> None:
        raise ValueError("consumer")

    with pytest.raises(ValueError, match="consumer"):
        channel.pump(io.submit(work()), scope, fail)
    assert stopped.wait(WAIT_S)
