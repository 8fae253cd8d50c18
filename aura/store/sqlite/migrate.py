"""Brings a database to this program's schema: numbered SQL files, forward only.

A step and its record commit together, so a crash leaves either the old schema or the new one. A newer database, or one
that is not aura's, is refused untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import apsw

from aura.errors import StoreUnavailable
from aura.store.sqlite.database import fetch_one

APPLICATION_ID = 0x41555241  # "AURA", shown by file(1)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, its name, and the statements that lead from the schema before it to its own."""

    number: int
    name: str
    sql: str


def count_migrations() -> int:
    """Return the number of the newest schema, without reading the steps."""
    return len(_files())


def read_migrations() -> tuple[Migration, ...]:
    """Return all steps in order, from the package's files `NNNN_name.sql`."""
    steps = tuple(Migration(int(file.name[:4]), file.stem[5:], file.read_text()) for file in _files())
    assert [step.number for step in steps] == list(range(1, len(steps) + 1)), "migrations are numbered without gaps"
    return steps


def _files() -> list[Path]:
    # Not importlib.resources: it takes longer to import than all of this package, and the wheel is never a zip file.
    return sorted((Path(__file__).parent / "migrations").glob("*.sql"))


def find_version(connection: apsw.Connection) -> int:
    """Return the number of the last step applied, 0 for an empty database.

    Raises `StoreUnavailable` for a database that is not aura's.
    """
    if _pragma(connection, "application_id") != APPLICATION_ID and _is_foreign(connection):
        raise StoreUnavailable("the file is a database of another program", hint="Choose another write home.")
    return _pragma(connection, "user_version")


def check_not_newer(version: int, known: int) -> None:
    """Raise `StoreUnavailable` if the database has a schema that this program does not know."""
    if version > known:
        raise StoreUnavailable(
            f"the database has schema {version}, this program knows up to {known}",
            hint="Use the newer aura that wrote it.",
        )


def migrate(connection: apsw.Connection, steps: tuple[Migration, ...]) -> int:
    """Apply the steps that are missing and return how many; the caller holds the writers' file lock."""
    version = find_version(connection)
    check_not_newer(version, len(steps))
    for step in steps[version:]:
        connection.execute("BEGIN IMMEDIATE").fetchall()
        try:
            connection.execute(step.sql).fetchall()
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
            connection.execute(f"PRAGMA user_version = {step.number}").fetchall()
            connection.execute("COMMIT").fetchall()
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK").fetchall()
            raise
    return len(steps) - version


def _is_foreign(connection: apsw.Connection) -> bool:
    # One statement, one snapshot: another process may be making the database at this moment.
    sql = """
        SELECT application_id NOT IN (0, ?1)
            OR application_id = 0 AND (user_version <> 0 OR EXISTS (SELECT 1 FROM sqlite_schema))
        FROM pragma_application_id, pragma_user_version
    """
    return fetch_one(connection, sql, APPLICATION_ID) != (0,)


def _pragma(connection: apsw.Connection, name: str) -> int:
    row = fetch_one(connection, f"PRAGMA {name}")
    assert row is not None and isinstance(row[0], int)
    return row[0]
