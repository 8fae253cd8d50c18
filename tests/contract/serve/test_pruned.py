"""A session that was pruned, served again: its journal begins later, and nobody is given that for the whole."""

from __future__ import annotations

import time

import pytest

import aura_automation as client
from aura.runtime.care import Care, PruneRequest
from tests.support.serving import Site

DAY_MS = 24 * 3600 * 1000


class Tomorrow:
    """A clock that is a day ahead, so that everything is old."""

    def now_ms(self) -> int:
        return int(time.time() * 1000) + DAY_MS

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def test_a_pruned_journal_goes_on_and_refuses_cursors_before_its_beginning(site: Site) -> None:
    site.script({"content": "one"}, {"content": "two"})
    first = site.launch()
    session_id = first.handle.session_id
    run = first.run("hello", "r1")
    held = Care(site.sessions).prune(PruneRequest("journal"), dry_run=False)
    assert [item.why for item in held.spared] == ["a process holds it"]
    assert first.events()[0].seq == 1
    first.stop()
    ends_at = site.rows("SELECT last_seq FROM session")[0][0]

    report = Care(site.sessions, Tomorrow()).prune(PruneRequest("journal", older_than_ms=1000), dry_run=False)
    assert [item.rows["event"] for item in report.pruned] == [ends_at]
    assert Care(site.sessions).check().clean

    second = site.launch(session_id)
    controller = second.client
    with pytest.raises(client.CursorOutOfRange) as refused:
        controller.journal(0)
    assert refused.value.details["first_seq"] == ends_at + 1
    with pytest.raises(client.CursorOutOfRange):
        next(iter(controller.events(ends_at - 1)))
    page = controller.journal(ends_at)
    assert [event.type for event in page.events][:2] == ["server.started", "session.persisted"]
    assert page.events[0].seq == ends_at + 1
    assert controller.run(run.id).result is not None  # records of runs stay
    again = controller.submit("r1", prompt="hello")
    assert again.id == run.id  # and so do request ids
    assert second.run("go on", "r2").outcome == "completed"
    second.stop()
    assert Care(site.sessions).check().clean
