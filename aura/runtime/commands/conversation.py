"""Commands on the conversation itself: drop, save, export."""

from __future__ import annotations

from pathlib import Path

from aura import limits
from aura.runtime.commands.base import CommandContext, CommandFailed
from aura.runtime.commands.formats import FORMATS, SUFFIXES, render
from aura.runtime.files import create_file


def drop(context: CommandContext) -> str:
    """Drop the last message, the last n, or all; a call goes with its results. Older revisions keep them."""
    messages = context.history.messages
    word = context.arguments[0].lower() if context.arguments else "1"
    if not messages:
        return "there are no messages"
    if word == "all":
        count = len(messages)
    elif word.isascii() and word.isdigit() and 0 < len(word) <= 9 and int(word) > 0:
        count = int(word)
    else:
        raise CommandFailed(f"{word} is not all, and no number from 1")
    if count > len(messages):
        raise CommandFailed(f"there are only {len(messages)} messages; /drop all drops them")
    dropped = context.history.drop(count)
    context.agent.gauge.used = 0  # nobody has counted what is left
    context.announce()
    more = " (a call is not parted from its results)" if dropped > count else ""
    return f"messages dropped: {dropped}{more}, left: {len(context.history.messages)}"


def save(context: CommandContext) -> str:
    """Save, which every command does, and set the title before if one is given."""
    words, rest = context.arguments, context.invocation.rest
    quoted = len(words) == 1 and rest[:1] in ("'", '"')
    title = " ".join((words[0] if quoted else rest).split())  # unquoted, an apostrophe is only one
    if len(title) > limits.TITLE_MAX_CHARS:
        raise CommandFailed(f"the title has more than {limits.TITLE_MAX_CHARS} characters")
    if title:
        context.history.title = title
    return f"saved as {context.history.title!r}" if context.history.title else "saved"


def export(context: CommandContext) -> str:
    """Return the conversation, or write it to a new file inside the workspace.

    Thinking is in files of the two JSON formats only: a result is an event, and events never hold any.
    """
    wanted, path = _read_arguments(context)
    if path is None:
        text = render(wanted, context.history, thinking=False)
        if len(text.encode()) > limits.TEXT_MAX_BYTES:
            raise CommandFailed(f"the conversation has more than {limits.TEXT_MAX_BYTES} bytes; name a file for it")
        return text
    target = _inside(context.agent.toolbox.workdir, path)
    data = render(wanted, context.history, thinking=True).encode()
    try:
        create_file(target, (data,))
    except FileExistsError:
        raise CommandFailed(f"{path} exists, and nothing is written over") from None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error
    return f"wrote {path} ({len(data)} bytes)"


def _read_arguments(context: CommandContext) -> tuple[str, str | None]:
    """Return the format and the path; a format that is not named follows from the path."""
    words = context.arguments
    if not words:
        return "markdown", None
    named = FORMATS.get(words[0].lower())
    if named is not None:
        return named, words[1] if len(words) == 2 else None
    if len(words) == 2:
        raise CommandFailed(f"{words[0]} is no format; use one of {', '.join(sorted(set(FORMATS.values())))}")
    inferred = SUFFIXES.get(Path(words[0]).suffix.lower())
    if inferred is None:
        raise CommandFailed(f"{words[0]} is no format, and no file name that ends in {', '.join(SUFFIXES)}")
    return inferred, words[0]


def _inside(workdir: Path, path: str) -> Path:
    """Return where `path` lies in the workspace; links cannot lead out of it."""
    try:
        root = workdir.resolve(strict=True)
        target = root / path
        parent = target.parent.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # a missing folder, a circle of links, a NUL
        raise CommandFailed(f"{path}: there is no such folder") from None
    if not target.name or target.name == "..":
        raise CommandFailed(f"{path} is not the name of a file")
    if not parent.is_relative_to(root):
        raise CommandFailed(f"{path} is outside of the workspace")
    return parent / target.name
