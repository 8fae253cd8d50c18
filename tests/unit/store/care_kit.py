"""A store with some of everything, for the tests of `aura store`. It asserts nothing."""

from __future__ import annotations

from pathlib import Path

from aura import events as e
from aura.conversation import Call, Message
from aura.store.open import open_store
from aura.store.protocol import RunFilter
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import NOW_MS, Keeper, header, messages_of, persisted

DAY_MS = 24 * 3600 * 1000


def tool_run(keeper: Keeper, request_id: str, at_ms: int = NOW_MS) -> None:
    """Do a run with a tool call, a question, usage and a call of another agent."""
    run = keeper.accept(request_id)
    keeper.start(run)
    call_id, input_id = f"c_{request_id}", f"inp_{keeper.session_id}_{request_id}"
    usage = e.Usage(provider="p", model="m", input_tokens=10, output_tokens=5, cost_usd=0.25)
    source = e.Source("a2", "helper")
    keeper.commit(
        [
            e.MessageAssistant(
                message_id="m1", content="", tool_calls=(Call(call_id, "Bash", {"command": "ls"}),), usage=usage
            ),
            e.ToolStarted(call_id=call_id, name="Bash", args={"command": "ls"}),
            e.InputRequired(input_id=input_id, input_kind="ask", question="Which?", expires_at_ms=at_ms + 5),
            e.InputResolved(input_id=input_id, answer={"text": "this"}, answered_by="http"),
            e.ToolStarted(source=source, call_id="x", name="Read", args={}),
            e.ToolFinished(source=source, call_id="x", name="Read", status="error", result="no", error="no"),
            e.ToolFinished(call_id=call_id, name="Bash", status="ok", result="a\nb"),
        ],
        run.id,
        at_ms=at_ms,
    )
    keeper.finish(run)


def fill(store: SqliteStore) -> None:
    """Make `work` (two runs, a compaction, a live run), forks of it, `ice` frozen, `copy` imported, `bare` empty."""
    store.create_session(header("work"))
    keeper = Keeper(store, "work")
    tool_run(keeper, "r1")
    keeper.save([Message("system", "Note."), *messages_of("a", "b", "c")])
    store.fork("work", "fork", at_ms=NOW_MS)
    keeper.save(messages_of("d"), keep=2)
    tool_run(keeper, "r2")
    keeper.accept("r3")
    keeper.release()
    store.fork("fork", "grandchild", at_ms=NOW_MS)
    store.create_session(header("ice"))
    ice = Keeper(store, "ice")
    tool_run(ice, "r1")
    ice.release()
    store.freeze("ice", at_ms=NOW_MS)
    store.create_session(header("bare"))
    fork = Keeper(store, "fork")
    saved = fork.checkpoint(messages_of("e"))
    fork.commit([persisted(saved)], None, saved)
    fork.release()


def make(folder: Path) -> Path:
    """Make the store, closed, with no live run left; return its database."""
    store = open_store(folder)
    fill(store)
    work = Keeper(store, "work")
    (run,) = store.list_runs(RunFilter("work", live=True)).items
    work.commit([e.RunLost(revision="0" * 64, messages=0, persisted_seq=0)], run.id)
    work.release()
    store.close()
    return folder / "aura.db"
