"""Saves of a live conversation: the revision is the hash of what an export writes, whatever came before."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.conversation import Call, Message
from aura.runtime.saver import Save, Saver
from aura.wire import document
from tests.support.runtime_kit import NOW_MS, make_saver

texts = st.text(max_size=20)


def exported(saver: Saver, save: Save) -> str:
    """Return the hash of the document that an export of the saved session would write."""
    bodies = [document.encode_message(message) for message in saver.history.messages]
    return hashlib.sha256(b"".join(document.iterate_document(bodies, save.header))).hexdigest()


@pytest.mark.requirement("store.revision")
@given(st.lists(st.lists(texts, max_size=3), max_size=4), texts, texts)
def test_a_revision_is_the_hash_of_the_exported_document(rounds: list[list[str]], title: str, system: str) -> None:
    saver = make_saver([Message("user", "stored"), Message("assistant", "before")])
    for number, contents in enumerate(rounds):
        for content in contents:
            saver.history.append(Message("user", content, thinking=content))
        saver.history.title, saver.history.system = title, system
        save = saver.prepare("checkpoint", NOW_MS + number)
        assert save.event.revision == exported(saver, save)
        saver.adopt(save)
        assert (saver.revision, saver.messages) == (save.event.revision, len(saver.history.messages))


def test_what_is_not_adopted_is_saved_again() -> None:
    saver = make_saver()
    saver.history.append(Message("user", "one"))
    first = saver.prepare("checkpoint", NOW_MS)
    saver.history.append(Message("user", "two"))
    second = saver.prepare("checkpoint", NOW_MS)
    assert first.checkpoint is not None
    assert second.checkpoint is not None
    assert (len(first.checkpoint.new_messages), len(second.checkpoint.new_messages)) == (1, 2)
    saver.adopt(second)
    assert saver.prepare("run", NOW_MS).event.changed is False


@pytest.mark.requirement("store.checkpoints.unchanged")
def test_the_same_content_is_not_stored_again_and_keeps_its_revision() -> None:
    saver = make_saver([Message("user", "stored")])
    save = saver.prepare("start", NOW_MS + 99)
    assert (save.checkpoint, save.event.changed, save.event.revision) == (None, False, saver.revision)
    assert save.event.messages == 1


def test_a_change_of_the_tail_alone_is_a_revision_without_new_messages() -> None:
    saver = make_saver([Message("user", "stored")])
    for change in ("meta", "todos", "title", "system"):
        if change == "meta":
            saver.history.meta["agent"] = "main"
        else:
            setattr(saver.history, change, {"items": []} if change == "todos" else change)
        before = saver.revision
        save = saver.prepare("checkpoint", NOW_MS + 5)
        assert save.checkpoint is not None, change
        assert (save.checkpoint.new_messages, save.event.changed) == ((), True)
        assert save.event.revision == exported(saver, save) != before
        saver.adopt(save)


@pytest.mark.requirement("session.summary")
def test_only_messages_that_are_not_system_are_counted() -> None:
    saver = make_saver([Message("system", "a notice"), Message("user", "hello")])
    assert saver.messages == 1
    saver.history.append(Message("assistant", "", calls=(Call("c", "Ls", {}),)))
    saver.history.append(Message("system", "another"))
    save = saver.prepare("checkpoint", NOW_MS)
    assert save.checkpoint is not None
    assert (save.event.messages, save.checkpoint.messages, len(save.checkpoint.new_messages)) == (2, 2, 2)
