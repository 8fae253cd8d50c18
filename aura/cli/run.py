"""`aura run PROMPT…`: the host of `aura serve` without HTTP, for people and scripts. It renders; it does not decide.

Prompts come from the arguments, or one from standard input. Ctrl-C cancels the run, which is saved like any other; a
second Ctrl-C stops at once.
"""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from aura import limits
from aura.cli import streams
from aura.cli.hosting import make_log, make_plan
from aura.cli.options import RootOptions
from aura.cli.run_view import EventLines, RunView, View
from aura.clock import SystemClock
from aura.errors import BadRequest
from aura.events import Transient
from aura.jsontypes import JsonObject
from aura.runs import OnInput, Run
from aura.runtime.assembly import Assembly, assemble
from aura.runtime.feeds import Feed
from aura.runtime.follow import follow_run
from aura.runtime.service import Service, check_text
from aura.runtime.signals import ThreadSignal
from aura.runtime.transcript import Transcript

EXIT_CANCELLED = 130


@click.command(
    "run",
    help="Run PROMPTs one after another in one session, new or given by the root flag --resume. "
    "Without a PROMPT, standard input is the prompt. The answer goes to standard output, all else to standard error.",
)
@click.argument("prompts", nargs=-1, metavar="[PROMPT]...")
@click.option("--json", "as_json", is_flag=True, help="Print every event as a line of JSON instead of the answer.")
@click.pass_obj
def command(options: RootOptions, prompts: tuple[str, ...], as_json: bool) -> None:
    """Run the prompts; exit 0 if all of them completed, 1 at the first that did not, 130 after Ctrl-C."""
    texts = [check_text(text, "prompt") for text in prompts or (_read_prompt(),)]
    log = make_log(options)
    output = options.output.absolute() if options.output else None
    assembly = assemble(make_plan(options), url=None, make_signal=ThreadSignal, clock=SystemClock(), log=log)
    view: View = EventLines(sys.stdout) if as_json else RunView(sys.stdout, sys.stderr)
    interactive = bool(prompts) and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    transcript: Transcript | None = None
    with Interruptions().watched() as interruptions:
        try:
            transcript = Transcript(assembly.service, output) if output else None
            last = _run_all(assembly, texts, view, interruptions, "wait" if interactive else "block")
        except Exception:  # the reader of the output is gone, say: the session is saved all the same
            _close(assembly, transcript)
            raise
        _close(assembly, transcript)
    view.end(last, assembly.service.session_id)
    if last.outcome == "completed" and last.state == "persisted" and assembly.service.saved:
        return
    raise SystemExit(EXIT_CANCELLED if interruptions.count and last.outcome == "cancelled" else 1)


def _run_all(assembly: Assembly, texts: list[str], view: View, interruptions: Interruptions, on_input: OnInput) -> Run:
    service = assembly.service
    feed = service.open_feed()
    try:
        for text in texts:
            run = _run_one(service, feed, text, view, interruptions, on_input)
            if run.outcome != "completed":
                return run
        return run
    finally:
        service.release_feed(feed)


def _run_one(
    service: Service, feed: Feed, text: str, view: View, interruptions: Interruptions, on_input: OnInput
) -> Run:
    run = service.submit(uuid.uuid4().hex, "prompt", text, on_input).run

    def tick() -> None:
        if interruptions.count:
            service.cancel_run(run.id)

    for item in follow_run(service, feed, run.id, run.accepted_seq - 1, tick):
        _show(service, run.id, item, view, interruptions)
    return service.get_run(run.id)


def _show(
    service: Service, run_id: str, item: JsonObject | Transient, view: View, interruptions: Interruptions
) -> None:
    if not isinstance(item, dict):
        view.live(item)  # type: ignore[arg-type]
        return
    view.event(item)
    if item["type"] != "input.required":
        return
    try:
        with interruptions.raised():
            reply = view.ask(item)
    except (click.Abort, KeyboardInterrupt):  # Ctrl-C or Ctrl-D instead of an answer
        interruptions.count = max(interruptions.count, 1)
        return
    if reply is not None:
        service.answer_input(run_id, reply.input_id, answer=reply.answer, action=reply.action)


def _close(assembly: Assembly, transcript: Transcript | None) -> None:
    """Settle what still runs, save, and close everything."""
    service = assembly.service
    service.stop("request")
    service.wait_stopped(limits.SETTLE_MS)
    if transcript is not None:
        transcript.close()
    assembly.close()


class Interruptions:
    """Counts Ctrl-C and SIGTERM. The second one raises `KeyboardInterrupt`, so does one inside of `raised`."""

    def __init__(self) -> None:
        self.count = 0
        self._raise_from = 2

    @contextmanager
    def watched(self) -> Iterator[Interruptions]:
        """While the block runs, the signals come here. Main thread only."""
        before = [(number, signal.signal(number, self._note)) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            yield self
        finally:
            for number, handler in before:
                signal.signal(number, handler)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """While the block waits for a person, the first signal ends the wait."""
        self._raise_from = 1
        try:
            yield
        finally:
            self._raise_from = 2

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count >= self._raise_from:
            raise KeyboardInterrupt


def _read_prompt() -> str:
    if sys.stdin.isatty():
        streams.write_stderr("Type the prompt; end it with Ctrl-D.\n")
    text = sys.stdin.buffer.read(limits.BODY_MAX_BYTES).decode("utf-8", "replace")
    if not text.strip():
        raise BadRequest("there is no prompt", hint="Pass it as an argument or on standard input.")
    return text
