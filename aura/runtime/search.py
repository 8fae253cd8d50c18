"""Full-text search over all messages, behind `aura search`: the query of a person, the index brought up to date.

It imports neither engine nor server, and prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aura import ids
from aura.conversation import Message, Role
from aura.errors import BadRequest, NotFound, StoreUnavailable
from aura.runtime.diff import Placed
from aura.runtime.listing import reachable
from aura.store.history import Hit, Indexed, SearchQuery
from aura.store.history import Search as Index
from aura.store.sqlite.asking import find_search
from aura.wire import document

_WORD = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')
_MARKS = re.compile("[\x02\x03]")


@dataclass(frozen=True, slots=True)
class Found:
    """A message that was found, and the sessions that have it now, its own one first.

    `snippet` is a part of its text; `matches` are (start, end) of the words in it that were found. `rank` is bm25's:
    less is better.
    """

    session_ids: tuple[str, ...]
    index: int | None
    message: Message
    rank: float
    snippet: str
    matches: tuple[tuple[int, int], ...]

    @property
    def placed(self) -> Placed:
        """The message where it stands."""
        return Placed(self.index, self.message)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, the best first; `cut` when there is more than the limit. `not_indexed`: messages nobody looked
    at, and why.
    """

    hits: tuple[Found, ...]
    cut: bool
    not_indexed: int
    reason: str | None


class Search:
    """The search in one store. One thread at a time; each verb blocks and may raise `StoreUnavailable`."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def find(
        self,
        expression: str,
        *,
        session_id: str | None = None,
        roles: frozenset[Role] = frozenset(),
        since_ms: int | None = None,
        limit: int,
        progress: Callable[[int], object] = lambda _: None,
    ) -> Answer:
        """Bring the index up to date, then return what it knows of an FTS5 `expression`.

        `progress` is told after each step how many messages are left. Where the store cannot be written, what is
        indexed is searched. Raises
        `InvalidId`, `NotFound` for an unknown session, `BadRequest` for an expression that FTS5 does not understand.
        """
        if session_id is not None:
            ids.check_session_id(session_id)
        where = SearchQuery(expression, session_id, roles, since_ms, limit + 1)
        self._index.check(where)  # before a first search fills the index for some seconds
        reason = self.catch_up(progress)
        hits = self._index.find(where)
        return Answer(
            hits=tuple(map(_read_hit, hits[:limit])),
            cut=len(hits) > limit,
            not_indexed=self._index.count_indexed().missing if reason else 0,
            reason=reason,
        )

    def catch_up(self, progress: Callable[[int], object] = lambda _: None) -> str | None:
        """Bring the index up to date; return why that was not possible, or None."""
        try:
            self._index.catch_up(progress)
        except StoreUnavailable as error:
            return error.message
        return None

    def rebuild(self, progress: Callable[[int], object] = lambda _: None) -> Indexed:
        """Make the index anew. Raises `StoreUnavailable` where the store cannot be written."""
        self._index.clear()
        self._index.catch_up(progress)
        return self._index.count_indexed()


@contextmanager
def opened(directory: Path) -> Iterator[Search]:
    """Open the store in `directory` (`<write home>/sessions`).

    Raises `NotFound` when there is none, and `StoreUnavailable`.
    """
    with reachable(directory):
        index = find_search(directory)
    if index is None:
        raise NotFound("there is no store yet", hint="The first run or `aura session import` makes it.")
    try:
        yield Search(index)
    finally:
        index.close()


def make_expression(text: str) -> str:
    """Return the FTS5 expression for what a person typed: all of these words, in any order.

    "Several words" in quotes are a phrase, `word*` is a beginning. Nothing else has a meaning: a word like `a/b.py` is
    the phrase of its parts. Raises `BadRequest` when there is no letter and no digit in it.
    """
    terms = []
    for match in _WORD.finditer(text.replace("\0", " ")):  # where FTS5 would see the end of the text
        phrase, star, word = match.groups()
        if phrase is None:
            star = "*" if word.endswith("*") else ""
            phrase = word
        if any(char.isalnum() for char in phrase):
            terms.append(f'"{phrase}"{" *" if star else ""}')
    if not terms:
        raise BadRequest("there is no word to search for", hint="Only letters and digits are searched.")
    return " AND ".join(terms)


def split_snippet(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return a snippet without its marks, and where the found words are in it."""
    text, matches, start = "", list[tuple[int, int]](), None
    position = 0
    for mark in _MARKS.finditer(marked):
        text += marked[position : mark.start()]
        position = mark.end()
        if mark[0] == "\x02":
            start = len(text)
        elif start is not None:
            matches.append((start, len(text)))
            start = None
    return text + marked[position:], tuple(matches)


def _read_hit(hit: Hit) -> Found:
    snippet, matches = split_snippet(hit.snippet)
    message = document.decode_message(hit.message.body)
    return Found(hit.session_ids, hit.message.ordinal, message, hit.rank, snippet, matches)


__all__ = ["Answer", "Found", "Indexed", "Search", "make_expression", "opened", "split_snippet"]
