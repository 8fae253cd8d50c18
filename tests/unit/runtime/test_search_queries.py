"""What a person types, as an FTS5 expression; and snippets without their marks."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aura.errors import BadRequest
from aura.runtime.search import make_expression, split_snippet


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("retry", '"retry"'),
        ("retry  flag", '"retry" AND "flag"'),
        ('"retry flag" now', '"retry flag" AND "now"'),
        ("retr*", '"retr*" *'),
        ('"retry fl"*', '"retry fl" *'),
        ("src/login.py", '"src/login.py"'),
        ("a OR b NOT c", '"a" AND "OR" AND "b" AND "NOT" AND "c"'),
        ("content:x ^y (z) NEAR(a)", '"content:x" AND "^y" AND "(z)" AND "NEAR(a)"'),
        ("-> x -- ;", '"x"'),
        ('an "open phrase', '"an" AND "open phrase"'),
        ('half"quoted"word', '"half" AND "quoted" AND "word"'),
        ("日本語", '"日本語"'),
    ],
)
def test_words_phrases_and_beginnings_are_all_that_has_a_meaning(text, expression):
    assert make_expression(text) == expression


@pytest.mark.parametrize("text", ["", "  ", "->", '""', '"-" *', "***"])
def test_without_a_letter_or_a_digit_there_is_nothing_to_search_for(text):
    with pytest.raises(BadRequest):
        make_expression(text)


@pytest.fixture(scope="module")
def index():
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(content)").fetchall()
    connection.execute("INSERT INTO t VALUES ('a')").fetchall()
    yield connection
    connection.close()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_whatever_is_typed_is_an_expression_that_fts5_understands(index, text):
    try:
        expression = make_expression(text)
    except BadRequest:
        return
    index.execute("SELECT * FROM t WHERE t MATCH ?", (expression,)).fetchall()


def test_a_snippet_says_where_its_words_are():
    assert split_snippet("a \x02fox\x03 and \x02foxes\x03…") == ("a fox and foxes…", ((2, 5), (10, 15)))
    assert split_snippet("nothing") == ("nothing", ())


def test_marks_that_stand_in_the_text_itself_do_no_harm():
    assert split_snippet("\x03a \x02b\x02c\x03 \x02") == ("a bc ", ((3, 4),))
