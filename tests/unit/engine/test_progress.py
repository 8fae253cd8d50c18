"""What is shown live while a turn waits, and when it goes away."""

from __future__ import annotations

import pytest

from aura import events as e
from aura.engine.progress import Waiting, show_deltas
from aura.engine.providers.base import ProviderError
from tests.support.lane import RecordingLane


def test_it_waits_until_the_first_piece_of_the_answer_and_says_when_it_asks_again() -> None:
    lane = RecordingLane()
    waiting = Waiting(lane, "some-model")
    on_delta = show_deltas(lane, "msg_1", waiting)
    with waiting.shown():
        waiting.for_retry(2, ProviderError("rate_limit", "slow down", provider="list"), 1500)
        on_delta("hm", True)
        on_delta("he", False)
        on_delta("llo", False)
    assert lane.shown == [
        e.Spinner("waiting for some-model"),
        e.Spinner("rate_limit: try 2 in 1.5 s"),
        e.Spinner(""),
        e.Delta("msg_1", 0, "hm", True),
        e.Delta("msg_1", 0, "he", False),
        e.Delta("msg_1", 2, "llo", False),
    ]


def test_a_failed_call_leaves_nothing_on_the_screen() -> None:
    lane = RecordingLane()
    with pytest.raises(ProviderError), Waiting(lane, "m").shown():
        raise ProviderError("network", "nobody there", provider="list")
    assert lane.shown == [e.Spinner("waiting for m"), e.Spinner("")]
