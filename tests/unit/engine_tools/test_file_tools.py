"""Read, Write, Edit, Ls and Glob on real files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from aura import limits
from aura.config.spec import ToolsSpec
from aura.engine.tools import glob, text_files
from aura.engine.tools.base import ToolError
from tests.support.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench in an empty directory."""
    return Bench(tmp_path)


def test_read_numbers_lines_and_counts_them(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n\nfour")
    assert bench.ok("Read", path="a.txt") == "1: one\n2: two\n3: \n4: four"
    assert bench.ok("Read", path=" a.txt ", count=True) == "4"


def test_read_of_an_empty_file_says_so(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert bench.ok("Read", path="a.txt") == "a.txt is empty"


def test_read_ignores_a_range_of_a_small_file_but_not_of_a_large_one(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "small").write_text("a\nb\nc\n")
    (tmp_path / "large").write_text("x" * 9000 + "\nb\nc\nd\n")
    assert bench.ok("Read", path="small", line_start=2, line_end=2) == "1: a\n2: b\n3: c"
    assert bench.ok("Read", path="small", line_start=2) == "2: b\n3: c"
    assert bench.ok("Read", path="large", line_start=2, line_end=3) == "2: b\n3: c"
    assert bench.ok("Read", path="large", line_start=4.0, line_end=99) == "4: d"


def test_read_refuses_a_range_that_is_not_there(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\nb\n")
    assert "has 2 lines" in bench.error("Read", path="a", line_start=3)
    assert "before line_start" in bench.error("Read", path="a", line_start=2, line_end=1)


def test_unreadable_things_are_named_errors(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    expected = {
        "missing": "does not exist",
        ".": "is a directory",
        "loop": "loop of symbolic links",
        "binary": "binary file",
        "pipe": "not a regular file",
        "/dev/zero": "not a regular file",
        "file/below": "not a directory",
        "x" * 300: "too long a name",
        "": "path is empty",
        "a\0b": "NUL",
        "\ud800": "surrogate",
        "/": "refused",
        "/tmp/..": "refused",
    }
    for path, text in expected.items():
        assert text in bench.error("Read", path=path), path


def test_a_huge_file_is_refused_before_it_is_in_memory(bench: Bench, tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(limits.TOOL_FILE_MAX_BYTES + 1)
    assert "larger than 16 MiB" in bench.error("Read", path="huge")


def test_text_that_is_not_utf8_is_shown_with_replacements(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    assert bench.ok("Read", path="latin") == "1: caf\ufffd"


def test_paths_expand_variables_of_the_clean_environment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "sub")
    bench = Bench(tmp_path, environment={"DIR": "sub"})
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("x")
    assert bench.ok("Read", path="$DIR/a") == bench.ok("Read", path="${DIR}/a") == "1: x"
    assert "$LEAKED/a does not exist" in bench.error("Read", path="$LEAKED/a")


def test_write_makes_parents_and_takes_empty_content(bench: Bench, tmp_path: Path) -> None:
    assert bench.ok("Write", path="a/b/c.txt", content="héllo") == "W a/b/c.txt (6 bytes)"
    assert (tmp_path / "a/b/c.txt").read_text() == "héllo"
    assert bench.ok("Write", path="a/b/c.txt", content="") == "W a/b/c.txt (0 bytes)"
    assert (tmp_path / "a/b/c.txt").read_bytes() == b""


def test_write_keeps_mode_and_link_and_leaves_no_temporary_file(bench: Bench, tmp_path: Path) -> None:
    real = tmp_path / "real.sh"
    real.write_text("old")
    real.chmod(0o751)
    (tmp_path / "link").symlink_to("real.sh")
    bench.ok("Read", path="link")
    bench.ok("Write", path="link", content="new")
    assert (tmp_path / "link").is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o751
    assert sorted(os.listdir(tmp_path)) == ["link", "real.sh"]


def test_a_failed_write_leaves_the_old_file_alone(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    bench.ok("Read", path="a.txt")
    monkeypatch.setattr(text_files.os, "fsync", no_space)
    assert "no space is left" in bench.error("Write", path="a.txt", content="new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_write_refuses_directories_and_paths_through_files(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    assert "is a directory" in bench.error("Write", path=".", content="x")
    assert "file/x" in bench.error("Write", path="file/x", content="x")
    assert "loop" in bench.error("Write", path="loop", content="x")
    assert (tmp_path / "file").read_text() == "x"


def test_half_a_surrogate_pair_is_written_as_a_replacement(bench: Bench, tmp_path: Path) -> None:
    bench.ok("Write", path="a", content="x\ud800y")
    assert (tmp_path / "a").read_text() == "x\ufffdy"


def test_edit_replaces_a_unique_text(bench: Bench, tmp_path: Path) -> None:
    bench.ok("Write", path="a", content="one two one")
    assert bench.ok("Edit", file_path="a", old_string="two", new_string="2") == "E a (1 replacement)"
    assert "occurs 2 times" in bench.error("Edit", file_path="a", old_string="one", new_string="1")
    text = bench.ok("Edit", file_path="a", old_string="one", new_string="", replace_all=True)
    assert text == "E a (2 replacements)"
    assert (tmp_path / "a").read_text() == " 2 "


def test_edit_refuses_what_it_cannot_do(bench: Bench, tmp_path: Path) -> None:
    bench.ok("Write", path="a", content="text")
    assert "is empty" in bench.error("Edit", file_path="a", old_string="", new_string="x")
    assert "identical" in bench.error("Edit", file_path="a", old_string="text", new_string="text")
    assert "does not occur" in bench.error("Edit", file_path="a", old_string="other", new_string="x")
    assert "does not exist" in bench.error("Edit", file_path="b", old_string="other", new_string="x")
    assert (tmp_path / "a").read_text() == "text"


def test_edit_leaves_foreign_bytes_and_line_ends_alone(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9\r\none\r\ntwo\r\n")
    bench.ok("Read", path="a")
    bench.ok("Edit", file_path="a", old_string="one\ntwo", new_string="1\n2\n3")
    assert (tmp_path / "a").read_bytes() == b"caf\xe9\r\n1\r\n2\r\n3\r\n"


def test_an_existing_file_must_be_read_before_it_is_changed(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "link").symlink_to("a")
    for name, arguments in (
        ("Write", {"path": "a", "content": "new"}),
        ("Write", {"path": "./link", "content": "new"}),
        ("Edit", {"file_path": "a", "old_string": "old", "new_string": "new"}),
    ):
        assert "was not read" in bench.error(name, **arguments)
    bench.ok("Read", path="a", count=True)
    assert "was not read" in bench.error("Write", path="a", content="new")
    bench.ok("Read", path="a")
    bench.ok("Write", path="link", content="new")
    assert (tmp_path / "a").read_text() == "new"


def test_read_before_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    bench = Bench(tmp_path, spec=ToolsSpec(read_before_write=False))
    bench.ok("Write", path="a", content="new")
    assert (tmp_path / "a").read_text() == "new"


def test_ls_shows_directories_first_and_goes_as_deep_as_asked(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "b/c/deep").touch()
    (tmp_path / "b/f").touch()
    (tmp_path / "a").touch()
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    assert bench.ok("Ls") == "b/\nup/\na\nloop"
    assert bench.ok("Ls", depth=2) == "b/\nb/c/\nb/f\nup/\na\nloop"
    assert bench.ok("Ls", path="b/c") == "deep"
    assert "is a file" in bench.error("Ls", path="a")
    assert "does not exist" in bench.error("Ls", path="missing")


def test_ls_of_an_empty_directory_and_of_a_name_that_is_not_utf8(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert bench.ok("Ls", path="sub") == "Empty directory"
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/sub/caf\xe9"))).touch()
    assert bench.ok("Ls", path="sub") == "caf\ufffd"


def test_ls_is_bounded(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LISTING_MAX_COUNT", 3)
    for number in range(5):
        (tmp_path / f"f{number}").touch()
    assert bench.ok("Ls").splitlines()[:3] == ["f0", "f1", "f2"]
    assert "left out" in bench.ok("Ls").splitlines()[3]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/**", ["src/b.py", "src/deep/c.py", "src/deep/d.md"]),
        ("**/{b,c}.py", ["src/b.py", "src/deep/c.py"]),
        ("src/*/[cd].{py,md}", ["src/deep/c.py", "src/deep/d.md"]),
        ("src/../a.py", ["a.py"]),
        ("?.py", ["a.py"]),
        ("**/.hidden/*", [".hidden/x"]),
        ("src", []),
        ("**/[^b].py", ["a.py", "src/deep/c.py"]),
        ("{a.txt", ["{a.txt"]),
    ],
)
def test_glob_finds_files(bench: Bench, tmp_path: Path, pattern: str, names: list[str]) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/d.md", ".hidden/x", "{a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "src/deep/loop").symlink_to(tmp_path)
    text = bench.ok("Glob", pattern=pattern)
    head = f"Found {len(names)} {'match' if len(names) == 1 else 'matches'}:"
    assert text == ("\n".join([head, *(str(tmp_path / name) for name in names)]) if names else "")


def test_glob_takes_absolute_patterns_and_refuses_bad_ones(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert bench.ok("Glob", pattern=f"{tmp_path}/*") == f"Found 1 match:\n{tmp_path}/a"
    assert "not a directory" in bench.error("Glob", pattern="*", path="a")
    assert "no file" in bench.error("Glob", pattern="./")
    assert "empty" in bench.error("Glob", pattern="")


def test_braces_nest_and_are_bounded() -> None:
    assert sorted(glob.expand_braces("{a,b{c,d}}e")) == ["ae", "bce", "bde"]
    assert glob.expand_braces("a}{b") == ["a}{b"]
    with pytest.raises(ToolError, match="braces"):
        glob.expand_braces("{a,b}" * 30)


def test_glob_stops_after_enough_entries(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WALK_MAX_COUNT", 2)
    for number in range(5):
        (tmp_path / f"f{number}").touch()
    assert "stopped early" in bench.ok("Glob", pattern="*")
