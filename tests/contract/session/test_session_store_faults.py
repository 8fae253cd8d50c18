"""A store that cannot be used is `store_unavailable`, and stays as it was (interfaces.md section 11)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import apsw
import pytest

UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
EVERY_COMMAND = [
    ("list",),
    ("show", "task-1"),
    ("import", "-"),
    ("export", "task-1", "--output", "out.json"),
    ("fork", "task-1", "--id", "child"),
    ("freeze", "task-1"),
]


def digest(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def settings_of(words, document):
    return {"input": document()} if words[0] == "import" else {}


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=lambda words: words[0])
def test_a_database_that_is_none_is_left_untouched(program, document, words):
    program.store.mkdir(parents=True)
    (program.store / "aura.db").write_bytes(b"this is not a database, " * 400)
    before = digest(program.store)
    error = program.fails("store_unavailable", *words, **settings_of(words, document))
    assert error["hint"]
    assert digest(program.store) == before


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=lambda words: words[0])
def test_a_newer_database_is_left_untouched(program, document, imported, words):
    with apsw.Connection(str(program.store / "aura.db")) as connection:
        connection.execute("PRAGMA user_version = 99").fetchall()
    connection.close()
    before = (program.store / "aura.db").read_bytes()
    error = program.fails("store_unavailable", *words, **settings_of(words, document))
    assert "99" in error["message"] and "newer" in error["hint"]
    assert (program.store / "aura.db").read_bytes() == before


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=lambda words: words[0])
def test_a_database_with_torn_pages_is_reported(program, document, imported, words):
    path = program.store / "aura.db"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + os.urandom(len(data) - 4096))
    program.fails("store_unavailable", *words, **settings_of(words, document))


def test_stored_bytes_that_do_not_hash_to_their_revision_are_not_exported(program, imported):
    connection = apsw.Connection(str(program.store / "aura.db"))
    for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{trigger}"').fetchall()
    connection.execute("""UPDATE message SET body = replace(body, 'retry', 'RETRY')""").fetchall()
    assert connection.changes() > 0
    connection.close()
    error = program.fails("store_unavailable", "export", "task-1", "--output", "out.json")
    assert imported["revision"] in error["message"]
    program.fails("store_unavailable", "export", "task-1", "--output", "-")
    program.fails("store_unavailable", "fork", "task-1", "--id", "child")
    assert [path.name for path in program.cwd.iterdir()] == ["home"]


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=lambda words: words[0])
def test_a_file_where_the_store_should_be_is_reported(program, document, words):
    program.home.mkdir()
    program.store.write_text("mine")
    program.fails("store_unavailable", *words, **settings_of(words, document))
    assert program.store.read_text() == "mine"


def test_a_write_home_below_a_file_cannot_be_made(program, document):
    program.home.write_text("mine")
    below = type(program)(program.cwd, program.home / "deeper")
    below.fails("store_unavailable", "import", "-", input=document())
    assert below.json("list")["sessions"] == []


@pytest.fixture
def shared(program, imported):
    """The same store, not writable. Root's program runs without the right to ignore that."""
    if os.getuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv to give that up")
    directory = Path(tempfile.mkdtemp(prefix="aura-test-"))
    try:
        shutil.copytree(program.home, directory / "home")
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield type(program)(directory, directory / "home", UNPRIVILEGED if os.getuid() == 0 else ())
    finally:
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(directory)


def test_a_read_only_store_is_read(shared, imported):
    before = digest(shared.store)
    assert shared.json("list")["sessions"] == [imported]
    assert "held by    nobody" in shared.text("show", "task-1")
    assert shared.run("export", "task-1", "--output", "-").exit_code == 0
    assert digest(shared.store) == before


def test_a_read_only_store_is_not_written(shared, document, imported):
    before = digest(shared.store)
    shared.fails("store_unavailable", "fork", "task-1", "--id", "child")
    shared.fails("store_unavailable", "freeze", "task-1")
    shared.fails("store_unavailable", "import", "-", "--id", "new", input=document())
    assert digest(shared.store) == before


def test_an_output_directory_that_cannot_be_written_is_a_bad_request(shared):
    error = shared.fails("bad_request", "export", "task-1", "--output", "out.json")
    assert "Permission denied" in error["message"]


def test_a_store_that_cannot_be_looked_into_is_reported(shared):
    shared.home.chmod(0o000)
    shared.fails("store_unavailable", "list")
    shared.home.chmod(0o555)
    (shared.store / "aura.db").chmod(0o000)
    shared.fails("store_unavailable", "list")


def test_a_file_to_import_that_cannot_be_read_is_a_bad_request(shared):
    (shared.cwd / "home" / "sessions" / "aura.db").chmod(0o000)
    shared.fails("bad_request", "import", "home/sessions/aura.db")
