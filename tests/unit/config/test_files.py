"""Which files of a home are read, and frontmatter."""

import os
from pathlib import Path

import pytest

from aura import limits
from aura.config.files import YAML_SUFFIXES, list_files, read_text
from aura.config.markdown import read_markdown
from aura.errors import ConfigInvalid


def put(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_files_are_found_in_nested_folders_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "providers"
    expected = [put(folder / "a.yaml"), put(folder / "b" / "c.yml"), put(folder / "z.yaml")]
    for left_out in ("x.example.yaml", "notes.txt", ".hidden.yaml", ".git/y.yaml", "b/README.md"):
        put(folder / left_out)
    assert list_files(tmp_path, "providers", YAML_SUFFIXES) == expected


def test_a_missing_folder_holds_no_files(tmp_path: Path) -> None:
    assert list_files(tmp_path, "providers", YAML_SUFFIXES) == []


def test_a_linked_file_is_read(tmp_path: Path) -> None:
    target = put(tmp_path / "elsewhere.yaml", b"a: 1")
    link = tmp_path / "config" / "providers" / "link.yaml"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    assert [read_text(path) for path in list_files(tmp_path, "providers", YAML_SUFFIXES)] == ["a: 1"]


def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path: Path) -> None:
    assert read_text(put(tmp_path / "f", b"\xef\xbb\xbfa\r\nb\rc\n")) == "a\nb\nc\n"


def test_text_that_is_not_utf8_names_file_and_line(tmp_path: Path) -> None:
    path = put(tmp_path / "f.yaml", b"a: 1\nb: caf\xe9\n")
    with pytest.raises(ConfigInvalid) as caught:
        read_text(path)
    assert caught.value.message == f"{path}:2: byte 11 is not UTF-8"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="is larger than 1048576 bytes"):
        read_text(put(tmp_path / "f", b"x" * (limits.CONFIG_FILE_MAX_BYTES + 1)))


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigInvalid, match="is not a regular file"):
        read_text(tmp_path / "pipe.yaml")


def test_a_dangling_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to("nowhere")
    with pytest.raises(ConfigInvalid, match=r"link\.yaml: cannot be read"):
        read_text(tmp_path / "link.yaml")


@pytest.mark.parametrize("opener", ["---", "---yaml", "--- ", "--- yaml"])
def test_frontmatter_and_body_are_split(tmp_path: Path, opener: str) -> None:
    file = read_markdown(put(tmp_path / "a.md", f"{opener}\nname: x\n---\n\nBody.\n\n---\nMore.\n".encode()))
    assert isinstance(file.frontmatter.value, dict)
    assert file.frontmatter.value["name"].value == "x"
    assert file.frontmatter.value["name"].line == 2
    assert file.body == "Body.\n\n---\nMore."


def test_the_body_may_be_empty(tmp_path: Path) -> None:
    assert read_markdown(put(tmp_path / "a.md", b"---\nname: x\n---")).body == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the frontmatter is missing"),
        (b"Just text.\n", "the frontmatter is missing"),
        (b"\n---\nname: x\n---\n", "the frontmatter is missing"),
        (b"---\nname: x\n", "the frontmatter is not closed"),
        (b"---", "the frontmatter is not closed"),
    ],
)
def test_a_file_without_frontmatter_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    path = put(tmp_path / "a.md", content)
    with pytest.raises(ConfigInvalid) as caught:
        read_markdown(path)
    assert caught.value.message == f"{path}:1: {problem}"
    assert caught.value.hint is not None


def test_an_error_in_the_frontmatter_has_the_line_of_the_file(tmp_path: Path) -> None:
    path = put(tmp_path / "a.md", b"---\nname: x\nname: y\n---\n")
    with pytest.raises(ConfigInvalid) as caught:
        read_markdown(path)
    assert caught.value.message.startswith(f"{path}:3: ")
