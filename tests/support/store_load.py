"""A process that loads one store from several threads, and says on standard output what was acknowledged.

Usage: store_load.py FOLDER ROUND. Each line is a JSON list: `["event", session, seq]`, `["run", session, run, state]`,
or `["session", session, revision]`. A run that an earlier process left behind is settled first, as a server does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from aura import events as e
from aura.conversation import Message
from aura.runs import RunResult
from aura.store.lost import lost_events
from aura.store.open import open_store
from aura.store.protocol import RunFilter
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import NOW_MS, Keeper, header, parsed, persisted

WORKERS_COUNT = 3


def say(*words: object) -> None:
    """Tell the parent; one short write to a pipe is never torn."""
    os.write(1, json.dumps(words).encode() + b"\n")


def settle(store: SqliteStore, keeper: Keeper) -> None:
    """Settle what a killed process left behind."""
    name = keeper.session_id
    live = store.list_runs(RunFilter(name, live=True)).items
    lost = lost_events(live, [], store.get_session(name), store.read_persisted_seq(name), NOW_MS)
    if lost:
        say("event", name, keeper.commit([item.event for item in lost], lost[-1].run_id).last_seq)
        say("run", name, live[0].id, "lost")


def work(store: SqliteStore, name: str, label: str) -> None:
    """Do run after run in one session."""
    if store.find_session(name) is None:
        store.create_session(header(name))
    keeper = Keeper(store, name)
    settle(store, keeper)
    number = 0
    while True:
        number += 1
        one_run(keeper, f"{label}-{number}")


def one_run(keeper: Keeper, request_id: str) -> None:
    """The commits of a run with one tool call."""
    name, run = keeper.session_id, keeper.accept(request_id)
    say("event", name, run.accepted_seq)
    message = run.id[-12:]
    first = [e.MessageUser(message_id=message, content="hi"), e.RunStarted(run_id=run.id, message_id=message)]
    say("event", name, keeper.commit(first, run.id).last_seq)
    call = [e.MessageAssistant(message_id=message, content=""), e.ToolStarted(call_id=message, name="Bash", args={})]
    say("event", name, keeper.commit(call, run.id).last_seq)
    saved = keeper.checkpoint([Message("user", "hi", id=message), Message("assistant", "x" * 700)])
    result = e.ToolFinished(call_id=message, name="Bash", status="ok", result="y" * 700)
    say("event", name, keeper.commit([result, persisted(saved)], run.id, saved).last_seq)
    say("session", name, saved.revision)
    saved = keeper.checkpoint([Message("assistant", "done")], "run")
    last: list[e.Event] = [
        e.RunFinished(outcome="completed", result=RunResult("done")),
        persisted(saved, "run"),
        e.RunPersisted(),
    ]
    say("event", name, keeper.commit(last, run.id, saved).last_seq)
    say("run", name, run.id, "persisted")


def copy(store: SqliteStore, label: str) -> None:
    """Import, fork and freeze sessions, one after the other."""
    number = 0
    while True:
        number += 1
        name = f"{label}-{number}"
        texts = [f"{name} message {n} " + "z" * 500 for n in range(20)]
        say("session", name, store.import_session(parsed(name, *texts), freeze=False, at_ms=NOW_MS).session.revision)
        child = store.fork(name, f"{name}-child", title="A fork", at_ms=NOW_MS).session
        say("session", child.id, child.revision)
        say("session", child.id, store.freeze(child.id, at_ms=NOW_MS).session.revision)


def main(folder: Path, label: str) -> None:
    """Load the store until killed."""
    store = open_store(folder)
    threads = [
        threading.Thread(target=work, args=(store, f"work-{n}", f"{label}-{n}"), daemon=True)
        for n in range(WORKERS_COUNT)
    ]
    threads.append(threading.Thread(target=copy, args=(store, f"copy-{label}"), daemon=True))
    say("ready")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
