"""A process that writes one session as fast as it can and says on standard output what was acknowledged.

Usage: writing_child.py FOLDER SESSION [ROUNDS]. Each line is the last seq of a batch whose commit returned.
"""

from __future__ import annotations

import sys
from pathlib import Path

from aura import events as e
from aura.conversation import Message
from aura.runs import RunResult
from aura.store.open import open_store
from tests.unit.store.store_kit import Keeper, persisted


def say(seq: int) -> None:
    """Tell the parent; one short write to a pipe is never torn."""
    sys.stdout.write(f"{seq}\n")
    sys.stdout.flush()


def main(folder: Path, session_id: str, rounds: int | None) -> None:
    """Do run after run, each with one tool call and its checkpoints."""
    store = open_store(folder)
    keeper = Keeper(store, session_id)
    say(store.read_last_seq(session_id))
    done = 0
    while rounds is None or done < rounds:
        one_run(keeper, f"{keeper.lease.token}-{done}")
        done += 1
    keeper.release()
    store.close()


def one_run(keeper: Keeper, request_id: str) -> None:
    """The five commits of a one-tool run."""
    run = keeper.accept(request_id)
    say(run.accepted_seq)
    name = run.id[-12:]
    user = [e.MessageUser(message_id=name, content="hi"), e.RunStarted(run_id=run.id, message_id=name)]
    say(keeper.commit(user, run.id).last_seq)
    call = [e.MessageAssistant(message_id=name, content=""), e.ToolStarted(call_id=name, name="Bash", args={})]
    say(keeper.commit(call, run.id).last_seq)
    saved = keeper.checkpoint([Message("user", "hi", id=name), Message("assistant", "x" * 700)])
    result = e.ToolFinished(call_id=name, name="Bash", status="ok", result="y" * 700)
    say(keeper.commit([result, persisted(saved)], run.id, saved).last_seq)
    saved = keeper.checkpoint([Message("assistant", "done")], "run")
    last: list[e.Event] = [
        e.MessageAssistant(message_id=name, content="done"),
        e.RunFinished(outcome="completed", result=RunResult("done")),
        persisted(saved, "run"),
        e.RunPersisted(),
    ]
    say(keeper.commit(last, run.id, saved).last_seq)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None)
