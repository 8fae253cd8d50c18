"""`aura store`: the database as a whole: is it sound, copy it, make it smaller, what is in it (docs/store.md).

Each command is one verb of `aura.runtime.care`, and one answer. Errors are raised, not printed.
"""

from __future__ import annotations

import sys

import click

from aura import limits
from aura.cli import store_view as view
from aura.cli import streams
from aura.cli.ages import read_age
from aura.cli.options import RootOptions, json_option
from aura.errors import BadRequest
from aura.runtime.care import Care, PruneRequest, What

EXIT_FINDINGS = 1


@click.group("store", help="The database as a whole: check, backup, prune, stats, vacuum, path. No server is needed.")
def command() -> None:
    """Group the commands; there is nothing to do before them."""


@command.command("path", help="Print where the database is.")
@json_option
@click.pass_obj
def path_command(root: RootOptions, as_json: bool) -> None:
    """Print the file's name, whether or not it is there yet."""
    path = _care(root).path
    streams.write_stdout(streams.json_line({"path": str(path), "exists": path.exists()}) if as_json else f"{path}\n")


@command.command("check", help="Tell whether the store is sound. Exit code 1 when something was found.")
@click.option("--quick", is_flag=True, help="Leave out hashes and what else takes long.")
@click.option("--repair", is_flag=True, help="Put right what can be put right without losing anything.")
@json_option
@click.pass_obj
def check_command(root: RootOptions, quick: bool, repair: bool, as_json: bool) -> None:
    """Check the store, and perhaps repair it."""
    with view.Meter() as meter:
        report = _care(root).check(quick=quick, repair=repair, progress=meter.show)
    streams.write_stdout(streams.json_line(view.check_fields(report, quick)) if as_json else view.check_text(report))
    if not report.clean:
        raise click.exceptions.Exit(EXIT_FINDINGS)


@command.command("backup", help="Copy the store to the file TARGET while servers write, and verify the copy.")
@click.argument("target", metavar="TARGET")
@json_option
@click.pass_obj
def backup_command(root: RootOptions, target: str, as_json: bool) -> None:
    """Make a copy, which is a plain database file."""
    with view.Meter() as meter:
        done = _care(root).back_up(target, meter.show)
    streams.write_stdout(streams.json_line(view.backup_fields(done)) if as_json else view.backup_text(done))


@command.command("prune", help="Remove old sessions, or with a flag only old revisions or events.")
@click.option("--older-than", metavar="AGE", callback=read_age, help="Only what is older: 30d, 12h, 90m, 2w.")
@click.option("--keep", metavar="N", type=click.IntRange(0), help="Leave the N most recently updated sessions alone.")
@click.option("--revisions-only", is_flag=True, help="Remove old revisions and keep the sessions.")
@click.option(
    "--keep-revisions",
    metavar="N",
    type=click.IntRange(1),
    help="With --revisions-only: keep the N newest of each session.  [default: 1]",
)
@click.option("--journal", is_flag=True, help="Remove old events and keep the sessions.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def prune_command(
    root: RootOptions,
    older_than: int | None,
    keep: int | None,
    revisions_only: bool,
    keep_revisions: int | None,
    journal: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Say what would go, ask, and remove it."""
    if revisions_only and journal:
        raise BadRequest("--revisions-only and --journal exclude each other", hint="Run the command twice.")
    if keep_revisions is not None and not revisions_only:
        raise BadRequest("--keep-revisions goes with --revisions-only", hint="Add --revisions-only.")
    if older_than is None and keep is None and not revisions_only:
        raise BadRequest("nothing says what is old", hint="Give --older-than, --keep, or both.")
    what: What = "revisions" if revisions_only else "journal" if journal else "sessions"
    request = PruneRequest(what, older_than, keep or 0, keep_revisions or 1)
    care = _care(root)
    if not dry_run and not yes:
        _confirm(care, request)
    with view.Meter() as meter:
        report = care.prune(request, dry_run=dry_run, progress=meter.show)
    streams.write_stdout(streams.json_line(view.prune_fields(report)) if as_json else view.prune_text(report))


@command.command("stats", help="Show what takes how many bytes, and how the store grows.")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(1, limits.STATS_DAYS_MAX_COUNT),
    default=limits.STATS_DAYS_DEFAULT_COUNT,
    show_default=True,
    help="Days of growth to show.",
)
@json_option
@click.pass_obj
def stats_command(root: RootOptions, days: int, as_json: bool) -> None:
    """Measure the store."""
    stats = _care(root).measure(days)
    streams.write_stdout(streams.json_line(view.stats_fields(stats)) if as_json else view.stats_text(stats))


@command.command("vacuum", help="Give free pages back to the file system. No process may hold a session.")
@json_option
@click.pass_obj
def vacuum_command(root: RootOptions, as_json: bool) -> None:
    """Write the file anew."""
    done = _care(root).vacuum()
    streams.write_stdout(streams.json_line(view.vacuum_fields(done)) if as_json else view.vacuum_text(done))


def _confirm(care: Care, request: PruneRequest) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise BadRequest("nobody can be asked", hint="Look with --dry-run first, then say --yes.")
    plan = care.prune(request, dry_run=True)
    streams.write_stderr(view.prune_text(plan))
    click.confirm("Remove it?", abort=True, err=True)


def _care(root: RootOptions) -> Care:
    return Care(root.resolve_store_dir())
