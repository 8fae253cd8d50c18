"""Feeds: what a reader is given, from the window or from the store, and what may be dropped."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from aura import limits
from aura.errors import StoreUnavailable
from aura.events import Delta, ToolOutput
from aura.runtime.feeds import Feed, Feeds
from aura.runtime.signals import ThreadSignal
from tests.support.runtime_kit import SESSION, FakeStore, make_log, make_row

WAIT_S = 10


@pytest.fixture
def store() -> FakeStore:
    return FakeStore(rows=[make_row(seq) for seq in range(1, 4)])


@pytest.fixture
def feeds(store: FakeStore) -> Iterator[Feeds]:
    log, _ = make_log()
    made = Feeds(store, ThreadSignal, log)  # type: ignore[arg-type]
    yield made
    made.close()


def seqs(rows: tuple[object, ...] | None) -> list[int] | None:
    return None if rows is None else [row.seq for row in rows]  # type: ignore[attr-defined]


def wait_for_head(feed: Feed, head: int) -> None:
    """Wait, as a reader does, until the feed has read up to `head`."""
    for _ in range(1000):
        seen = feed.signal.generation
        if feed.head >= head:
            return
        feed.signal.wait(seen, WAIT_S * 1000)
    raise AssertionError(f"the feed stays at {feed.head}")


def commit(store: FakeStore, *new: int) -> None:
    store.rows += [make_row(seq) for seq in new]
    store.ring()


def test_a_new_feed_knows_where_the_journal_ends_and_sends_older_readers_to_the_store(
    feeds: Feeds,
) -> None:
    feed = feeds.open(SESSION)
    assert feed.head == 3
    assert seqs(feed.peek(3)) == []
    assert feed.peek(2) is None
    assert feed.peek(0) is None


def test_what_is_committed_after_that_comes_from_the_window(store: FakeStore, feeds: Feeds) -> None:
    feed = feeds.open(SESSION)
    commit(store, 4, 5)
    wait_for_head(feed, 5)
    assert seqs(feed.peek(3)) == [4, 5]
    assert seqs(feed.peek(4)) == [5]
    assert seqs(feed.peek(5)) == []
    assert seqs(feed.peek(6)) == [], "a reader that asked the store may be ahead"
    assert feed.peek(2) is None


def test_the_window_is_bounded_and_without_a_hole(store: FakeStore, feeds: Feeds) -> None:
    feed = feeds.open(SESSION)
    last = 3 + limits.FEED_EVENTS_COUNT + limits.PAGE_ROWS + 7
    commit(store, *range(4, last + 1))
    wait_for_head(feed, last)
    oldest = next(after for after in range(3, last) if feed.peek(after) is not None)
    window = seqs(feed.peek(oldest))
    assert window == list(range(oldest + 1, last + 1))
    assert len(window) <= limits.FEED_EVENTS_COUNT
    assert feed.peek(oldest - 1) is None


def test_an_unreadable_store_delays_events_and_loses_none(store: FakeStore, feeds: Feeds) -> None:
    feed = feeds.open(SESSION)
    store.failure = StoreUnavailable("the disk failed")
    commit(store, 4)
    store.failure = None
    commit(store, 5)
    wait_for_head(feed, 5)
    assert seqs(feed.peek(3)) == [4, 5]


def test_readers_of_a_session_share_its_feed_until_the_last_one_leaves(feeds: Feeds) -> None:
    first, second = feeds.open(SESSION), feeds.open(SESSION)
    assert first is second is feeds.find(SESSION)
    feeds.release(first)
    assert feeds.find(SESSION) is second
    feeds.release(second)
    assert feeds.find(SESSION) is None


def test_closing_wakes_readers(store: FakeStore) -> None:
    log, _ = make_log()
    feeds = Feeds(store, ThreadSignal, log)  # type: ignore[arg-type]
    feed = feeds.open(SESSION)
    seen = feed.signal.generation
    woken = threading.Event()

    def read() -> None:
        feed.signal.wait(seen, WAIT_S * 1000)
        woken.set()

    thread = threading.Thread(target=read)
    thread.start()
    feeds.close()
    assert woken.wait(WAIT_S / 2)
    thread.join(WAIT_S)
    assert store.listeners == []


@pytest.mark.requirement("sse.transient.superseded")
def test_live_items_go_to_those_who_asked_and_the_oldest_are_dropped(feeds: Feeds) -> None:
    feed = feeds.open(SESSION)
    feed.show(ToolOutput("Bash", "nobody sees it"))
    generation = feed.signal.generation
    with feed.transients() as one, feed.transients() as other:
        feed.show(Delta("m", 0, "a"))
        assert list(one) == list(other) == [Delta("m", 0, "a")]
        assert feed.signal.generation == generation + 1
        one.clear()
        for number in range(limits.TRANSIENT_QUEUE_COUNT + 3):
            feed.show(Delta("m", number, "x"))
        assert len(one) == limits.TRANSIENT_QUEUE_COUNT
        assert [one[0], one[-1]] == [Delta("m", 3, "x"), Delta("m", limits.TRANSIENT_QUEUE_COUNT + 2, "x")]
    feed.show(Delta("m", 0, "late"))
    assert len(one) == limits.TRANSIENT_QUEUE_COUNT
    assert one[-1] != Delta("m", 0, "late")


def test_a_reader_with_a_signal_of_its_own_is_rung_as_long_as_it_reads(feeds: Feeds, store: FakeStore) -> None:
    feed, own = feeds.open(SESSION), ThreadSignal()
    with feed.ringing(own):
        before = own.generation
        commit(store, 4)
        wait_for_head(feed, 4)
        own.wait(before, WAIT_S * 1000)
        assert own.generation > before
        after = own.generation
        feed.ring()
        assert own.generation == after + 1
    feed.ring()
    assert own.generation == after + 1
