"""Saves after messages were dropped: in the real store, with a new chain, whatever became of the save before."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from aura.engine.history import History
from aura.events import Stamped
from aura.runtime.saver import Save, Saver
from aura.store.open import open_store
from aura.store.protocol import Batch, Holder, Lease
from aura.store.sqlite.store import SqliteStore
from tests.support.command_kit import answer, result, user
from tests.unit.store.store_kit import NOW_MS, header


class Held:
    """A session that is held, and its saver."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        store.create_session(header("s1"))
        self.lease: Lease = store.acquire("s1", Holder(1, None))
        self.saver = Saver(store.load_conversation("s1"))
        self.at_ms = NOW_MS

    @property
    def history(self) -> History:
        return self.saver.history

    def prepare(self) -> Save:
        self.at_ms += 1
        return self.saver.prepare("command", self.at_ms)

    def commit(self, save: Save) -> str:
        """Commit a save without taking it over; check that the store agrees with its hash."""
        events = (Stamped(self.at_ms, save.event, None),)
        self.store.commit(self.lease, Batch(uuid.uuid4().hex, events, save.checkpoint)).result(30)
        exported = b"".join(self.store.export("s1")[1])
        assert hashlib.sha256(exported).hexdigest() == save.event.revision
        return save.event.revision

    def save(self) -> str:
        save = self.prepare()
        revision = self.commit(save)
        self.saver.adopt(save)
        return revision

    def stored(self) -> list[str]:
        return [message.content for message in Saver(self.store.load_conversation("s1")).history.messages]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    store = open_store(tmp_path / "sessions")
    made = Held(store)
    yield made
    store.release(made.lease)
    store.close()


def fill(held: Held, *texts: str) -> None:
    for text in texts:
        held.history.append(user(text))


def test_what_was_dropped_is_gone_and_older_revisions_keep_it(held: Held) -> None:
    fill(held, "a", "b", "c")
    before = held.save()
    held.history.drop(2)
    after = held.save()
    assert after != before
    assert held.stored() == ["a"]
    assert held.store.get_session("s1").messages == 1
    old = b"".join(held.store.export("s1", before)[1])
    assert hashlib.sha256(old).hexdigest() == before
    assert b'"c"' in old


def test_messages_that_follow_a_drop_are_saved_with_it(held: Held) -> None:
    fill(held, "a", "b", "c")
    held.save()
    held.history.drop(2)
    fill(held, "d", "e", "f")
    held.save()
    assert held.stored() == ["a", "d", "e", "f"]
    fill(held, "g")
    held.save()
    assert held.stored() == ["a", "d", "e", "f", "g"]


def test_what_was_never_saved_can_be_dropped(held: Held) -> None:
    fill(held, "a")
    held.save()
    fill(held, "b")
    held.history.drop(1)
    assert held.prepare().checkpoint is None
    held.history.drop(1)
    save = held.prepare()
    assert save.checkpoint is not None
    assert (save.checkpoint.keep, save.event.messages, save.event.changed) == (0, 0, True)
    held.save()
    assert held.stored() == []


def test_a_drop_is_saved_by_the_next_save_when_one_was_refused(held: Held) -> None:
    fill(held, "a", "b", "c")
    held.save()
    held.history.drop(1)
    held.prepare()  # refused: nobody takes it over
    held.history.drop(1)
    fill(held, "d")
    held.save()
    assert held.stored() == ["a", "d"]


def test_a_save_in_doubt_that_came_true_knows_nothing_of_a_later_drop(held: Held) -> None:
    fill(held, "a", "b")
    held.save()
    held.history.drop(1)
    fill(held, "c", "d")
    doubtful = held.prepare()
    held.commit(doubtful)
    held.history.drop(2)
    fill(held, "e")
    held.saver.adopt(doubtful)  # found out only now
    held.save()
    assert held.stored() == ["a", "e"]


def test_calls_with_results_survive_being_hashed_again(held: Held) -> None:
    for message in (user("a"), answer("", "Ls", thinking="hm"), result("Ls"), answer("b"), user("c")):
        held.history.append(message)
    held.save()
    held.history.drop(1)
    held.save()
    assert held.stored() == ["a", "", "done", "b"]
