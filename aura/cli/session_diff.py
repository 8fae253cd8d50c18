"""`aura session diff`: what was added, rewritten and dropped between two revisions of a session."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice

import click

from aura.cli import streams
from aura.cli.message_view import Fields, call_texts, placed_fields, title_text
from aura.cli.options import RootOptions, json_option
from aura.cli.paint import Paint, stdout_paint
from aura.cli.table import SHORT_REVISION_CHARS, clean_lines, one_line, short_time
from aura.clock import format_time
from aura.jsontypes import JsonValue
from aura.runtime.history import Diff, FieldChange, MessageChange, Placed, Save, opened
from aura.wire import canonical


@click.command(
    "diff",
    help="Show what changed from revision A to B: messages that were added, rewritten or dropped, and other fields. "
    "A and B are beginnings of a revision's SHA-256. Without B it is the newest one, without A the one before B.",
)
@click.argument("session_id", metavar="ID")
@click.argument("old", metavar="[A]", required=False)
@click.argument("new", metavar="[B]", required=False)
@json_option
@click.pass_obj
def command(root: RootOptions, session_id: str, old: str | None, new: str | None, as_json: bool) -> None:
    """Print the difference; no difference prints its two headers only."""
    with opened(root.resolve_store_dir()) as history:
        diff = history.diff(session_id, old, new)
    if as_json:
        streams.write_stdout(streams.json_line(diff_fields(diff)))
    else:
        streams.write_stdout("".join(f"{line}\n" for line in diff_lines(diff, stdout_paint())))


def diff_fields(diff: Diff) -> Fields:
    """Return the object of `session diff`."""
    return {
        "session_id": diff.session.id,
        "from": _save_fields(diff.old) if diff.old else None,
        "to": _save_fields(diff.new),
        "messages": [_change_fields(change) for change in diff.messages],
        "fields": [{"path": change.path, "from": change.old, "to": change.new} for change in diff.fields],
    }


def diff_lines(diff: Diff, paint: Paint) -> Iterator[str]:
    """Yield the lines of a unified diff."""
    yield paint.head(f"--- {_save_text(diff.old) if diff.old else 'nothing'}")
    yield paint.head(f"+++ {_save_text(diff.new)}")
    for field in diff.fields:
        yield paint.place(f"@@ {one_line(field.path)}")
        yield from _field_lines(field, paint)
    for change in diff.messages:
        yield from _message_lines(change, paint)


def _save_fields(save: Save) -> Fields:
    return {"revision": save.sha256, "n": save.n, "at": format_time(save.at_ms), "messages": save.messages}


def _change_fields(change: MessageChange) -> Fields:
    fields: Fields = {
        "change": "added" if change.old is None else "dropped" if change.new is None else "rewritten",
        "from": placed_fields(change.old) if change.old else None,
        "to": placed_fields(change.new) if change.new else None,
    }
    return {**fields, "keys": list(change.keys)} if change.keys else fields


def _save_text(save: Save) -> str:
    messages = "1 message" if save.messages == 1 else f"{save.messages} messages"
    return f"{save.sha256[:SHORT_REVISION_CHARS]}  {short_time(save.at_ms)}  {save.reason}, {messages}"


def _field_lines(field: FieldChange, paint: Paint) -> Iterator[str]:
    yield from _compared(_value_lines(field.old), _value_lines(field.new), paint)


def _message_lines(change: MessageChange, paint: Paint) -> Iterator[str]:
    old, new = change.old, change.new
    if old is None:
        assert new is not None
        yield paint.place(f"@@ added {title_text(new)}")
        yield from (paint.added(f"+{line}") for line in _body_lines(new))
    elif new is None:
        yield paint.place(f"@@ dropped {title_text(old)}")
        yield from (paint.dropped(f"-{line}") for line in _body_lines(old))
    else:
        yield paint.place(f"@@ rewritten {title_text(new)} ({one_line(', '.join(change.keys))})")
        yield from _compared(_body_lines(old), _body_lines(new), paint)


def _compared(old: Sequence[str], new: Sequence[str], paint: Paint) -> Iterator[str]:
    for line in islice(difflib.unified_diff(old, new, n=2, lineterm=""), 2, None):  # after the names of files
        match line[:1]:
            case "+":
                yield paint.added(line)
            case "-":
                yield paint.dropped(line)
            case " ":
                yield line


def _body_lines(placed: Placed) -> list[str]:
    message = placed.message
    lines = clean_lines(message.content) if message.content else []
    return lines + [f"call: {text}" for text in call_texts(message)]


def _value_lines(value: JsonValue) -> list[str]:
    if value is None:
        return []
    return clean_lines(value) if isinstance(value, str) else [one_line(canonical.encode(value).decode())]
