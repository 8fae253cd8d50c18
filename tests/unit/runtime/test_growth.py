"""What is said of large texts before they are stored: nothing over 8 MiB comes in unseen."""

from __future__ import annotations

import json

import pytest

from aura import events as e
from aura import limits
from aura.conversation import Call, Message
from aura.runtime import growth
from aura.runtime.recorder import Recorder
from aura.wire.automation import event_data
from tests.support.lane import CountingClock
from tests.support.runtime_kit import FakeLease, FakeStore, ManualAlarm, make_saver

LARGE = "x" * (limits.INLINE_MAX_BYTES + 1)
ESCAPED = "\x01" * (limits.INLINE_MAX_BYTES // 6 + 1)  # six bytes each in JSON
EVENTS: list[e.Event] = [
    e.MessageUser(message_id="m", content=LARGE),
    e.MessageUser(message_id="m", content=ESCAPED),
    e.MessageAssistant(message_id="m", content=LARGE),
    e.MessageAssistant(message_id="m", content="", tool_calls=(Call("c", "Write", {"content": LARGE}),)),
    e.ToolStarted(call_id="c", name="Write", args={"deep": [{"content": ESCAPED}]}),
    e.ToolFinished(call_id="c", name="Read", status="ok", result=LARGE),
    e.CommandResult(command="/x", message=LARGE),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_a_large_event_gets_a_notice_directly_after_it(event: e.Event) -> None:
    store = FakeStore()
    recorder = Recorder(store, FakeLease(), make_saver(), CountingClock(), ManualAlarm())  # type: ignore[arg-type]
    recorder.record(event, "run_1")
    recorder.commit((event,), "run_1")
    assert [item.kind for item in store.events] == [event.kind, "notice", event.kind, "notice"]
    notice = store.events[1]
    assert isinstance(notice, e.Notice)
    assert (notice.level, notice.origin) == ("warning", "store")
    size = len(json.dumps(event_data(event, None), ensure_ascii=False))
    said = int(notice.message.split(" has ")[1].split()[0])
    assert size - 200 <= said <= size  # it counts the texts, not the keys around them


def test_what_fits_gets_none() -> None:
    assert growth.find_large(e.MessageUser(message_id="m", content="x" * limits.INLINE_MAX_BYTES)) != ()
    assert growth.find_large(e.MessageUser(message_id="m", content="x" * (limits.INLINE_MAX_BYTES - 2))) == ()
    assert growth.find_large(e.Notice(level="info", origin="x", message=LARGE)) == ()


def test_a_large_message_gets_a_notice_before_the_save_that_stores_it() -> None:
    store, saver = FakeStore(), make_saver()
    recorder = Recorder(store, FakeLease(), saver, CountingClock(), ManualAlarm())  # type: ignore[arg-type]
    saver.history.append(Message("assistant", "short", thinking=LARGE))
    recorder.save("checkpoint", None)
    assert [item.kind for item in store.events] == ["notice", "session.persisted"]
