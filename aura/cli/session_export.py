"""`aura session export`: one session or many, as it is or in another program's format (contract.md, `aura session`).

One session in our own format gets the contract's answer. Many get a line each, and a failure among them makes the
command fail at its end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import click

from aura.cli import streams
from aura.cli.options import RootOptions, json_option
from aura.cli.session_options import open_library, revision_option
from aura.cli.session_transfer_view import (
    export_outcome_fields,
    export_outcome_text,
    exported_fields,
    exported_text,
)
from aura.cli.tally import Tally
from aura.errors import BadRequest
from aura.runtime.exporter import SUFFIXES, Exporter, Outcome

_Say = Callable[[bytes | str], None]


@click.command("export", help="Write sessions to files. The SHA-256 of one in the default format is its revision.")
@click.argument("session_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "take_all", is_flag=True, help="Export all sessions instead of named ones.")
@click.option(
    "--output",
    metavar="FILE",
    required=True,
    help="The file to make, DIR/ for a file per session, or - for standard output; results then go to standard error.",
)
@click.option("--format", "wanted", type=click.Choice(tuple(SUFFIXES)), default="aura", help="What to write.")
@revision_option
@json_option
@click.pass_obj
def command(
    root: RootOptions,
    session_ids: tuple[str, ...],
    take_all: bool,
    output: str,
    wanted: str,
    revision: str | None,
    as_json: bool,
) -> None:
    """Write sessions; a file that is there already is never written over."""
    if bool(session_ids) == take_all:
        raise click.UsageError("Name sessions, or say --all.")
    single = len(session_ids) == 1
    if revision is not None and not single:
        raise BadRequest("--revision is one session's", hint="Name one session.")
    into_directory = output.endswith("/") and (not single or os.path.isdir(output))
    say: _Say = streams.write_stderr if output == "-" else streams.write_stdout
    if single and wanted == "aura" and not into_directory:
        _export_plain(root, session_ids[0], output, revision, say, as_json)
        return
    if into_directory and revision is not None:
        raise BadRequest("--revision needs a file", hint="Name a file, or - for standard output.")
    exporter = Exporter(root.resolve_store_dir(), format=wanted)  # type: ignore[arg-type]  # click checked it
    with closing(exporter):
        ids = exporter.all_ids() if take_all else list(dict.fromkeys(session_ids))
        outcomes = _export(exporter, ids, output, revision, into_directory)
        if single:
            _answer(outcomes, say, as_json)
        else:
            _report(outcomes, say, as_json)


def _export_plain(
    root: RootOptions, session_id: str, output: str, revision: str | None, say: _Say, as_json: bool
) -> None:
    library = open_library(root)
    if output == "-":
        done = library.export_stream(session_id, streams.write_stdout, revision)
    else:
        done = library.export_file(session_id, output, revision)
    say(streams.json_line(exported_fields(done)) if as_json else exported_text(done))


def _export(
    exporter: Exporter, ids: Sequence[str], output: str, revision: str | None, into_directory: bool
) -> Iterable[Outcome]:
    if into_directory:
        return exporter.to_directory(ids, Path(output))
    if output == "-":
        return exporter.to_stream(ids, streams.write_stdout, revision)
    return exporter.to_file(ids, output, revision)


def _answer(outcomes: Iterable[Outcome], say: _Say, as_json: bool) -> None:
    (outcome,) = outcomes
    if outcome.done is None:
        assert outcome.error is not None, "an outcome is done or failed"
        raise outcome.error
    say(streams.json_line(exported_fields(outcome.done)) if as_json else exported_text(outcome.done))


def _report(outcomes: Iterable[Outcome], say: _Say, as_json: bool) -> None:
    tally = Tally()
    for outcome in outcomes:
        say(streams.json_line(export_outcome_fields(outcome)) if as_json else export_outcome_text(outcome))
        done = outcome.done
        tally.add("failed" if done is None else "written" if done.written else "unchanged", outcome.error)
    tally.finish("exports", as_json)
