"""Other people's SQL, read-only by construction: a read-only connection, and an authorizer that knows what reading is.

It runs one statement at a time under a deadline and a row limit. It knows no table, and writes nothing, not even where
SQLite would let a reader do so (ATTACH, VACUUM INTO, temporary tables).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import apsw

from aura import limits
from aura.errors import BadRequest
from aura.store.sqlite.database import Row, SqlValue, close_connection, fetch_all
from aura.store.sqlite.errors import translate, translated

_READING = frozenset((apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE))
_PRAGMAS_WITH_NAME = frozenset(
    ("table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list", "foreign_key_check")
)
_PRAGMAS_ALONE = frozenset(
    ("table_list", "database_list", "collation_list", "function_list", "compile_options", "page_count", "page_size")
    + ("freelist_count", "encoding", "journal_mode", "user_version", "application_id", "data_version")
    + ("schema_version", "integrity_check", "quick_check", "foreign_key_check")
)
_BLANK = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


class Sink(Protocol):
    """Takes an answer while its statement runs, on the same thread."""

    def is_wanted(self) -> bool:
        """Tell whether somebody still waits for the answer; asked again and again while the statement runs."""

    def head(self, columns: tuple[str, ...]) -> None:
        """Take the names of the columns, once, before any row."""

    def rows(self, rows: list[Row]) -> bool:
        """Take some rows. False ends the statement: nobody wants more, or the deadline passed meanwhile."""


@dataclass(frozen=True, slots=True)
class View:
    """A public view and its columns, in order."""

    name: str
    columns: tuple[str, ...]


class QueryTimeout(BadRequest):
    """The statement ran into its deadline."""


def split_statements(text: str) -> tuple[str, ...]:
    """Return the statements of `text`, without what is only white space and comments."""
    statements, begun = [], ""
    for piece in re.split(r"(?<=;)", text):
        begun += piece
        if apsw.complete(begun):
            statements.append(begun.strip())
            begun = ""
    return tuple(statement for statement in (*statements, begun.strip()) if not _BLANK.fullmatch(statement))


def is_complete(text: str) -> bool:
    """Tell whether `text` ends with a whole statement, semicolon included."""
    return apsw.complete(text)


class QueryConnection:
    """A connection for questions. One thread at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Take over a read-only connection. Raises `StoreUnavailable`."""
        self._connection = connection
        self._deadline = 0.0
        self._sink: Sink | None = None
        with translated():
            self._views = self._read_views()
            self._connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            self._connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            fetch_all(self._connection, "PRAGMA query_only = ON")
        self._connection.set_progress_handler(self._is_over, limits.SQL_TICK_STEPS)
        self._connection.authorizer = _authorize

    @property
    def views(self) -> tuple[View, ...]:
        """The public views, by name."""
        return self._views

    def execute(
        self, statement: str, parameters: Mapping[str, SqlValue], sink: Sink, *, deadline: float, row_limit: int | None
    ) -> bool:
        """Run one statement and give its answer to `sink`; return whether the row limit cut it.

        `deadline` is a time of the monotonic clock. When this returns or raises, the read transaction is over. Raises
        `QueryTimeout` after the deadline or when nobody wants the answer, `BadRequest` for SQL that is wrong, that
        would write, or that lacks a parameter, and `StoreUnavailable`.
        """
        self._deadline, self._sink = deadline, sink
        cursor = self._connection.cursor()
        try:
            return self._run(cursor, statement, parameters, sink, row_limit)
        except apsw.InterruptError as error:
            raise QueryTimeout("the query was stopped") from error
        except (apsw.AuthError, apsw.ReadOnlyError) as error:
            raise BadRequest(
                f"only reading is allowed here: {error}",
                hint="SELECT, EXPLAIN and PRAGMAs that describe the schema. Nothing can be written or attached.",
            ) from error
        except (apsw.SQLError, apsw.TooBigError, apsw.MismatchError, apsw.RangeError) as error:
            raise BadRequest(f"{error}{_place(statement, error)}") from error
        except KeyError as error:
            raise BadRequest(
                f"the query's parameter :{error.args[0]} has no value", hint=f"Add -p {error.args[0]}=VALUE."
            ) from error
        except apsw.BindingsError as error:
            raise BadRequest(
                "a parameter of the query has no name", hint="Write :name, and give it with -p name=VALUE."
            ) from error
        except UnicodeError as error:
            raise BadRequest("a text of the query or of its answer is not UTF-8") from error
        except (apsw.Error, OSError) as error:
            raise translate(error) from error
        finally:
            self._sink = None
            cursor.close(True)

    def close(self) -> None:
        """Close the connection."""
        close_connection(self._connection)

    def _run(
        self,
        cursor: apsw.Cursor,
        statement: str,
        parameters: Mapping[str, SqlValue],
        sink: Sink,
        row_limit: int | None,
    ) -> bool:
        def begin(_: apsw.Cursor, __: str, ___: object) -> bool:
            if cursor.description_full is not None:
                sink.head(tuple(column[0] for column in cursor.description_full))
            return True

        cursor.exec_trace = begin
        cursor.execute(statement, dict(parameters))
        batch: list[Row] = []
        due = 0.0
        for count, row in enumerate(cursor):
            if count == row_limit:
                _hand_over(sink, batch)
                return True
            batch.append(cast(Row, row))
            if len(batch) == limits.SQL_BATCH_ROWS or time.monotonic() >= due:
                _hand_over(sink, batch)
                batch, due = [], time.monotonic() + limits.SQL_BATCH_MS / 1000
        _hand_over(sink, batch)
        return False

    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline or (self._sink is not None and not self._sink.is_wanted())

    def _read_views(self) -> tuple[View, ...]:
        sql = r"""
            SELECT v.name, c.name FROM sqlite_schema v, pragma_table_info(v.name) c
            WHERE v.type = 'view' AND v.name LIKE 'v\_%' ESCAPE '\' ORDER BY v.name, c.cid
        """
        columns: dict[str, list[str]] = {}
        for view, column in cast("list[tuple[str, str]]", fetch_all(self._connection, sql)):
            columns.setdefault(view, []).append(column)
        return tuple(View(name, tuple(names)) for name, names in columns.items())


def _authorize(operation: int, first: str | None, second: str | None, _: str | None, __: str | None) -> int:
    if operation == apsw.SQLITE_FUNCTION:
        return apsw.SQLITE_DENY if second == "load_extension" else apsw.SQLITE_OK
    if operation == apsw.SQLITE_PRAGMA:
        allowed = _PRAGMAS_ALONE if second is None else _PRAGMAS_WITH_NAME
        return apsw.SQLITE_OK if (first or "").lower() in allowed else apsw.SQLITE_DENY
    return apsw.SQLITE_OK if operation in _READING else apsw.SQLITE_DENY


def _hand_over(sink: Sink, batch: list[Row]) -> None:
    if batch and not sink.rows(batch):
        raise QueryTimeout("the query was stopped")


def _place(statement: str, error: Exception) -> str:
    offset = getattr(error, "error_offset", -1)
    if offset < 0 or "\n" not in statement:
        return ""
    return f" (line {statement.encode()[:offset].count(10) + 1})"
