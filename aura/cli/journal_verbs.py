"""`aura journal export`, `import` and `stats`: one verb of `aura.runtime` each, and one answer (interfaces.md 7)."""

from __future__ import annotations

import click

from aura.cli import evidence_view, streams
from aura.cli import journal_view as view
from aura.cli.options import RootOptions, json_option
from aura.runtime.journal import Journals


@click.command("export", help="Write a session's journal, one event per line, to a file.")
@click.argument("session_id", metavar="ID")
@click.option(
    "--output",
    metavar="FILE",
    required=True,
    help="The file to make, or - for standard output; the result then goes to standard error.",
)
@click.option("--after", metavar="SEQ", type=click.IntRange(0), help="Only events after this one.")
@click.option("--evidence", is_flag=True, help="Write an evidence bundle instead, as `aura evidence export` does.")
@json_option
@click.pass_obj
def export_command(
    root: RootOptions, session_id: str, output: str, after: int | None, evidence: bool, as_json: bool
) -> None:
    """Write the exact bytes that are served."""
    if evidence and after is not None:
        raise click.UsageError("an evidence bundle holds the whole journal: leave --after out")
    if evidence:
        evidence_view.export(root, session_id, output, as_json=as_json)
        return
    journals = Journals(root.resolve_store_dir())
    if output == "-":
        done = journals.export_stream(session_id, streams.write_stdout, after)
    else:
        done = journals.export_file(session_id, output, after)
    answer = streams.json_line(view.exported_fields(done)) if as_json else view.exported_text(done)
    if output == "-":
        streams.write_stderr(answer)
    else:
        streams.write_stdout(answer)


@click.command("import", help="Store the journal in FILE (- for standard input) in an existing session that has none.")
@click.argument("file", metavar="FILE")
@click.option("--id", "session_id", metavar="ID", help="The session.  [default: the one that the journal names]")
@json_option
@click.pass_obj
def import_command(root: RootOptions, file: str, session_id: str | None, as_json: bool) -> None:
    """Store a journal; a torn last line is left out with a warning."""
    from aura.runtime.journal_import import import_journal

    done = import_journal(root.resolve_store_dir(), file, session_id)
    if as_json:
        streams.write_stdout(streams.json_line(view.imported_fields(done)))
        return
    for warning in done.warnings:
        streams.write_stderr(f"warning: {warning}\n")
    streams.write_stdout(view.imported_text(done))


@click.command("stats", help="Count a journal's events and bytes by type and by run.")
@click.argument("session_id", metavar="ID")
@json_option
@click.pass_obj
def stats_command(root: RootOptions, session_id: str, as_json: bool) -> None:
    """Print a journal in numbers."""
    stats = Journals(root.resolve_store_dir()).read_stats(session_id)
    streams.write_stdout(streams.json_line(view.stats_fields(stats)) if as_json else view.stats_text(stats))
