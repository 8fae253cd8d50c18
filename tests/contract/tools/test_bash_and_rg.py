"""Bash and Rg through the whole pipeline, with real processes."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aura import limits
from aura.config.spec import BashSpec, ToolsSpec
from aura.engine.batch import BatchOutcome
from aura.engine.executors import groups
from aura.engine.scope import Cancelled
from aura.engine.tools import own_search, rg
from aura.events import ToolOutput
from tests.support.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench in an empty directory."""
    return Bench(tmp_path)


def in_thread(work: Callable[[], BatchOutcome]) -> Callable[[], BatchOutcome]:
    """Start `work` on a thread; the result waits for it."""
    done: list[BatchOutcome] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()

    def join() -> BatchOutcome:
        thread.join(20)
        assert done, "the batch did not end"
        return done[0]

    return join


def test_bash_shows_output_errors_and_exit_code(bench: Bench, tmp_path: Path) -> None:
    assert bench.ok("Bash", command="printf 'a\\n'") == "a\n"
    assert bench.ok("Bash", command="true") == ""
    assert bench.ok("Bash", command="printf a; echo b >&2; exit 3") == "a\nSTDERR:\nb\nEXIT CODE: 3"
    assert bench.ok("Bash", command="exit 1") == "EXIT CODE: 1"
    assert bench.ok("Bash", command="kill -9 $$") == "EXIT CODE: 137 (SIGKILL)"
    assert "command not found" in bench.ok("Bash", command="no-such-program")
    assert "syntax error" in bench.ok("Bash", command="if")
    assert bench.ok("Bash", command="pwd") == f"{tmp_path}\n"
    (name, pid, start_time) = bench.lane.processes[0]
    assert name == "call_1"
    assert pid > 1
    assert start_time.isdigit()


def test_bash_runs_where_it_is_told(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert bench.ok("Bash", command="pwd", workdir="sub") == f"{tmp_path}/sub\n"
    assert "not a directory" in bench.error("Bash", command="pwd", workdir="missing")


def test_bash_refuses_what_cannot_run(bench: Bench) -> None:
    assert bench.error("Bash", command=" \n") == "the command is empty"
    assert "cannot be started" in bench.error("Bash", command="echo \0")
    assert "cannot be started" in bench.error("Bash", command="echo \ud800")
    assert "more than the 131071" in bench.error("Bash", command="x" * 131_072)
    assert '"timeout_ms" must be at least 1' in bench.error("Bash", command="true", timeout_ms=0)
    assert "at most" in bench.error("Bash", command="true", timeout_ms=limits.BASH_TIMEOUT_MAX_MS + 1)


def test_a_long_command_up_to_the_kernels_bound_runs(bench: Bench) -> None:
    text = "true #".ljust(limits.BASH_COMMAND_MAX_BYTES, "x")
    assert bench.ok("Bash", command=text) == ""


def test_bash_survives_binary_output(bench: Bench) -> None:
    text = bench.ok("Bash", command="printf '\\0\\377\\376ok'; head -c 1000 /dev/urandom >&2")
    assert text.startswith("\ufffd\ufffd\ufffdok\nSTDERR:\n")
    assert "\0" not in text


def test_a_timeout_is_a_result(bench: Bench) -> None:
    text = bench.ok("Bash", command="echo before; exec sleep 1000", timeout_ms=300)
    assert text == "before\nEXIT CODE: TIMEOUT after 300 ms"


def test_long_output_is_cut_and_kept_in_a_file(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, spec=ToolsSpec(bash=BashSpec(max_output_bytes=1000, max_lines=20, head_lines=2, tail_lines=2))
    )
    text = bench.ok("Bash", command="seq 1 1000")
    (spill,) = (tmp_path / ".spill").iterdir()
    assert text.startswith("1\n2\n[… ")
    assert text.endswith(f"full output is in {spill} …]\n999\n1000\n")
    assert spill.read_text() == "".join(f"{number}\n" for number in range(1, 1001))
    assert spill.name.startswith("call_1-stdout-")
    assert (tmp_path / ".spill").stat().st_mode & 0o077 == 0


def test_lines_are_shown_live(bench: Bench, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    join = in_thread(lambda: bench.batch(("Bash", {"command": "echo one; cat go; echo two"})))
    bench.lane.wait_for_output("one")
    assert bench.lane.shown[0] == ToolOutput("Bash", "one", "c0")
    (tmp_path / "go").write_text("released\n")
    assert join().results[0].text == "one\nreleased\ntwo\n"
    assert "two" in "".join(getattr(item, "line", "") for item in bench.lane.shown)


def test_a_cancel_in_the_middle_of_bash_ends_tree_and_batch(bench: Bench) -> None:
    text = "trap '' TERM; (sleep 1000 & sleep 1000) & echo ready; while :; do sleep 0.05; done"
    join = in_thread(lambda: bench.batch(("Bash", {"command": text}), ("Ls", {})))
    bench.lane.wait_for_output("ready")
    _, pid, start_time = bench.lane.wait_for_process()
    began = time.monotonic()
    bench.lane.scope.cancel("request")
    outcome = join()
    assert time.monotonic() - began < 3
    assert [result.error for result in outcome.results] == ["cancelled", "cancelled"]
    assert isinstance(outcome.interruption, Cancelled)
    assert groups.find_start_time(pid) != start_time


def test_bash_sees_only_the_given_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AURA_SERVE_TOKEN", "do-not-show")
    bench = Bench(tmp_path, environment={"PATH": os.defpath, "KNOWN": "yes"})
    text = bench.ok("Bash", command="env")
    assert "KNOWN=yes" in text
    assert "do-not-show" not in text


# --- Rg ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small project."""
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "src/a.py").write_text("import os\nprint('alpha')\r\n")
    (tmp_path / "src/deep/b.py").write_text("beta = 'alpha'\n" + "x" * 2000 + "omega\n")
    (tmp_path / ".hidden").write_text("alpha\n")
    (tmp_path / "image").write_bytes(b"alpha\0alpha")
    (tmp_path / "-e").write_text("gamma\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9 delta\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


def search(bench: Bench, **arguments: str) -> list[str]:
    """The matching lines."""
    return bench.ok("Rg", **arguments).split("\n")


def test_rg_finds_lines_and_names_files_relative_to_the_working_directory(tree: Path) -> None:
    bench = Bench(tree)
    assert search(bench, pattern="alp.a") == ["src/a.py:2:print('alpha')", "src/deep/b.py:1:beta = 'alpha'"]
    assert search(bench, pattern="^beta", path="src/deep") == ["src/deep/b.py:1:beta = 'alpha'"]
    assert search(bench, pattern="import", path="src/a.py") == ["src/a.py:1:import os"]
    assert search(bench, pattern="gamma", path="-e") == ["-e:1:gamma"]
    assert search(bench, pattern="gamma") == ["-e:1:gamma"]
    assert search(bench, pattern="delta") == ["latin:1:caf\ufffd delta"]
    (long,) = search(bench, pattern="omega")
    assert len(long) < 600
    assert bench.ok("Rg", pattern="nowhere") == ""
    assert bench.ok("Rg", pattern="-n") == ""


def test_the_own_search_takes_utf8_whatever_the_locale(tree: Path) -> None:
    (tree / "umlaut").write_text("grün\n")
    bench = Bench(tree, environment={"PATH": "/nowhere", "LC_ALL": "de_DE.ISO-8859-1", "LANG": "C"})
    assert search(bench, pattern="gr.n$") == search(bench, pattern="grün") == ["umlaut:1:grün"]


def test_rg_tells_a_bad_expression_and_a_missing_path(tree: Path) -> None:
    bench = Bench(tree)
    assert "regex parse error" in bench.error("Rg", pattern="(")
    assert "does not exist" in bench.error("Rg", pattern="x", path="missing")


def test_an_expression_that_never_ends_is_ended(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "trap").write_text("a" * 64 + "!\n")
    monkeypatch.setattr(limits, "RG_TIMEOUT_MS", 500)
    bench = Bench(tree, environment={"PATH": "/nowhere"})
    assert "took longer" in bench.error("Rg", pattern="(a|aa)+$", path="trap")


def test_many_matches_are_cut_at_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RG_OUTPUT_MAX_BYTES", 100)
    (tmp_path / "a").write_text("".join(f"{number}\n" for number in range(100, 200)))
    lines = search(Bench(tmp_path), pattern="1")
    assert lines[0] == "a:1:100"
    assert lines[-1] == "a:100:199"
    assert [line for line in lines if not line.startswith("a:")] == [
        "[… more matches are left out; narrow pattern or path …]"
    ]


def test_rg_uses_ripgrep_where_it_is_installed(tmp_path: Path) -> None:
    program = tmp_path / "bin/rg"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$PWD"\n')
    program.chmod(0o755)
    bench = Bench(tmp_path, environment={"PATH": f"{program.parent}:{os.defpath}"})
    arguments = search(bench, pattern="-x y", path="bin")
    assert arguments[-4:] == ["-x y", "--", "bin", str(tmp_path)]
    assert "--no-config" in arguments


def test_own_search_needs_nothing_of_aura() -> None:
    line = rg._command_line("p", "./", "/nowhere")
    assert line == (sys.executable, "-I", "-S", "-X", "utf8", own_search.__file__, "p", "./")
