"""scripts/quickstart as a newcomer runs it: from another directory, twice at once, with a crash, with bad input.

Everything it claims is checked again from outside: with its exit status, the database it leaves, and the test itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
RUN_S = 240  # seconds: a first call makes the virtual environment; all others take under ten
GONE_S = 10

pytestmark = pytest.mark.timeout(RUN_S + 30)


@dataclass(frozen=True, slots=True)
class Shown:
    """How a quickstart ended, and the directory that it made, None when it left none."""

    status: int
    out: str
    err: str
    root: Path | None

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Ask the database that it left."""
        assert self.root is not None
        uri = f"{(self.root / '.aura/sessions/aura.db').as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute(sql).fetchall()


@contextmanager
def started(folder: Path, *arguments: str, **variables: str):
    """Start scripts/quickstart in `folder`, with its temporary directory there; its whole group ends with the block."""
    folder.mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"TMPDIR": str(folder), "NO_COLOR": "1", "COLUMNS": "120", **variables}
    process = subprocess.Popen(
        [str(CHECKOUT / "scripts/quickstart"), *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def finish(process: subprocess.Popen[str], folder: Path) -> Shown:
    """Wait for its end."""
    out, err = process.communicate(timeout=RUN_S)
    made = list(folder.glob("aura-quickstart-*"))
    assert len(made) < 2
    assert "Traceback" not in out + err
    return Shown(process.returncode, out, err, made[0] if made else None)


def quickstart(folder: Path, *arguments: str, **variables: str) -> Shown:
    """Run scripts/quickstart to its end."""
    with started(folder, *arguments, **variables) as process:
        return finish(process, folder)


def passes(shown: Shown) -> bool:
    """Run the project's test as it stands now."""
    assert shown.root is not None
    test = [sys.executable, "-m", "unittest"]
    return subprocess.run(test, cwd=shown.root / "workspace", capture_output=True, timeout=GONE_S).returncode == 0


def assert_exported_bytes_are_the_revision(shown: Shown) -> None:
    assert shown.root is not None
    digest = hashlib.sha256((shown.root / "fix-slug.json").read_bytes()).hexdigest()
    assert shown.query("SELECT revision FROM v_session") == [(digest,)]
    assert shown.out.count(digest) >= 3  # the record, `session show`, and the comparison


def assert_shown_events_are_the_journal(shown: Shown) -> None:
    lines = re.findall(r"^ +(\d+)  ([a-z]+\.?[a-z_]+) ", shown.out, re.MULTILINE)
    stored = dict(shown.query("SELECT seq, type FROM v_event"))
    assert lines
    assert [kind for _, kind in lines] == [stored[int(seq)] for seq, _ in lines]


def test_two_at_once_both_fix_their_failing_test_and_store_what_they_show(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    with started(folders[0]) as one, started(folders[1]) as two:
        both = [finish(one, folders[0]), finish(two, folders[1])]
    for shown in both:
        assert (shown.status, shown.err) == (0, ""), shown.out
        assert passes(shown)
        assert shown.query("SELECT request_id, state, outcome FROM v_run") == [
            ("quickstart:1", "persisted", "completed")
        ]
        assert_exported_bytes_are_the_revision(shown)
        assert_shown_events_are_the_journal(shown)
        assert "✗ python -m unittest, run by this script: FAILED (failures=1)" in shown.out
        assert "✓ python -m unittest, run by this script: OK" in shown.out
        assert "FROM v_tool_call" in shown.out
        assert "\x1b" not in shown.out  # NO_COLOR, and not a terminal


@pytest.mark.requirement("runs.recovery")
def test_a_server_that_is_killed_in_the_middle_loses_its_run_and_a_continuation_finishes(tmp_path: Path) -> None:
    shown = quickstart(tmp_path, "--crash")
    assert (shown.status, shown.err) == (0, ""), shown.out
    assert passes(shown)
    assert shown.query("SELECT request_id, state, outcome, error_code FROM v_run ORDER BY accepted_seq") == [
        ("quickstart:1", "lost", None, "server_lost"),
        ("quickstart:2", "persisted", "completed", None),
    ]
    assert re.search(r"^ +\d+  run\.lost +quickstart:1 is lost: server_lost$", shown.out, re.MULTILINE)
    assert_exported_bytes_are_the_revision(shown)
    assert_shown_events_are_the_journal(shown)
    seqs = [seq for (seq,) in shown.query("SELECT seq FROM v_event ORDER BY seq")]
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_narrow_window_cuts_lines_but_never_a_hash_or_a_path(tmp_path: Path) -> None:
    shown = quickstart(tmp_path, COLUMNS="40")
    assert shown.status == 0, shown.err
    assert_exported_bytes_are_the_revision(shown)
    assert f"  {shown.root}\n" in shown.out
    events = [line for line in shown.out.splitlines() if re.match(r" +\d+  ", line)]
    assert events
    assert all(len(line) <= 40 for line in events if "message." not in line)


def test_clean_leaves_nothing_behind(tmp_path: Path) -> None:
    shown = quickstart(tmp_path, "--clean")
    assert shown.status == 0, shown.err
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_stops_the_server_and_keeps_what_was_done(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        assert process.stdout is not None
        seen = ""
        for line in process.stdout:
            seen += line
            if "session.persisted" in line:
                break
        os.kill(process.pid, signal.SIGINT)
        shown = finish(process, tmp_path)
    server = re.search(r"process (\d+)$", seen, re.MULTILINE)
    assert server is not None, seen
    assert shown.status == 130
    assert shown.err.startswith("error: interrupted")
    assert not Path(f"/proc/{server[1]}").exists()
    assert shown.query("SELECT state, outcome FROM v_run") == [("persisted", "cancelled")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bogus"], "unrecognized arguments: --bogus"),
        (["--model", "m"], "--model needs --model-url"),
        (["--model-url", "ftp://example.org"], "is not an http or https address"),
        (["--model-url", "http://127.0.0.1:1"], "there is no answer from http://127.0.0.1:1/v1/models"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_is_one_clear_line_with_a_hint_and_leaves_nothing(
    tmp_path: Path, arguments: Sequence[str], said: str
) -> None:
    shown = quickstart(tmp_path, *arguments)
    error, hint = shown.err.splitlines()
    assert shown.status == 1
    assert error.startswith("error: ") and said in error
    assert hint.startswith("hint: ")
    assert shown.out == ""
    assert shown.root is None


def test_a_model_that_cannot_be_reached_fails_the_run_and_says_so(tmp_path: Path) -> None:
    shown = quickstart(
        tmp_path, "--model-url", "http://127.0.0.1:1/v1", "--model", "m", AURA_MODEL_TOKEN="s3cret-token"
    )
    assert shown.status == 1
    assert shown.err.startswith("error: the run failed: provider_network: ")
    assert shown.query("SELECT state, outcome FROM v_run") == [("persisted", "failed")]
    assert shown.root is not None
    kept = [path for path in shown.root.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"s3cret-token" in path.read_bytes()]
    assert "s3cret-token" not in shown.out + shown.err


def test_a_python_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    shown = quickstart(tmp_path, AURA_PYTHON="/bin/false")
    assert shown.status == 1
    assert shown.err.startswith("error: AURA_PYTHON=/bin/false cannot be used")
    assert "hint: aura needs Python 3.11 or newer" in shown.err


def test_help_needs_no_environment(tmp_path: Path) -> None:
    shown = quickstart(tmp_path, "--help", AURA_PYTHON="/bin/false")
    assert (shown.status, shown.err) == (0, "")
    assert "--crash" in shown.out and "--model-url URL" in shown.out


def readme_blocks() -> list[str]:
    """Return the shell blocks of the README's next steps, without the first, which only goes to the directory."""
    text = (CHECKOUT / "README.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", text.partition("## Five things")[2], re.MULTILINE | re.DOTALL)
    assert blocks[0].startswith("source .venv/bin/activate")
    return blocks[1:]


def work_through(blocks: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run blocks in one shell, in `folder`, with the environment's commands on PATH, as after `activate`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AURA_", "PYTHON"))}
    environment["PATH"] = f"{CHECKOUT / '.venv/bin'}{os.pathsep}{environment['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", "".join(blocks)]
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S
    )


def test_the_readmes_next_steps_work_word_by_word(tmp_path: Path) -> None:
    shown = quickstart(tmp_path)
    assert shown.root is not None
    blocks = [block for block in readme_blocks() if "8080" not in block]
    done = work_through(blocks, shown.root)
    assert done.returncode == 0, done.stderr
    assert len(blocks) == 4  # resume, fork, query, controller: your own model needs a model
    assert shown.query("SELECT session_id FROM v_session ORDER BY session_id") == [
        ("before-the-edit",),
        ("fix-slug",),
        ("task-1",),
        ("try-2",),
    ]
    assert shown.query("SELECT count(*) FROM v_run WHERE session_id = 'task-1'") == [(1,)]
    assert re.search(r"^Bash +ok +2 ", done.stdout, re.MULTILINE), done.stdout


def call(words: str, name: str, **arguments: str) -> str:
    """Return a model's answer that says `words` and makes one call."""
    return f"{words}\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


OLD = 're.sub(r"[^a-z0-9]", "-", title.lower())'
NEW = 're.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")'
# The points vary the texts' lengths: a scripted model wants each text to end in a token of its own.
FIXES = (
    ("edit", call("It makes too many dashes.", "Edit", file_path="slug.py", old_string=OLD, new_string=NEW), "FAILED"),
    ("done", "The slugs are right now.", "Ran 2 tests"),
    ("again", call("Once more...", "Bash", command="python3 -m unittest -q"), "replacement"),
    ("run", call("I run it.", "Bash", command="python3 -m unittest"), "def slug"),
    ("read", call("I shall read.", "Read", path="slug.py"), "fails"),
    ("say", "I have nothing to add here.", ""),
)


@pytest.mark.llama
@pytest.mark.parametrize(
    ("answers", "status"),
    [(FIXES, 0), (FIXES[-1:], 1)],
    ids=["a model that fixes it", "a model that only talks"],
)
def test_a_real_llama_server_is_judged_by_whether_the_test_passes(
    tmp_path: Path, answers: Sequence[tuple[str, str, str]], status: int
) -> None:
    from tests.support.llama import LlamaServer, make_model
    from tests.support.scripted_model import Route

    routes = [Route(name, text, f"{said!r} in last.content" if said else "") for name, text, said in answers]
    server = LlamaServer(make_model(tmp_path / "model.gguf", routes), tmp_path / "llama.log", ("-c", "16384"))
    try:
        shown = quickstart(tmp_path, "--model-url", server.url)
    finally:
        server.stop()
    assert shown.status == status, shown.out + shown.err
    assert passes(shown) is (status == 0)
    assert shown.query("SELECT outcome FROM v_run") == [("completed",)]
    if status:
        assert shown.err.startswith("error: the run ended, and the test still fails\nhint: ")


@pytest.mark.llama
def test_the_readmes_own_model_works_word_by_word_on_another_port(tmp_path: Path) -> None:
    from tests.support.llama import LlamaServer, make_model
    from tests.support.scripted_model import Route

    shown = quickstart(tmp_path)
    assert shown.root is not None
    (block,) = [block for block in readme_blocks() if "8080" in block]
    model = make_model(tmp_path / "model.gguf", [Route("say", "It makes slugs.")])
    server = LlamaServer(model, tmp_path / "llama.log", ("-c", "16384"))
    try:
        done = work_through([block.replace("http://127.0.0.1:8080", server.url)], shown.root)
    finally:
        server.stop()
    assert (done.returncode, done.stdout) == (0, "It makes slugs.\n"), done.stderr
