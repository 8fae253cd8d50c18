"""`aura evidence`: bundles of a session and its journal that can be checked anywhere, without the store."""

from __future__ import annotations

import click

from aura.cli import evidence_view as view
from aura.cli import streams
from aura.cli.journal_options import Noted, expected_option
from aura.cli.options import RootOptions, json_option


@click.group("evidence", help="Write a session and its journal as evidence, and verify such files without the store.")
def command() -> None:
    """Hold the two commands together."""


@command.command("export", help="Write a session, its journal and their hashes as one file.")
@click.argument("session_id", metavar="ID")
@click.option(
    "--output",
    metavar="FILE",
    required=True,
    help="The tar file to make, or - for standard output; the result then goes to standard error.",
)
@json_option
@click.pass_obj
def export_command(root: RootOptions, session_id: str, output: str, as_json: bool) -> None:
    """Write a bundle; the same state gives the same bytes."""
    view.export(root, session_id, output, as_json=as_json)


@command.command(
    "verify", help="Recompute all hashes of a bundle (- for standard input). Exit code 1 if it does not hold."
)
@click.argument("bundle", metavar="BUNDLE")
@expected_option
@json_option
def verify_command(bundle: str, noted: Noted | None, as_json: bool) -> None:
    """Check a bundle; no store is looked at."""
    from aura.runtime.evidence_check import check_evidence

    expected = (noted.sha256, noted.seq) if noted is not None else (None, None)
    found = check_evidence(bundle, *expected)
    text = view.checked_text(found, bundle)
    streams.write_stdout(streams.json_line(view.checked_fields(found, bundle)) if as_json else text)
    if found.problems:
        raise click.exceptions.Exit(1)
