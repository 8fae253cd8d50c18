"""How `aura run` shows a run: the answer on one stream, what happens on the other; or events as lines of JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TextIO, cast

import click

from aura.cli.table import one_line
from aura.events import Delta, ToolOutput, ToolProgress, Transient
from aura.jsontypes import JsonObject
from aura.runs import Run
from aura.wire import canonical

SHOWN_CHARS = 200  # of arguments and results, so that a line stays a line


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person answered: text to a question, an action to an approval."""

    input_id: str
    answer: str | None = None
    action: str | None = None


class View(Protocol):
    """Something that shows a run. Called from one thread."""

    def event(self, event: JsonObject) -> None:
        """Show a durable event."""
        ...

    def live(self, item: Transient) -> None:
        """Show a live item."""
        ...

    def ask(self, event: JsonObject) -> Reply | None:
        """Ask the person at the terminal what `input.required` asks; None to leave it."""
        ...

    def end(self, run: Run, session_id: str) -> None:
        """Say how it ended and where it is saved."""
        ...


class EventLines:
    """Prints each durable event as one line, exactly as it is served."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def event(self, event: JsonObject) -> None:
        """Print the event."""
        self._out.write(canonical.encode(event).decode() + "\n")
        self._out.flush()

    def live(self, item: Transient) -> None:
        """Live items are not printed: durable events say the same."""

    def ask(self, event: JsonObject) -> Reply | None:
        """Nobody is asked."""
        return None

    def end(self, run: Run, session_id: str) -> None:
        """The last event has said it."""


class RunView:
    """Prints the answer to `out` as it is written, everything else to `err`. Correct without any delta."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._printed: dict[str, int] = {}
        self._line_open = False

    def event(self, event: JsonObject) -> None:
        """Show the event."""
        data = cast(JsonObject, event["data"])
        match event["type"]:
            case "message.assistant":
                self._complete(str(data["message_id"]), str(data["content"]))
            case "tool.started":
                self._note(f"▸ {data['name']} {_short(data['args'])}")
            case "tool.finished":
                text = str(data["error"] if data["status"] == "error" else data["result"])
                self._note(f"  {data['status']}: {_short(text)}")
            case "notice":
                self._note(f"{data['level']}: {data['source']}: {data['message']}")
            case "session.persist_failed":
                self._note(f"error: the session could not be saved: {cast(JsonObject, data['error'])['message']}")

    def live(self, item: Transient) -> None:
        """Show a piece of the answer, or a line that a tool wrote."""
        if isinstance(item, Delta) and not item.thinking:
            self._piece(item)
        elif isinstance(item, ToolOutput):
            self._note(f"  │ {one_line(item.line)}")
        elif isinstance(item, ToolProgress):
            self._note(f"  │ {one_line(item.text)}")

    def ask(self, event: JsonObject) -> Reply | None:
        """Ask on the terminal; an empty answer denies an approval and leaves a question to be dismissed."""
        data = cast(JsonObject, event["data"])
        input_id = str(data["input_id"])
        self._note(f"? {data['question']}" + (f"\n  {data['detail']}" if data["detail"] else ""))
        options = cast("list[JsonObject]", data["options"])
        for number, option in enumerate(options, 1):
            self._note(f"  {number}. {option['label']} {option['description']}".rstrip())
        if data["kind"] == "confirm":
            text = click.prompt("allow, allow_session or deny", default="deny", err=True, type=str).strip()
            return Reply(input_id, action=text if text in ("allow", "allow_session") else "deny")
        return Reply(input_id, answer=click.prompt("answer", err=True, type=str))

    def end(self, run: Run, session_id: str) -> None:
        """Say how the run ended, and the session and revision that hold it."""
        self._close_line()
        if run.error is not None:
            self._note(f"error: {run.error.code}: {run.error.message}")
        revision = run.persisted.revision[:12] if run.persisted else "none"
        self._note(f"{run.outcome}; session {session_id}, revision {revision}")

    def _piece(self, delta: Delta) -> None:
        printed = self._printed.get(delta.message_id, 0)
        if delta.offset > printed:  # a piece was dropped: the durable event brings the rest
            return
        self._write(delta.text[printed - delta.offset :])
        self._printed[delta.message_id] = max(printed, delta.offset + len(delta.text))

    def _complete(self, message_id: str, content: str) -> None:
        self._write(content[self._printed.get(message_id, 0) :])
        self._printed[message_id] = len(content)
        self._close_line()

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self._line_open = not text.endswith("\n")

    def _close_line(self) -> None:
        if self._line_open:
            self._write("\n")

    def _note(self, text: str) -> None:
        self._close_line()
        self._err.write(text + "\n")
        self._err.flush()


def _short(value: object) -> str:
    text = value if isinstance(value, str) else canonical.encode(cast(JsonObject, value)).decode()
    text = one_line(text.strip())
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
