"""The projection of a run's events to chat frames: text once and in order, tools by mode, one end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from aura import events as e
from aura.conversation import Call
from aura.runs import Outcome, RunError
from aura.wire.chat import ChatHead, ChatOptions, ChatProjector, Chunk, Failed, Frame, Named
from aura.wire.chat_frames import Collected, Completion, named_frame

ALL = ChatOptions(custom_events=True, reasoning=True)
INFO = e.SessionInfo(model="qwen", context_limit=1000)
LOOK = Call("c1", "mcp__files__list", {"path": "/tmp"})


def assistant(message_id: str, content: str, *calls: Call, used: tuple[int, int] = (10, 5)) -> e.MessageAssistant:
    usage = e.Usage(provider="p", model="qwen", input_tokens=used[0], output_tokens=used[1])
    return e.MessageAssistant(message_id=message_id, content=content, tool_calls=calls, usage=usage)


def requested(call: Call) -> e.ToolRequested:
    return e.ToolRequested(call_id=call.id, name=call.name, args=call.arguments)


def started(call: Call) -> e.ToolStarted:
    return e.ToolStarted(call_id=call.id, name=call.name, args=call.arguments)


def finished(call: Call, result: str, error: str | None = None) -> e.ToolFinished:
    status = "ok" if error is None else "error"
    return e.ToolFinished(call_id=call.id, name=call.name, status=status, result=result, error=error)  # type: ignore[arg-type]


def end(outcome: Outcome = "completed", error: RunError | None = None) -> tuple[e.Event, ...]:
    return e.RunFinished(outcome=outcome, error=error), e.RunPersisted()


def opening() -> tuple[e.Event, ...]:
    return e.RunStarted(run_id="r", message_id="u"), INFO


class Stream:
    """A projector that is fed and remembers what it made. Each durable event is 100 ms after the one before."""

    def __init__(self, options: ChatOptions = ALL, **head: Any) -> None:
        self.projector = ChatProjector(ChatHead("s1", **head), options)
        self.frames: list[Frame] = []
        self.seq = 0

    def feed(self, *items: e.Event | e.Transient) -> Stream:
        for item in items:
            if isinstance(item, e.Event):
                self.seq += 1
                self.frames += self.projector.event(item, self.seq, 100 * self.seq)
            else:
                self.frames += self.projector.live(item)
        return self

    @property
    def text(self) -> str:
        return "".join(str(chunk.delta.get("content", "")) for chunk in self.chunks)

    @property
    def chunks(self) -> list[Chunk]:
        return [frame for frame in self.frames if isinstance(frame, Chunk)]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [dict(frame.payload) for frame in self.frames if isinstance(frame, Named) and frame.name == name]

    @property
    def order(self) -> list[str]:
        return [_name(frame) for frame in self.frames]


def _name(frame: Frame) -> str:
    if isinstance(frame, Named):
        return frame.name
    if isinstance(frame, Failed):
        return "error"
    return "end" if frame.finish_reason else "call" if "tool_calls" in frame.delta else "text"


def delta(message_id: str, offset: int, text: str) -> e.Delta:
    return e.Delta(message_id, offset, text)


def one_tool() -> tuple[e.Event, ...]:
    return (
        *opening(),
        assistant("m1", "Let me look.", LOOK),
        requested(LOOK),
        started(LOOK),
        finished(LOOK, "a.txt"),
        e.ToolUsage(call_ids=("c1",), input_tokens=10, output_tokens=5),
        assistant("m2", "There is a.txt."),
        *end(),
    )


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "live",
    [
        (),
        ((0, "Hello "), (6, "world")),
        ((0, "Hel"), (0, "Hello")),
        ((0, "Hello "), (9, "ld")),  # one was dropped
        ((6, "world"),),  # the first was dropped
    ],
)
def test_text_is_whole_whatever_became_of_the_live_items(live: Iterable[tuple[int, str]]) -> None:
    stream = Stream().feed(*opening(), *(delta("m1", *item) for item in live), assistant("m1", "Hello world"), *end())
    assert stream.text == "Hello world"
    assert [chunk.delta["role"] for chunk in stream.chunks if "role" in chunk.delta] == ["assistant"]
    assert "role" in stream.chunks[0].delta


def test_a_live_item_that_comes_after_its_message_says_nothing() -> None:
    stream = Stream().feed(*opening(), assistant("m1", "Hello"), delta("m1", 0, "Hello"), *end())
    assert stream.text == "Hello"


def test_text_of_the_next_message_waits_until_the_tools_of_this_one_were_shown() -> None:
    early = delta("m2", 0, "There is")
    stream = Stream().feed(*opening(), assistant("m1", "Let me look.", LOOK), early, requested(LOOK), started(LOOK))
    assert stream.text == "Let me look."
    stream.feed(finished(LOOK, "a.txt"))
    assert stream.text == "Let me look.\n\nThere is"
    stream.feed(assistant("m2", "There is a.txt."), *end())
    assert stream.text == "Let me look.\n\nThere is a.txt."


def test_text_waits_for_the_opening() -> None:
    stream = Stream().feed(delta("m1", 0, "Hel"), e.RunStarted(run_id="r", message_id="u"), delta("m1", 3, "lo"))
    assert stream.frames == []
    stream.feed(INFO)
    assert stream.order == ["aura.session_info", "text", "text"]
    assert stream.text == "Hello"


def test_text_of_an_answer_that_is_asked_for_again_is_not_lost() -> None:
    stream = Stream().feed(
        *opening(), delta("m1", 0, "brok"), delta("m2", 0, "whole"), assistant("m2", "whole"), *end()
    )
    assert stream.text == "brokwhole"


def test_the_text_after_tools_is_separated_once() -> None:
    assert Stream().feed(*one_tool()).text == "Let me look.\n\nThere is a.txt."


def test_events_of_another_lane_make_no_frame() -> None:
    other = e.Source("w1", "worker")
    stream = Stream().feed(*opening(), e.MessageAssistant(source=other, message_id="x", content="inner"), *end())
    assert stream.text == ""


# --- tools -----------------------------------------------------------------------------------------------------------


def test_the_order_of_frames_is_the_guides() -> None:
    status = e.McpStatus(servers=(e.McpServerStatus("files", "stdio", "connected", 3),))
    first, *rest = one_tool()[1:]
    assert Stream().feed(one_tool()[0], first, status, *rest).order == [
        "aura.session_info",
        "aura.mcp_status",
        "text",
        "call",
        "aura.tool_requested",
        "aura.tool_start",
        "aura.tool_complete",
        "aura.tool_usage",
        "text",
        "aura.usage",
        "end",
    ]


def test_without_custom_events_there_are_chunks_only() -> None:
    assert Stream(ChatOptions()).feed(*one_tool()).order == ["text", "call", "text", "end"]


def test_the_payloads_are_the_guides() -> None:
    stream = Stream(trace_id="t1").feed(*one_tool())
    common = {"session_id": "s1", "trace_id": "t1", "choices": []}
    tool = {"tool_id": "c1", "tool_name": "list", "tool_namespace": "files", "agent_id": "main"}
    assert stream.named("aura.session_info") == [{"model": "qwen", "model_context_limit": 1000, **common}]
    assert stream.named("aura.tool_requested") == [{**tool, "arguments": {"path": "/tmp"}, **common}]
    assert stream.named("aura.tool_start") == [{**tool, "progress_token": 5, **common}]
    complete = {"duration_ms": 100, "success": True, "result": "a.txt"}
    assert stream.named("aura.tool_complete") == [{**tool, **complete, **common}]
    used = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert stream.named("aura.tool_usage") == [{"tool_ids": ["c1"], **used, "agent_id": "main", **common}]
    total = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    assert stream.named("aura.usage") == [{**total, **common}]


def test_a_failed_tool_says_its_whole_error() -> None:
    error = "x" * 5000
    stream = Stream().feed(*opening(), assistant("m1", "", LOOK), started(LOOK), finished(LOOK, "Error: …", error))
    (complete,) = stream.named("aura.tool_complete")
    assert (complete["success"], complete["error"], "result" in complete) == (False, error, False)


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("none", [("list", '{"path":"/tmp"}')]),
        ("aura", [("list", '{"path":"/tmp"}')]),
        ("open-web-ui", [("list", ""), ("", "a.txt")]),
    ],
)
def test_each_mode_shows_calls_and_results_in_its_way(mode: Any, shown: list[tuple[str, str]]) -> None:
    stream = Stream(ChatOptions(tool_results=mode)).feed(*one_tool())
    calls: list[Any] = [call for chunk in stream.chunks for call in chunk.delta.get("tool_calls", ())]  # type: ignore[union-attr]
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in calls] == shown
    assert {(call["index"], call["id"], call["type"]) for call in calls} == {(0, "c1", "function")}


def test_calls_are_numbered_through_the_whole_stream() -> None:
    second = Call("c2", "Read", {})
    stream = Stream().feed(
        *opening(),
        assistant("m1", "", LOOK),
        requested(LOOK),
        finished(LOOK, ""),
        assistant("m2", "", second),
        requested(second),
        finished(second, ""),
        *end(),
    )
    calls: list[Any] = [call for chunk in stream.chunks for call in chunk.delta.get("tool_calls", ())]  # type: ignore[union-attr]
    assert [(call["index"], call["id"]) for call in calls] == [(0, "c1"), (1, "c2")]


@pytest.mark.parametrize(
    ("limit", "shown"), [(4, "abcd... [truncated]"), (6, "abcdéf"), (0, "abcdéf"), (5, "abcdé... [truncated]")]
)
def test_results_are_cut_at_a_character(limit: int, shown: str) -> None:
    options = ChatOptions(tool_results="open-web-ui", result_max_chars=limit, custom_events=True)
    stream = Stream(options).feed(*opening(), assistant("m1", "", LOOK), requested(LOOK), finished(LOOK, "abcdéf"))
    assert stream.named("aura.tool_complete")[0]["result"] == shown
    last: Any = stream.chunks[-1].delta["tool_calls"]
    assert last[0]["function"]["arguments"] == shown


@pytest.mark.parametrize(
    ("progress", "total", "message", "shown"),
    [
        (3, 5, "step", {"message": "step", "percent": 60}),
        (2, 3, None, {"message": "Progress: 2/3", "percent": 66}),
        (9, 3, None, {"message": "Progress: 9/3", "percent": 100}),
        (1, 0, None, {"message": "Progress: 1/0", "percent": 100}),
        (1, None, None, {"message": "Progress: 1"}),
    ],
)
def test_progress_is_told_with_its_tools_token(
    progress: float, total: float | None, message: str | None, shown: dict[str, Any]
) -> None:
    item = e.ToolProgress(LOOK.name, LOOK.id, progress, total, message)
    stream = Stream().feed(*opening(), assistant("m1", "", LOOK), started(LOOK), item)
    (told,) = stream.named("aura.progress")
    assert told == {
        **shown,
        "phase": "mcp_progress",
        "progress_token": 4,
        "agent_id": "main",
        "session_id": "s1",
        "choices": [],
    }


def test_thoughts_are_told_only_when_both_switches_are_on() -> None:
    thought = e.Delta("m1", 0, "hm", thinking=True)
    assert Stream().feed(*opening(), thought).named("aura.reasoning")[0]["content"] == "hm"
    assert Stream(ChatOptions(custom_events=True)).feed(*opening(), thought).named("aura.reasoning") == []
    assert Stream(ChatOptions(reasoning=True)).feed(*opening(), thought).frames == []


# --- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_tokens", "reason"), [(None, "stop"), (11, "stop"), (10, "length"), (1, "length")])
def test_the_finish_reason_counts_all_tokens_of_the_run(max_tokens: int | None, reason: str) -> None:
    last = Stream(max_tokens=max_tokens).feed(*one_tool()).chunks[-1]
    assert (last.delta, last.finish_reason) == ({}, reason)
    assert last.usage is not None
    assert last.usage.fields() == {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}


def cancelled(reason: str) -> tuple[e.Event, ...]:
    return end("cancelled", RunError("cancelled", "the run was cancelled", details={"reason": reason}))


def test_a_call_of_the_callers_own_tool_ends_the_stream_with_it() -> None:
    own = Call("c9", "ask_page", {"q": 1})
    head = {"client_tools": frozenset(("ask_page",))}
    options = ChatOptions(tool_results="open-web-ui", custom_events=True)
    stream = Stream(options, **head).feed(
        *opening(),
        assistant("m1", "", own),
        requested(own),
        started(own),
        finished(own, "Error: cancelled", "cancelled"),
        *cancelled("client_tool"),
    )
    assert stream.order == ["aura.session_info", "call", "aura.tool_requested", "aura.usage", "end"]
    assert stream.chunks[-1].finish_reason == "tool_calls"
    calls: Any = stream.chunks[0].delta["tool_calls"]
    assert calls[0]["function"] == {"name": "ask_page", "arguments": '{"q":1}'}
    collected = Collected(frozenset(("ask_page",)))
    for chunk in stream.chunks:
        collected.add(chunk)
    assert collected.finish_reason == "tool_calls"
    assert [call["id"] for call in collected.calls] == ["c9"]  # type: ignore[index, call-overload]
    assert "index" not in collected.calls[0]  # type: ignore[operator]


@pytest.mark.parametrize(("reason", "code"), [("deadline", "timeout"), ("request", "cancelled")])
def test_a_run_that_was_cancelled_is_an_error(reason: str, code: str) -> None:
    (failed,) = Stream(ChatOptions()).feed(*opening(), *cancelled(reason)).frames
    assert isinstance(failed, Failed)
    assert (failed.error.code, failed.outcome, failed.started) == (code, "cancelled", True)


def test_a_shutdown_ends_the_stream_without_an_error() -> None:
    assert Stream(ChatOptions()).feed(*opening(), *cancelled("shutdown")).order == ["end"]
    stream = Stream(ChatOptions()).feed(*opening(), delta("m1", 0, "half"))
    stream.frames += stream.projector.finish_early()
    assert stream.order == ["text", "end"]
    assert stream.projector.ended


def test_a_run_that_took_no_input_says_so() -> None:
    (failed,) = Stream(ChatOptions()).feed(*end("rejected", RunError("input_rejected", "too long"))).frames
    assert isinstance(failed, Failed)
    assert (failed.started, failed.outcome, failed.error.code) == (False, "rejected", "input_rejected")


def test_an_answer_that_was_not_saved_is_an_error() -> None:
    error = RunError("persist_failed", "no room")
    done = e.RunFinished(outcome="completed"), e.RunPersistFailed(error=error)
    stream = Stream(ChatOptions()).feed(*opening(), assistant("m1", "Hello"), *done)
    assert stream.order == ["text", "error"]


def test_a_lost_run_is_an_error() -> None:
    lost = e.RunLost(revision="0" * 64, messages=0, persisted_seq=1)
    (failed,) = Stream(ChatOptions()).feed(*opening(), lost).frames
    assert isinstance(failed, Failed)
    assert failed.error.code == "server_lost"


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_frames_are_the_wires() -> None:
    completion = Completion("chatcmpl-1", 1_700_000_000, "openai/gpt-4o")
    stream = Stream(ChatOptions()).feed(*opening(), assistant("m1", "Hi"), *end())
    first, last = (json.loads(completion.chunk(chunk).removeprefix(b"data: ")) for chunk in stream.chunks)
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "openai/gpt-4o"}
    assert first == {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]}
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert last["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert named_frame(Named("aura.usage", {"choices": []})) == b'event: aura.usage\ndata: {"choices":[]}\n\n'


def test_a_document_says_the_same_as_the_stream() -> None:
    collected = Collected()
    for chunk in Stream(ChatOptions()).feed(*one_tool()).chunks:
        collected.add(chunk)
    document = Completion("chatcmpl-1", 1, "a/b").document(collected, "s1")
    assert document["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Let me look.\n\nThere is a.txt."},
            "finish_reason": "stop",
        }
    ]
    assert (document["object"], document["metadata"]) == ("chat.completion", {"chat_session_id": "s1"})
