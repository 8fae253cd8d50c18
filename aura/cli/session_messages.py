"""`aura session messages`: a conversation for reading. Thinking is shown only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import click

from aura import limits
from aura.cli import streams
from aura.cli.message_view import call_texts, placed_fields, title_text
from aura.cli.options import RootOptions, json_option
from aura.cli.paint import is_terminal
from aura.cli.session_options import revision_option
from aura.cli.table import clean_lines
from aura.conversation import Role
from aura.jsontypes import JsonValue
from aura.runtime.history import Placed, opened
from aura.wire.summaries import summary_fields

_ROLES = ("user", "assistant", "tool", "system")
_DEFAULT_ROLES = ("user", "assistant", "tool")


@click.command(
    "messages",
    help="Print a conversation for reading: Markdown is rendered in a terminal, and left as it is elsewhere.",
)
@click.argument("session_id", metavar="ID")
@click.option(
    "--role",
    "roles",
    metavar="ROLE",
    type=click.Choice(_ROLES),
    multiple=True,
    help="Only these, repeatable: user, assistant, tool, system.  [default: all but system]",
)
@click.option("--after", metavar="N", type=click.IntRange(-1), help="Only what comes after the message with index N.")
@click.option(
    "--tail", metavar="N", type=click.IntRange(1, limits.LISTED_MAX_COUNT), help="Only the last N of these messages."
)
@click.option("--thinking", is_flag=True, help="Show what the model thought, where it is stored.")
@revision_option
@json_option
@click.pass_obj
def command(
    root: RootOptions,
    session_id: str,
    roles: tuple[str, ...],
    after: int | None,
    tail: int | None,
    thinking: bool,
    revision: str | None,
    as_json: bool,
) -> None:
    """Print messages as they are read, so that a long conversation begins at once."""
    wanted = cast("frozenset[Role]", frozenset(roles or _DEFAULT_ROLES))
    with opened(root.resolve_store_dir()) as history:
        session, messages = history.messages(session_id, roles=wanted, after=after, tail=tail, revision=revision)
        if as_json:
            items: list[JsonValue] = [placed_fields(item, thinking=thinking) for item in messages]
            streams.write_stdout(streams.json_line({"session": summary_fields(session), "messages": items}))
            return
        render = _find_renderer() if is_terminal() else plain_text
        for item in messages:
            streams.write_stdout(render(item, thinking))


def plain_text(placed: Placed, thinking: bool) -> str:
    """Return a message as plain text: a title, its text as it was written, its calls."""
    message = placed.message
    lines = [title_text(placed), ""]
    if thinking and message.thinking:
        lines += [*(f"> {line}" for line in clean_lines(message.thinking)), ""]
    if message.content:
        lines += [*clean_lines(message.content), ""]
    if message.calls:
        lines += [*(f"call: {text}" for text in call_texts(message)), ""]
    return "".join(f"{line}\n" for line in lines)


def _find_renderer() -> Callable[[Placed, bool], str]:
    from aura.cli.markdown import MarkdownView  # rich takes longer to import than all the rest

    return MarkdownView().text
