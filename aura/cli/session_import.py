"""`aura session import`: one conversation or many (contract.md, `aura session`; interfaces.md 3, 4, 9 and 11).

One plain input that holds one conversation gets the contract's answer. Many get a line each, and a failure among them
makes the command fail at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain

import click

from aura.cli import streams
from aura.cli.options import RootOptions, json_option
from aura.cli.progress import Progress
from aura.cli.session_transfer_view import import_text, imported_fields, outcome_fields, outcome_text, warnings_text
from aura.cli.tally import Tally
from aura.errors import AuraError, BadRequest
from aura.runtime.importer import Importer, Input, Outcome
from aura.runtime.inputs import find_inputs, is_plain

FORMATS = ("auto", "aura", "openai", "claude-code", "codex")


@click.command("import", help="Store the conversations in FILEs (- for standard input), directories and patterns.")
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option("--id", "session_id", metavar="ID", help="Store it under this id.  [default: the document's own]")
@click.option("--format", "wanted", type=click.Choice(FORMATS), default="auto", help="What the files hold.")
@click.option(
    "--on-conflict",
    type=click.Choice(("fail", "skip", "fork")),
    default="fail",
    help="When another conversation has the id: fail, keep that one, or store this one beside it.  [default: fail]",
)
@click.option("--freeze", is_flag=True, help="Freeze the stored sessions, for ever.")
@json_option
@click.pass_obj
def command(
    root: RootOptions,
    names: tuple[str, ...],
    session_id: str | None,
    wanted: str,
    on_conflict: str,
    freeze: bool,
    as_json: bool,
) -> None:
    """Store conversations; the same ones again change nothing."""
    if session_id is not None and not _is_single(names):
        raise BadRequest("--id names one session, and there may be several", hint="Import them without --id.")
    importer = Importer(
        root.resolve_store_dir(),
        format=None if wanted == "auto" else wanted,  # type: ignore[arg-type]  # click checked it
        session_id=session_id,
        freeze=freeze,
        on_conflict=on_conflict,  # type: ignore[arg-type]  # click checked it
    )
    with closing(importer):
        if _is_single(names):
            _import_single(importer, names[0], as_json)
        else:
            _import_many(importer, names, as_json)


def _is_single(names: Sequence[str]) -> bool:
    return len(names) == 1 and is_plain(names[0])


def _import_single(importer: Importer, name: str, as_json: bool) -> None:
    """Import one file, which may still hold several documents."""
    (source,) = find_inputs(name)
    outcomes = importer.import_input(source)
    first = next(outcomes, None)
    second = next(outcomes, None)
    if first is None or second is not None:
        known = chain((item for item in (first, second) if item is not None), outcomes)
        _report(known, Progress(source.bytes_count), as_json)
        return
    if first.error is not None:
        raise first.error
    assert first.done is not None, "an outcome without an error is done"
    if as_json:
        streams.write_stdout(streams.json_line(imported_fields(first.done)))
    else:
        streams.write_stdout(import_text(first.done) + warnings_text(first.done))


def _import_many(importer: Importer, names: Sequence[str], as_json: bool) -> None:
    found = [find_inputs(names[0])] if len(names) == 1 else [_find(name) for name in names]
    sources = [item for part in found if not isinstance(part, Outcome) for item in part]
    progress = Progress(sum(source.bytes_count for source in sources))
    _report(_outcomes(importer, found), progress, as_json)


def _find(name: str) -> Sequence[Input] | Outcome:
    try:
        return find_inputs(name)
    except AuraError as error:
        return Outcome(name, None, error=error)


def _outcomes(importer: Importer, found: Sequence[Sequence[Input] | Outcome]) -> Iterator[Outcome]:
    for part in found:
        if isinstance(part, Outcome):
            yield part
            continue
        for source in part:
            yield from importer.import_input(source)


def _report(outcomes: Iterator[Outcome], progress: Progress, as_json: bool) -> None:
    tally = Tally()
    for outcome in outcomes:
        progress.hide()
        streams.write_stdout(streams.json_line(outcome_fields(outcome)) if as_json else outcome_text(outcome))
        tally.add(_verdict(outcome), outcome.error)
        progress.advance(outcome.bytes_count)
    progress.hide()
    tally.finish("imports", as_json)


def _verdict(outcome: Outcome) -> str:
    if outcome.done is None:
        return "failed"
    return outcome.done.conflict or ("imported" if outcome.done.created else "already there")
