"""JSON documents as contract.md and interfaces.md show them, one function each. Keywords replace or add fields."""

from __future__ import annotations

from aura_automation.errors import Json

TOKEN = "t0ken-" + "x" * 32
SESSION = "task-1"
RUN = "run_0192f0c0-0000-7000-8000-000000000001"
TIME = "2026-11-30T10:00:00.000Z"

Document = dict[str, Json]


def summary(**changes: Json) -> Document:
    base: Document = {
        "id": SESSION,
        "title": "",
        "created_at": TIME,
        "updated_at": TIME,
        "revision": "a" * 64,
        "messages": 2,
        "frozen": False,
        "parent": None,
    }
    return base | changes


def error(**changes: Json) -> Document:
    base: Document = {"code": "internal", "message": "something broke", "retryable": False, "details": {}}
    return base | changes


def run(**changes: Json) -> Document:
    base: Document = {
        "id": RUN,
        "request_id": "task-1:author:1",
        "kind": "prompt",
        "request_digest": "d" * 64,
        "on_input": "block",
        "session_id": SESSION,
        "state": "running",
        "terminal": False,
        "outcome": None,
        "error": None,
        "persist_error": None,
        "cancel_requested": False,
        "result": None,
        "persisted": None,
        "stats": {"iterations": 1, "tool_calls": {"Bash": 2}, "tool_errors": 1},
        "accepted_seq": 3,
        "accepted_at": TIME,
        "started_at": TIME,
        "finished_at": None,
        "settled_at": None,
    }
    return base | changes


def persisted_run(**changes: Json) -> Document:
    base = run(
        state="persisted",
        terminal=True,
        outcome="completed",
        result={"content": "done"},
        persisted={"revision": "b" * 64, "messages": 4, "seq": 7},
        finished_at=TIME,
        settled_at=TIME,
    )
    return base | changes


def status(**changes: Json) -> Document:
    base: Document = {
        "agent": "main",
        "mode": None,
        "provider": "script",
        "model": "scripted",
        "iteration": 1,
        "tokens_used": 10,
        "tokens_max": 131072,
    }
    return base | changes


def server_info(**changes: Json) -> Document:
    base: Document = {
        "api": 1,
        "aura_version": "0.1.0",
        "commit": "abc",
        "pid": 4242,
        "session_id": SESSION,
        "workdir": "/workspace",
        "write_home": "/home",
        "url": "http://127.0.0.1:1",
        "started_at": TIME,
        "state": "ready",
        "last_seq": 0,
    }
    return base | changes


def ready(**changes: Json) -> Document:
    info = server_info()
    return {key: info[key] for key in info if key not in ("started_at", "state", "last_seq")} | changes


def session_info(**changes: Json) -> Document:
    base: Document = {
        "session": summary(),
        "persisted_seq": 7,
        "status": status(),
        "meta": {"agent": "main"},
        "run": run(),
    }
    return base | changes


def message(**changes: Json) -> Document:
    base: Document = {
        "index": 0,
        "message_id": "msg_1",
        "role": "assistant",
        "content": "on it",
        "calls": [{"id": "call_1", "name": "Bash", "arguments": {"command": "ls"}}],
        "tool_call_id": None,
        "tool_name": None,
        "type": 0,
        "created_at": TIME,
    }
    return base | changes


def event(seq: int, type: str, data: Document, run_id: str | None = RUN) -> Document:
    return {"seq": seq, "time": TIME, "type": type, "session_id": SESSION, "run_id": run_id, "data": data}


def notice(seq: int, run_id: str | None = RUN) -> Document:
    return event(seq, "notice", {"level": "info", "source": "test", "message": f"event {seq}"}, run_id)


def event_data() -> dict[str, Document]:
    """One good `data` for every durable type."""
    call: Document = {"call_id": "call_1", "name": "Bash", "args": {"command": "ls"}}
    return {
        "server.started": {"pid": 1, "version": "0.1.0", "resumed_revision": None},
        "server.stopping": {"reason": "request"},
        "run.accepted": {"run": run(state="accepted")},
        "run.cancel_requested": {"run": run(cancel_requested=True)},
        "run.finished": {"run": run(state="finished", outcome="completed")},
        "run.persisted": {"run": persisted_run()},
        "run.persist_failed": {"run": run(state="persist_failed", terminal=True, persist_error=error())},
        "run.lost": {"run": run(state="lost", terminal=True, error=error(code="server_lost"))},
        "run.started": {"run_id": RUN, "message_id": "msg_1"},
        "message.user": {"message_id": "msg_1", "content": "hello"},
        "message.assistant": {"message_id": "msg_2", "content": "", "tool_calls": [call]},
        "tool.started": call,
        "tool.finished": {"call_id": "call_1", "name": "Bash", "status": "ok", "result": "a", "error": None},
        "notice": {"level": "warning", "source": "journal", "message": "torn line"},
        "status": status(),
        "input.required": {
            "input_id": "inp_1",
            "kind": "ask",
            "question": "which?",
            "options": [{"label": "a", "description": "the first"}],
            "multi_select": False,
            "tool": None,
            "detail": None,
            "pattern": None,
        },
        "input.resolved": {"input_id": "inp_1", "answer": None},
        "command.result": {"command": "/help", "message": "…", "error": None},
        "session.persisted": {"revision": "b" * 64, "messages": 4, "reason": "run", "changed": True},
        "session.persist_failed": {"error": error(), "reason": "checkpoint"},
    }


def run_story(first_seq: int = 3, notices: int = 6) -> list[Document]:
    """The events of one run: accepted, some notices, the terminal one."""
    begun = run(state="accepted", started_at=None, accepted_seq=first_seq)
    last = first_seq + notices + 1
    return [
        event(first_seq, "run.accepted", {"run": begun}),
        *(notice(seq) for seq in range(first_seq + 1, last)),
        event(last, "run.persisted", {"run": persisted_run(accepted_seq=first_seq)}),
    ]
