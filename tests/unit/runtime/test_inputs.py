"""What a name stands for, and how a file becomes conversations: `aura.runtime.inputs`."""

from __future__ import annotations

import io
import json

import pytest

from aura.errors import AuraError, BadRequest, InvalidSession
from aura.runtime import inputs
from tests.support import foreign


def document(id="one"):
    return json.dumps({"id": id, "messages": [{"Role": "user", "Content": "hi"}]}).encode()


@pytest.fixture
def read(tmp_path):
    """Reads bytes as a file; gives (line, format) of each piece, and (line, error type) of what is spoilt."""

    def read_bytes(data, wanted=None, max_bytes=10_000_000):
        path = tmp_path / "in"
        path.write_bytes(data)
        pieces = inputs.read_pieces(str(path), wanted, max_bytes)
        return [
            (piece.line, piece.format) if isinstance(piece, inputs.Piece) else (piece.line, type(piece.error))
            for piece in pieces
        ]

    return read_bytes


def test_one_document_is_a_whole_piece_however_it_is_laid_out(read):
    pretty = json.dumps(json.loads(document()), indent=2).encode()
    for data in (
        document(),
        document() + b"\n",
        b"\n\n  " + document() + b"\n \n",
        pretty,
        b"\xef\xbb\xbf" + document(),
    ):
        assert read(data) == [(None, "aura")]


def test_a_document_per_line_is_a_piece_per_line_and_bad_lines_stop_no_other(read):
    chat = b'{"messages":[{"role":"user","content":"hi"}]}'
    data = b"\n".join([b"", document(), b"", b"{torn", chat, document("three")])
    assert read(data) == [(2, "aura"), (4, InvalidSession), (5, "openai"), (6, "aura")]


@pytest.mark.parametrize("bad", [b"nonsense", b'{"id":"cut', b"[", b"null", b'{"id":"x"}', b'{"id":"x"}\n[1]'])
@pytest.mark.parametrize("count", [1, 3])
def test_a_bad_first_line_stops_no_other(read, bad, count):
    data = b"\n".join([bad, *[document(f"s{n}") for n in range(count)]])
    first = bad.count(b"\n") + 2
    assert [item for item in read(data) if item[0] >= first] == [(first + n, "aura") for n in range(count)]


def test_foreign_lines_are_found_after_a_bad_one(read):
    assert read(b'{"torn\n' + foreign.CODEX.read_bytes()) == [(None, "codex")]


def test_an_array_over_lines_is_one_piece_although_a_line_of_it_is_a_document(read):
    assert read(b"[\n" + document() + b"\n]\n") == [(None, "aura")]


def test_a_list_of_messages_per_line_is_a_piece_per_line(read):
    line = b'[{"role":"user","content":"hi"}]\n'
    assert read(line * 2) == [(1, "openai"), (2, "openai")]


def test_a_message_per_line_is_one_piece(read):
    data = foreign.OPENAI_MESSAGES.read_bytes()
    for wanted in (None, "openai"):
        assert read(data, wanted) == [(None, "openai")]


def test_a_line_that_is_too_long_stops_no_other(read):
    long = b'{"messages":[],"x":"' + b"x" * 500 + b'"}'
    data = b"\n".join([document(), long, document("two")])
    assert read(data, max_bytes=200) == [(1, "aura"), (2, BadRequest), (3, "aura")]


def test_lines_of_any_number_need_no_more_memory_than_one(read):
    data = b"\n".join(document(f"s{n}") for n in range(500))
    assert len(read(data, max_bytes=len(document("s100")) + 10)) == 500


def test_a_single_document_beyond_the_limit_is_too_large(read):
    with pytest.raises(BadRequest) as caught:
        read(json.dumps(json.loads(document()), indent=2).encode(), max_bytes=20)
    assert caught.value.details == {"reason": "too_large"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (foreign.CLAUDE_CODE, [(None, "claude-code")]),
        (foreign.CLAUDE_CODE_AGENT, [(None, "claude-code")]),
        (foreign.CODEX, [(None, "codex")]),
        (foreign.CODEX_OLD, [(None, "codex")]),
        (foreign.OPENAI, [(1, "openai"), (2, "openai")]),
        (foreign.OPENAI_LIST, [(None, "openai")]),
    ],
    ids=lambda value: getattr(value, "stem", "")[:12],
)
def test_the_format_of_each_sample_is_found(read, path, found):
    assert read(path.read_bytes()) == found


def test_records_that_tell_nothing_may_come_first(read):
    start = b'{"type":"mode","mode":"plan"}\n' * 5
    assert read(start + foreign.CLAUDE_CODE.read_bytes()) == [(None, "claude-code")]


def test_a_format_that_was_named_is_not_found_out(read):
    assert read(document(), "codex") == [(None, "codex")]
    assert read(document(), "openai") == [(None, "openai")]
    assert read(b'{"messages":[{"role":"user","content":"hi"}]}', "aura") == [(None, "aura")]


def test_the_lower_spellings_with_a_head_of_ours_are_ours(read):
    assert read(b'{"id":"x","messages":[{"role":"user","content":"hi"}]}') == [(None, "aura")]


@pytest.mark.parametrize("data", [b"", b"   \n", b"[1", b"\x00\x01", b"{\n", b"nonsense\nand more"])
def test_what_is_no_json_is_one_spoilt_piece(read, data):
    assert read(data) == [(None, InvalidSession)]


def test_names_directories_and_patterns_stand_for_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("deep/b.json", "deep/er/a.jsonl", "deep/er/c.ndjson", "deep/notes.txt", "z[1].json"):
        (tmp_path / name).write_bytes(document())
    names = [item.name for item in inputs.find_inputs("deep")]
    assert names == ["deep/b.json", "deep/er/a.jsonl", "deep/er/c.ndjson"]
    assert [item.name for item in inputs.find_inputs("**/*.json")] == ["deep/b.json", "z[1].json"]
    assert [item.name for item in inputs.find_inputs("z[1].json")] == ["z[1].json"]
    assert inputs.find_inputs("missing.json") == [inputs.Input("missing.json")]
    assert inputs.find_inputs("deep/b.json") == [inputs.Input("deep/b.json", len(document()))]


@pytest.mark.parametrize("name", ["empty", "*.zzz"])
def test_a_directory_or_pattern_without_files_is_a_bad_request(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadRequest):
        inputs.find_inputs(name)


def test_standard_input_is_read_line_by_line(monkeypatch):
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(document("a") + b"\n" + document("b"))))
    monkeypatch.setattr("sys.stdin", stream)
    pieces = list(inputs.read_pieces("-", None))
    assert [piece.line for piece in pieces if not isinstance(piece, AuraError)] == [1, 2]


def test_a_missing_file_is_a_bad_request(tmp_path):
    with pytest.raises(BadRequest):
        list(inputs.read_pieces(str(tmp_path / "none"), None))
