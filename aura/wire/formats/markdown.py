"""A session as a Markdown transcript for people. It is a view: nothing reads it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aura.conversation import Header, Message, MessageType
from aura.wire import canonical

_HIDDEN = frozenset((MessageType.METADATA, MessageType.EPHEMERAL))


@dataclass(frozen=True, slots=True)
class Transcript:
    """The text, which ends with a line end. `left_out` counts the messages that it does not show."""

    text: str
    left_out: int


def write_transcript(header: Header, messages: Sequence[Message]) -> Transcript:
    """Return the transcript: what was said, thought, called and answered; metadata is only counted."""
    shown = [message for message in messages if message.type not in _HIDDEN]
    left_out = len(messages) - len(shown)
    parts = [f"# {' '.join(header.title.split()) or header.id}", f"Session `{header.id}`, {header.created_at}"]
    if header.system:
        parts += ["## System prompt", fenced(header.system)]
    for message in shown:
        parts += _parts(message)
    if left_out:
        parts.append(f"*Metadata records that are not shown: {left_out}*")
    return Transcript("\n\n".join(parts) + "\n", left_out)


def fenced(text: str, language: str = "") -> str:
    """Return `text` in a code block whose fence it does not hold."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _parts(message: Message) -> Iterator[str]:
    if message.type == MessageType.BOOKMARK:
        yield f"---\n\n*{' '.join(message.content.split())}*"
        return
    yield f"## {_heading(message)}"
    if message.thinking:
        yield "\n".join(f"> {line}" for line in message.thinking.splitlines())
    if message.content:
        yield fenced(message.content) if message.role == "tool" else message.content
    if message.images:
        yield f"*Images: {len(message.images)}*"
    for call in message.calls:
        yield f"Call of `{call.name}`:"
        yield fenced(canonical.encode(call.arguments).decode(), "json")


def _heading(message: Message) -> str:
    name = f"Tool {message.tool_name}".strip() if message.role == "tool" else message.role.capitalize()
    if message.type == MessageType.SYNTHETIC:
        name += " (inserted)"
    return f"{name} · {message.created_at}" if message.created_at else name
