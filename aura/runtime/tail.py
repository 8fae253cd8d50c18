"""Follows a stored session's journal from outside of its server: `aura journal tail`.

It asks the database for what is committed after the last seq it has seen, and looks again when anybody has committed.
It holds no lock and makes no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aura import limits
from aura.errors import NotFound
from aura.runtime.journal import check_after
from aura.runtime.stores import existing_store
from aura.store.journals import EventFilter, JournalState
from aura.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """Where to begin, and which events to show. `after` wins over `last`, which counts events that match."""

    after: int | None = None
    last: int = limits.TAIL_DEFAULT_COUNT
    types: tuple[str, ...] = ()
    run_id: str | None = None


def tail(
    directory: Path, session_id: str, selection: Selection, pause: Callable[[], bool] | None = None
) -> Iterator[bytes]:
    """Yield the selected events as pieces of whole lines, each with its line end.

    With `pause` it does not end there: `pause` waits a moment before the next look, and returns False to end it. Raises
    `NotFound` for an unknown session or run, `CursorOutOfRange`, `InvalidId` and store errors.
    """
    where = EventFilter(selection.types, selection.run_id)
    with existing_store(directory, session_id) as store:
        state = store.read_journal(session_id)
        _check_run(store, session_id, selection.run_id)
        after = _start(store, state, selection, where)
        yield from _lines(store, session_id, after, state.last_seq, where)
        if pause is not None:
            yield from _follow(store, session_id, state.last_seq, where, pause)


def _follow(
    store: Store, session_id: str, after: int, where: EventFilter, pause: Callable[[], bool]
) -> Iterator[bytes]:
    poll = store.poll_changes()
    try:
        while True:
            if poll.changed():
                last_seq = store.read_last_seq(session_id)
                yield from _lines(store, session_id, after, last_seq, where)
                after = last_seq
            if not pause():
                return
    finally:
        poll.close()


def _lines(store: Store, session_id: str, after: int, until: int, where: EventFilter) -> Iterator[bytes]:
    while after < until:
        page = store.read_matching(session_id, after, until, where, limits.PAGE_ROWS)
        if page.count:
            yield page.lines
        after = page.last_seq


def _start(store: Store, state: JournalState, selection: Selection, where: EventFilter) -> int:
    if selection.after is None:
        return store.find_start_of_last(state.session_id, state.last_seq, where, selection.last)
    return check_after(state, selection.after)


def _check_run(store: Store, session_id: str, run_id: str | None) -> None:
    if run_id is not None and store.get_run(run_id).session_id != session_id:
        raise NotFound(f"there is no run {run_id} in session {session_id}")
