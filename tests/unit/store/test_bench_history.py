"""The store that benchmarks ask is one that a server could have left: chain, seq, revisions, projections."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from aura.runtime.sql import opened
from aura.store.open import open_store
from aura.store.protocol import RunFilter, SessionFilter
from aura.store.sqlite.journal import GENESIS_HASH
from tests.support.sql_page import ask

HISTORY = Path(__file__).resolve().parents[3] / "scripts" / "bench" / "history.py"


@pytest.fixture(scope="module")
def history() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_history", HISTORY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(history: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("history")
    done = history.make_history(directory, history.Shape(events=3000, sessions=5, days=3))
    assert done.events >= 3000 and done.tool_calls > 400
    return directory


def test_events_are_contiguous_and_their_hashes_form_a_chain(made: Path) -> None:
    store = open_store(made)
    with opened(made) as questions:
        for session in store.list_sessions(SessionFilter()).items:
            sql = "SELECT chain_hash FROM v_event WHERE session_id = :id ORDER BY seq"
            stored = [row[0] for row in ask(questions, sql, {"id": session.id}).rows]
            events = store.read_events(session.id, 0, 100_000)
            assert [event.seq for event in events] == list(range(1, store.read_last_seq(session.id) + 1))
            chain = GENESIS_HASH
            for event, expected in zip(events, stored, strict=True):
                chain = hashlib.sha256(chain + event.line).digest()
                assert chain.hex() == expected
    store.close()


def test_every_revision_is_the_hash_of_its_document(made: Path) -> None:
    store = open_store(made)
    for session in store.list_sessions(SessionFilter()).items:
        for revision in store.list_revisions(session.id)[::10]:
            _, pieces = store.export(session.id, revision.sha256)
            assert hashlib.sha256(b"".join(pieces)).hexdigest() == revision.sha256
    store.close()


def test_runs_have_every_fate_and_some_wait_for_an_approval(made: Path) -> None:
    store = open_store(made)
    runs = store.list_runs(RunFilter()).items
    live = store.list_runs(RunFilter(live=True)).items
    store.close()
    assert {run.state for run in runs} >= {"persisted", "running"}
    assert len({run.outcome for run in runs}) > 2
    with opened(made) as questions:
        assert len(ask(questions, "SELECT * FROM v_input WHERE state = 'pending'", {}).rows) == len(live) > 0
        (row,) = ask(questions, "SELECT sum(tool_errors) FROM v_run", {}).rows
        assert ask(questions, "SELECT count(*) FROM v_tool_call WHERE status = 'error'", {}).rows == [row]
