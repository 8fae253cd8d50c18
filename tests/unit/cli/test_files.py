"""Reading and atomically writing files: `aura.runtime.files`."""

from __future__ import annotations

import errno
import hashlib
import os

import pytest

from aura.errors import BadRequest
from aura.runtime import files


def failing(*pieces):
    yield from pieces
    raise RuntimeError("the source failed")


@pytest.fixture(params=[files.create_file, files.replace_file])
def write(request):
    return request.param


def test_a_written_file_has_all_pieces_and_nothing_is_beside_it(tmp_path, write):
    write(tmp_path / "f", [b"a", b"", b"b" * 3_000_000])
    assert (tmp_path / "f").read_bytes() == b"a" + b"b" * 3_000_000
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.requirement("store.atomic-writes.files")
def test_a_source_that_fails_leaves_nothing(tmp_path, write):
    with pytest.raises(RuntimeError):
        write(tmp_path / "f", failing(b"a"))
    assert os.listdir(tmp_path) == []


def test_creating_never_takes_the_place_of_a_file(tmp_path):
    (tmp_path / "f").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        files.create_file(tmp_path / "f", [b"yours"])
    assert (tmp_path / "f").read_bytes() == b"mine" and os.listdir(tmp_path) == ["f"]


def test_creating_works_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refuse(*_args):
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    files.create_file(tmp_path / "f", [b"a"])
    with pytest.raises(FileExistsError):
        files.create_file(tmp_path / "f", [b"b"])
    assert (tmp_path / "f").read_bytes() == b"a" and os.listdir(tmp_path) == ["f"]


@pytest.mark.requirement("store.atomic-writes.files")
def test_replacing_keeps_the_old_file_until_the_new_one_is_complete(tmp_path):
    files.replace_file(tmp_path / "f", [b"old"])
    with pytest.raises(RuntimeError):
        files.replace_file(tmp_path / "f", failing(b"new"))
    assert (tmp_path / "f").read_bytes() == b"old"
    files.replace_file(tmp_path / "f", [b"new"])
    assert (tmp_path / "f").read_bytes() == b"new" and os.listdir(tmp_path) == ["f"]


def test_a_replaced_file_is_private_by_default(tmp_path):
    files.replace_file(tmp_path / "f", [b"secret"])
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_a_file_at_the_limit_is_read_and_one_beyond_it_is_not(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 10)
    assert files.read_input(str(tmp_path / "f"), max_bytes=10) == b"x" * 10
    with pytest.raises(BadRequest) as caught:
        files.read_input(str(tmp_path / "f"), max_bytes=9)
    assert caught.value.details == {"reason": "too_large"}


def test_a_device_without_an_end_is_read_to_the_limit_only():
    with pytest.raises(BadRequest) as caught:
        files.read_input("/dev/zero", max_bytes=1000)
    assert caught.value.details == {"reason": "too_large"}


def test_a_hash_is_that_of_a_regular_file_only(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    assert files.find_sha256(tmp_path / "f") == hashlib.sha256(b"abc").hexdigest()
    assert files.find_sha256(tmp_path / "none") is None
    with pytest.raises(BadRequest):
        files.find_sha256(tmp_path)
