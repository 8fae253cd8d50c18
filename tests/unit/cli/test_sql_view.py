"""Answers in four shapes: NULL stays apart from texts, blobs are hex, and a table fits its terminal."""

from __future__ import annotations

import csv
import io
import json

import pytest

from aura.cli.sql import parse_parameter
from aura.cli.sql_view import Shape, cell_text, distinct, make_printer, table_text
from aura.cli.table import width
from aura.errors import BadRequest
from aura.runtime.sql import End, Head, Row, Rows

HEAD = ("n", "text", "blob", "nothing", "n")
ROW: Row = (1, 'a "b", c', b"\x00\xff", None, 2.5)
EMPTY: Row = (-3, "", b"", None, float("inf"))


def printed(capfdbinary: pytest.CaptureFixture[bytes], shape: Shape, *rows: Row, cut: bool = False) -> str:
    printer = make_printer(shape)
    for part in (Head(HEAD), Rows(list(rows)), End(cut)):
        printer.take(part)
    return capfdbinary.readouterr().out.decode()


def test_json_is_one_object(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    answer = json.loads(printed(capfdbinary, "json", ROW, EMPTY, cut=True))
    assert answer == {
        "columns": ["n", "text", "blob", "nothing", "n_2"],
        "rows": [
            {"n": 1, "text": 'a "b", c', "blob": "00ff", "nothing": None, "n_2": 2.5},
            {"n": -3, "text": "", "blob": "", "nothing": None, "n_2": "inf"},
        ],
        "truncated": True,
    }


def test_ndjson_is_one_object_a_row(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    lines = printed(capfdbinary, "ndjson", ROW, EMPTY).splitlines()
    assert [json.loads(line)["n"] for line in lines] == [1, -3]


def test_csv_keeps_null_and_the_empty_text_apart(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = printed(capfdbinary, "csv", ROW, EMPTY)
    assert text == 'n,text,blob,nothing,n\n1,"a ""b"", c",00ff,,2.5\n-3,"",,,inf\n'
    assert list(csv.reader(io.StringIO(text)))[1] == ["1", 'a "b", c', "00ff", "", "2.5"]


def test_a_table_keeps_null_and_texts_apart(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert printed(capfdbinary, "table", ROW, EMPTY) == (
        " n  text      blob  nothing    n\n"
        "--  --------  ----  -------  ---\n"
        ' 1  a "b", c  00ff     NULL  2.5\n'
        "-3                     NULL  inf\n"
    )


@pytest.mark.parametrize("shape", ["table", "json"])
def test_what_is_printed_whole_is_not_begun_before_its_end(
    capfdbinary: pytest.CaptureFixture[bytes], shape: Shape
) -> None:
    printer = make_printer(shape)
    printer.take(Head(HEAD))
    printer.take(Rows([ROW]))
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize("shape", ["ndjson", "csv"])
def test_what_is_printed_by_rows_leaves_at_once(capfdbinary: pytest.CaptureFixture[bytes], shape: Shape) -> None:
    printer = make_printer(shape)
    printer.take(Head(HEAD))
    printer.take(Rows([ROW]))
    assert b"2.5" in capfdbinary.readouterr().out


def test_a_text_that_reads_like_null_is_quoted() -> None:
    assert [cell_text(None), cell_text("NULL"), cell_text("null"), cell_text("")] == ["NULL", "'NULL'", "null", ""]


def test_a_cell_has_no_control_character() -> None:
    assert cell_text("a\x1b[31m\n\tb") == "a [31m b"


@pytest.mark.parametrize("columns", [24, 40, 79, 200])
def test_a_table_fits_the_terminal(columns: int) -> None:
    rows: list[Row] = [("a short one", "x" * 150, 12345), ("日本語" * 20, "y", 7)]
    lines = table_text(("first", "second", "third"), rows, columns).splitlines()
    assert max(map(width, lines)) <= columns
    assert lines[0].split() == ["first", "second", "third"] or columns < 30
    assert any(line.endswith("12345") for line in lines), "numbers are not cut while texts can be"


def test_rows_that_do_not_fit_are_shown_as_blocks() -> None:
    text = table_text(tuple(f"column_{n}" for n in range(9)), [tuple("z" * 50 for _ in range(9))] * 2, 60)
    lines = text.splitlines()
    assert lines[0] == "-- row 1 --" and lines[10] == "-- row 2 --" and lines[1].startswith("column_0  zzz")
    assert max(map(width, lines)) <= 60


def test_a_table_without_rows_is_its_head() -> None:
    assert table_text(("a", "bc"), [], None) == "a  bc\n-  --\n"


def test_a_statement_without_columns_prints_nothing() -> None:
    assert table_text((), [], None) == ""


def test_keys_of_an_object_are_distinct() -> None:
    assert distinct(["a", "b", "a", "a", "a_2"]) == ["a", "b", "a_2", "a_3", "a_2_2"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n=0", 0),
        ("n=-12", -12),
        ("n=1.5", 1.5),
        ("n=007", "007"),
        ("n=1e5", "1e5"),
        ("n=2026-01-01", "2026-01-01"),
        ("n=", ""),
        ("n=a=b", "a=b"),
        ("n=99999999999999999999", "99999999999999999999"),
    ],
)
def test_a_parameter_that_looks_like_a_number_is_one(text: str, value: object) -> None:
    name, parsed = parse_parameter(text)
    assert (name, parsed, type(parsed)) == ("n", value, type(value))


@pytest.mark.parametrize("text", ["n", "=1", "1n=1", "a b=1", ":n=1"])
def test_a_parameter_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="is not NAME=VALUE"):
        parse_parameter(text)
