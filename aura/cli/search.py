"""`aura search`: full text over all messages and tool results, the best hits first."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import cast

import click

from aura import limits
from aura.cli import streams
from aura.cli.message_view import title_text
from aura.cli.options import RootOptions, json_option
from aura.cli.paint import Paint, stdout_paint
from aura.cli.since import since_option
from aura.cli.table import one_line
from aura.conversation import Role
from aura.errors import BadRequest
from aura.jsontypes import JsonValue
from aura.runtime.search import Answer, Found, Search, make_expression, opened


@click.command(
    "search",
    help='Search all messages and tool results: those with all words of QUERY, the best first. "Words in quotes" are a '
    "phrase, word* is a beginning. The index is brought up to date first.",
)
@click.argument("words", metavar="QUERY", nargs=-1)
@click.option("--session", "session_id", metavar="ID", help="Only in this session.")
@click.option(
    "--role",
    "roles",
    metavar="ROLE",
    type=click.Choice(("user", "assistant", "tool", "system")),
    multiple=True,
    help="Only messages of this role, repeatable: user, assistant, tool, system.",
)
@since_option("Only messages made since then.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, limits.LISTED_MAX_COUNT),
    default=limits.SEARCH_HITS_COUNT,
    show_default=True,
    help="Hits at most.",
)
@click.option("--fts", is_flag=True, help="QUERY is an expression of SQLite's FTS5, with OR, NOT and NEAR.")
@click.option("--rebuild", is_flag=True, help="Make the index anew first; without a QUERY, only that.")
@json_option
@click.pass_obj
def command(
    root: RootOptions,
    words: tuple[str, ...],
    session_id: str | None,
    roles: tuple[str, ...],
    since_ms: int | None,
    limit: int,
    fts: bool,
    rebuild: bool,
    as_json: bool,
) -> None:
    """Print hits; a note on standard error says when there are more, or when messages could not be indexed."""
    query = " ".join(words)
    if not query.strip() and not rebuild:
        raise BadRequest("there is nothing to search for", hint="Give some words; see `aura search --help`.")
    expression = query if fts or not query.strip() else make_expression(query)
    progress = _Progress()
    with progress, opened(root.resolve_store_dir()) as search:
        if rebuild:
            _rebuild(search, progress, as_json, last=not query.strip())
        if not query.strip():
            return
        answer = search.find(
            expression,
            session_id=session_id,
            roles=cast("frozenset[Role]", frozenset(roles)),
            since_ms=since_ms,
            limit=limit,
            progress=progress.show,
        )
    if as_json:
        streams.write_stdout(streams.json_line(answer_fields(answer)))
        return
    streams.write_stdout(answer_text(answer, stdout_paint()))
    if answer.cut:
        streams.write_stderr(f"note: only the best {limit} hits; --limit N shows more\n")
    if answer.not_indexed:
        streams.write_stderr(f"note: {_missing_text(answer)}\n")


def answer_fields(answer: Answer) -> dict[str, JsonValue]:
    """Return the object of `search`."""
    return {
        "hits": [_hit_fields(hit) for hit in answer.hits],
        "truncated": answer.cut,
        "not_indexed": answer.not_indexed,
        "warnings": [_missing_text(answer)] if answer.not_indexed else [],
    }


def answer_text(answer: Answer, paint: Paint) -> str:
    """Return the hits for people: where each is, and the words around what was found."""
    if not answer.hits:
        return "nothing found\n"
    return "\n".join(_hit_text(hit, paint) for hit in answer.hits)


def _hit_fields(hit: Found) -> dict[str, JsonValue]:
    message = hit.message
    return {
        "session_ids": list(hit.session_ids),
        "index": hit.index,
        "message_id": message.id or None,
        "role": message.role,
        "tool_name": message.tool_name or None,
        "created_at": message.created_at or None,
        "rank": hit.rank,
        "snippet": hit.snippet,
        "matches": [[start, end] for start, end in hit.matches],
    }


def _hit_text(hit: Found, paint: Paint) -> str:
    first, *others = hit.session_ids
    also = f"  (also in {_names(others)})" if others else ""
    return f"{paint.place(f'{first} {title_text(hit.placed)}')}{also}\n    {_snippet_text(hit, paint)}\n"


def _names(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[: limits.SEARCH_SESSIONS_SHOWN_COUNT])
    left = len(ids) - limits.SEARCH_SESSIONS_SHOWN_COUNT
    return f"{shown} and {left} more" if left > 0 else shown


def _snippet_text(hit: Found, paint: Paint) -> str:
    text, position = "", 0
    for start, end in hit.matches:
        text += _flat(hit.snippet[position:start]) + paint.head(_flat(hit.snippet[start:end]))
        position = end
    return (text + _flat(hit.snippet[position:])).strip()


def _flat(text: str) -> str:
    """Return `text` on one line; white space at its ends, which separates words here, stays as one space."""
    line = one_line(text)
    before = " " if text[:1].isspace() else ""
    after = " " if line and text[-1:].isspace() else ""
    return before + line + after


def _missing_text(answer: Answer) -> str:
    what = "1 message is" if answer.not_indexed == 1 else f"{answer.not_indexed} messages are"
    return f"{what} not in the index and could not be searched: {answer.reason}"


def _rebuild(search: Search, progress: _Progress, as_json: bool, *, last: bool) -> None:
    state = search.rebuild(progress.show)
    progress.clear()
    if not last:
        return
    if as_json:
        streams.write_stdout(streams.json_line({"indexed": state.indexed, "not_indexed": state.missing}))
    else:
        streams.write_stdout(f"indexed {state.indexed} messages\n")


class _Progress:
    """A line on standard error while the index is filled, in a terminal only. It is gone when the block ends."""

    def __init__(self) -> None:
        self._on = sys.stderr is not None and sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()  # after Ctrl-C too, and before an error is printed

    def show(self, left: int) -> None:
        """Say how many messages are left, when one step was not enough."""
        if self._on and (left or self._shown):
            streams.write_stderr(f"\r\x1b[Kindexing new messages: {left:,} left")
            self._shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            streams.write_stderr("\r\x1b[K")
            self._shown = False
