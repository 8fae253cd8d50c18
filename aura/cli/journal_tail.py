"""`aura journal tail`: events as JSON lines, and those to come, from any process's server.

It ends by Ctrl-C (130), SIGTERM (143), or when the reader of its output is gone (141), and never within a line.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from aura import limits
from aura.cli import streams
from aura.cli.options import RootOptions
from aura.runtime.tail import Selection, tail
from aura.wire.event_reader import EVENT_TYPES


@click.command(
    "tail",
    help="Print a session's last events as JSON lines; with --follow those to come, too, whoever writes them.",
)
@click.argument("session_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is appended, until Ctrl-C.")
@click.option("--after", metavar="SEQ", type=click.IntRange(0), help="Begin after this event; 0 for all of them.")
@click.option(
    "-n",
    "--last",
    metavar="N",
    type=click.IntRange(0),
    help=f"Begin with the last N events that are selected.  [default: {limits.TAIL_DEFAULT_COUNT}]",
)
@click.option(
    "--type", "types", metavar="TYPE", multiple=True, type=click.Choice(EVENT_TYPES), help="Only this type; repeatable."
)
@click.option("--run", "run_id", metavar="RUN", help="Only events of this run.")
@click.option("--json", "as_json", is_flag=True, help="Report a failure as one JSON object. Events are JSON anyway.")
@click.pass_obj
def command(
    root: RootOptions,
    session_id: str,
    follow: bool,
    after: int | None,
    last: int | None,
    types: tuple[str, ...],
    run_id: str | None,
    as_json: bool,
) -> None:
    """Print events; each is complete when it is flushed."""
    if after is not None and last is not None:
        raise click.UsageError("--after and --last both say where to begin: give one of them")
    selection = Selection(after, limits.TAIL_DEFAULT_COUNT if last is None else last, types, run_id)
    with EndSignals.watched() as ended:
        for piece in tail(root.resolve_store_dir(), session_id, selection, ended.pause if follow else None):
            streams.write_stdout(piece)
            if ended.number is not None:
                break
    if ended.number is not None:
        raise click.exceptions.Exit(128 + ended.number)


class EndSignals:
    """Notes the first signal to end; a second one ends at once. Main thread."""

    def __init__(self, wake_fd: int) -> None:
        self.number: int | None = None
        self._poll = select.poll()
        self._poll.register(wake_fd, select.POLLIN)
        if sys.stdout is not None:
            self._poll.register(sys.stdout.fileno(), 0)  # says only that nobody reads it any more

    @classmethod
    @contextmanager
    def watched(cls) -> Iterator[EndSignals]:
        """While the block runs, SIGINT and SIGTERM come here."""
        wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        ended = cls(wake)
        before_fd = signal.set_wakeup_fd(waker)
        before = [(number, signal.signal(number, ended._note)) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            yield ended
        finally:
            for number, handler in before:
                signal.signal(number, handler)
            signal.set_wakeup_fd(before_fd)
            os.close(wake)
            os.close(waker)

    def pause(self) -> bool:
        """Wait a moment; return False if it is time to end. Raises `BrokenPipeError` when nobody reads any more."""
        ready = self._poll.poll(limits.TAIL_POLL_MS)
        if any(event & (select.POLLERR | select.POLLNVAL) for _, event in ready):
            raise BrokenPipeError
        return self.number is None

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number
