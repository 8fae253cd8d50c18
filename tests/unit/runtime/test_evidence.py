"""Evidence bundles: deterministic, complete, checked from their bytes alone, and any change is found."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aura.errors import BadRequest, Exists, InvalidSession, NotFound, StoreUnavailable
from aura.runtime.bundle import MEMBERS, Member, write_archive
from aura.runtime.evidence import export_evidence
from aura.runtime.evidence_check import check_evidence
from aura.store.open import open_store
from aura.store.sqlite.store import SqliteStore
from tests.unit.store.store_kit import NOW_MS, Keeper, header, messages_of, tamper


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_store(tmp_path / "sessions")
    opened.create_session(header("s1"))
    yield opened
    opened.close()


@pytest.fixture
def folder(store: SqliteStore, tmp_path: Path) -> Path:
    keeper = Keeper(store, "s1")
    keeper.complete("r1", "done é")
    keeper.release()
    return tmp_path / "sessions"


@pytest.fixture
def bundle(folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "e.tar"
    export_evidence(folder, "s1", str(path))
    return path


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}  # type: ignore[union-attr]


def rebuild(path: Path, files: dict[str, bytes]) -> Path:
    changed = path.with_name("changed.tar")
    changed.write_bytes(b"".join(write_archive(Member(name, len(data), (data,)) for name, data in files.items())))
    return changed


def sums(files: dict[str, bytes]) -> bytes:
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in MEMBERS[:-1]).encode()


def test_a_bundle_holds_and_says_of_what(bundle: Path, store: SqliteStore) -> None:
    found = check_evidence(str(bundle))
    state = store.read_journal("s1")
    assert found.problems == ()
    assert (found.session_id, found.events, found.last_seq, found.head) == ("s1", 7, 7, state.head.hex())
    assert found.revision == store.get_session("s1").revision
    assert found.sha256 == hashlib.sha256(bundle.read_bytes()).hexdigest()


def test_a_bundle_is_the_same_bytes_each_time_and_any_tar_program_reads_it(
    bundle: Path, folder: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.tar"
    done = export_evidence(folder, "s1", str(again))
    assert again.read_bytes() == bundle.read_bytes()
    assert done.sha256 == hashlib.sha256(bundle.read_bytes()).hexdigest() and done.written
    assert not export_evidence(folder, "s1", str(again)).written
    files = members(bundle)
    assert tuple(files) == MEMBERS
    assert files["SHA256SUMS"] == sums(files)
    manifest = json.loads(files["manifest.json"])
    assert manifest["revision"] == hashlib.sha256(files["session.json"]).hexdigest()
    assert manifest["revision_seq"] == 6 and set(manifest["made_by"]) == {"aura", "python", "sqlite", "schema"}


def test_a_stream_gets_the_same_bytes(bundle: Path, folder: Path) -> None:
    out = io.BytesIO()
    assert export_evidence(folder, "s1", "-", out.write).path == "-"
    assert out.getvalue() == bundle.read_bytes()


def test_a_noted_hash_is_looked_for(bundle: Path, store: SqliteStore) -> None:
    head = store.read_journal("s1").head
    assert check_evidence(str(bundle), head, 7).expected_seq == 7
    assert check_evidence(str(bundle), head).expected_seq == 7
    for seq in (None, 7):
        assert check_evidence(str(bundle), bytes(32), seq).problems
    assert check_evidence(str(bundle), head, 6).problems


def test_a_session_frozen_later_or_without_a_journal_makes_a_bundle_too(store: SqliteStore, folder: Path) -> None:
    store.freeze("s1", at_ms=NOW_MS)
    store.create_session(header("s2"))
    for session_id, events in (("s1", 7), ("s2", 0)):
        path = folder / f"{session_id}.tar"
        export_evidence(folder, session_id, str(path))
        found = check_evidence(str(path))
        assert (found.problems, found.events) == ((), events)
        assert json.loads(members(path)["manifest.json"])["revision_seq"] is None


@pytest.mark.parametrize("anchor", [True, False])
def test_a_pruned_journal_makes_a_bundle_from_its_first_event_on(
    store: SqliteStore, folder: Path, anchor: bool
) -> None:
    kept = ["INSERT INTO journal_anchor SELECT sid, seq, chain_hash FROM event WHERE seq = 3"] if anchor else []
    tamper(
        folder / "aura.db",
        "CREATE TABLE IF NOT EXISTS journal_anchor (sid INTEGER, seq INTEGER, chain_hash BLOB)",
        *kept,
        "UPDATE session SET journal_floor = 4",
        "DELETE FROM event WHERE seq < 4",
    )
    path = folder / "e.tar"
    export_evidence(folder, "s1", str(path))
    found = check_evidence(str(path))
    assert (found.problems, found.first_seq, found.events, found.covered) == ((), 4, 4, anchor)


def change_journal(files: dict[str, bytes]) -> None:
    files["journal.jsonl"] = files["journal.jsonl"].replace(b"hello", b"hullo")


def change_session(files: dict[str, bytes]) -> None:
    files["session.json"] = files["session.json"].replace(b"hello", b"hullo")


def drop_event(files: dict[str, bytes]) -> None:
    lines = files["journal.jsonl"].splitlines(keepends=True)
    files["journal.jsonl"] = b"".join(lines[:3] + lines[4:])


def adjust_manifest(files: dict[str, bytes]) -> None:
    """Make the file hashes fit again, as a forger would."""
    manifest = json.loads(files["manifest.json"])
    for entry in manifest["files"]:
        data = files[entry["name"]]
        entry["bytes"], entry["sha256"] = len(data), hashlib.sha256(data).hexdigest()
    files["manifest.json"] = json.dumps(manifest, separators=(",", ":")).encode() + b"\n"
    files["SHA256SUMS"] = sums(files)


@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("change", [change_journal, change_session, drop_event])
def test_a_changed_bundle_does_not_hold_even_with_its_file_hashes_adjusted(
    bundle: Path, change: object, adjusted: bool
) -> None:
    files = members(bundle)
    change(files)  # type: ignore[operator]
    if adjusted:
        adjust_manifest(files)
    assert check_evidence(str(rebuild(bundle, files))).problems


def test_a_session_of_another_bundle_does_not_fit_though_it_is_whole(bundle: Path, store: SqliteStore) -> None:
    keeper = Keeper(store, "s1")
    revision = keeper.save(messages_of("another end"))
    keeper.release()
    files = members(bundle)
    files["session.json"] = b"".join(store.export("s1", revision)[1])
    manifest = json.loads(files["manifest.json"])
    manifest["revision"] = revision
    files["manifest.json"] = json.dumps(manifest).encode()
    adjust_manifest(files)
    assert check_evidence(str(rebuild(bundle, files))).problems == ("event 6 does not report the revision",)


def test_a_chain_that_begins_where_none_begins_does_not_hold(bundle: Path) -> None:
    files = members(bundle)
    chain = bytes(32)
    for line in files["journal.jsonl"].splitlines():
        chain = hashlib.sha256(chain + line).digest()
    manifest = json.loads(files["manifest.json"])
    manifest["journal"]["start"]["sha256"] = bytes(32).hex()
    manifest["journal"]["head"]["sha256"] = chain.hex()
    files["manifest.json"] = json.dumps(manifest).encode()
    adjust_manifest(files)
    assert check_evidence(str(rebuild(bundle, files))).problems == ("the chain does not begin where journals begin",)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_byte_that_matters_is_found_when_it_is_flipped(bundle: Path, data: st.DataObject) -> None:
    files = members(bundle)
    name = data.draw(st.sampled_from(MEMBERS))
    place = data.draw(st.integers(0, len(files[name]) - 1))
    flipped = bytearray(files[name])
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    files[name] = bytes(flipped)
    try:
        found = check_evidence(str(rebuild(bundle, files)))
    except InvalidSession:
        return
    assert found.problems


def test_what_is_no_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    files = members(bundle)
    short = {name: files[name] for name in MEMBERS[1:]}
    more = {**files, "more": b"x"}
    for number, content in enumerate(
        [b"", b"hello" * 1000, rebuild(bundle, short).read_bytes(), rebuild(bundle, more).read_bytes()]
    ):
        path = tmp_path / f"{number}.tar"
        path.write_bytes(content)
        with pytest.raises(InvalidSession):
            check_evidence(str(path))
    with pytest.raises(BadRequest):
        check_evidence(str(tmp_path / "missing.tar"))
    unfinished = check_evidence(str(rebuild(bundle, {name: files[name] for name in MEMBERS[:2]})))
    assert "the bundle ends after session.json" in unfinished.problems


def test_a_bundle_that_was_cut_anywhere_before_its_end_does_not_hold(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    last_byte = whole.rindex(b"journal.jsonl\n") + len(b"journal.jsonl\n")
    for size in (*range(0, last_byte, 97), last_byte - 1):
        path = tmp_path / "cut.tar"
        path.write_bytes(whole[:size])
        try:
            found = check_evidence(str(path))
        except InvalidSession:
            continue
        assert found.problems, size


def test_a_journal_or_session_that_is_not_as_it_was_written_makes_no_evidence(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "e.tar"
    tamper(folder / "aura.db", "UPDATE event SET at_ms = 0 WHERE seq = 3")
    with pytest.raises(StoreUnavailable, match="not as it was written"):
        export_evidence(folder, "s1", str(out))
    tamper(folder / "aura.db", f"UPDATE event SET at_ms = {NOW_MS} WHERE seq = 3")
    tamper(folder / "aura.db", "UPDATE message SET body = replace(body, 'hello', 'hullo')")
    with pytest.raises(StoreUnavailable, match="no longer hash"):
        export_evidence(folder, "s1", str(out))
    assert not out.exists()


def test_a_file_that_differs_is_kept_and_bad_names_are_refused(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "e.tar"
    out.write_text("something else")
    with pytest.raises(Exists):
        export_evidence(folder, "s1", str(out))
    assert out.read_text() == "something else"
    for name in ("", str(tmp_path) + "/", str(tmp_path / "no" / "e.tar")):
        with pytest.raises(BadRequest):
            export_evidence(folder, "s1", name)
    with pytest.raises(NotFound):
        export_evidence(folder, "nobody", str(tmp_path / "n.tar"))
