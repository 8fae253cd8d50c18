"""Random prunes of a store that random verbs have filled: it stays sound, and what must stay stays, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from aura.store.care import PruneReport, PruneRule, no_progress
from aura.store.caretaker import Caretaker
from tests.property.store.test_store_against_a_model import Model, StoreMachine
from tests.unit.store.store_kit import NOW_MS, exported, header, query

LATER_MS = NOW_MS + 10_000_000
ages = st.one_of(st.none(), st.integers(NOW_MS - 1, NOW_MS + 12))


def kept(revisions: list[tuple[str, list[bytes]]], left: list[str]) -> list[tuple[str, list[bytes]]]:
    """Return the revisions that are left, which are named newest first; one content may be saved several times."""
    found: list[tuple[str, list[bytes]]] = []
    for revision in reversed(revisions):
        if len(found) < len(left) and revision[0] == left[len(found)]:
            found.append(revision)
    assert len(found) == len(left), "what is left was there before, in the same order"
    return found[::-1]


class PruningMachine(StoreMachine):
    """The model of the other test, with prunes in between. Revisions that went are dropped from the model."""

    @rule(keep=st.integers(0, 3), before_ms=ages)
    def prune_sessions(self, keep: int, before_ms: int | None) -> None:
        documents = {name: exported(self.store, name) for name in self.models}
        report = self.prune(PruneRule("sessions", before_ms, keep))
        gone = {item.session_id for item in report.pruned}
        assert gone.isdisjoint(item.session_id for item in report.spared)
        for name in gone:
            assert name not in self.keepers and not self.models[name].frozen and self.models[name].run is None
            assert self.store.find_session(name) is None
        for name in self.models.keys() - gone:
            assert exported(self.store, name) == documents[name]
        self.check_nothing_is_left_of(gone)
        for name in gone:  # its id is free again, and nothing of the old one shows
            made = self.store.create_session(header(name))
            self.models[name] = Model(revisions=[(made.revision, [])])

    @rule(keep=st.integers(0, 2), before_ms=ages, keep_revisions=st.integers(1, 3))
    def prune_revisions(self, keep: int, before_ms: int | None, keep_revisions: int) -> None:
        report = self.prune(PruneRule("revisions", before_ms, keep, keep_revisions))
        origins = {model.parent for model in self.models.values() if model.parent}
        for name, model in self.models.items():
            left = [item.sha256 for item in self.store.list_revisions(name)]
            newest = [revision for revision, _ in model.revisions[::-1]]
            assert left[:keep_revisions] == newest[:keep_revisions]
            assert not ({*newest} - {*left}) & {revision for parent, revision in origins if parent == name}
            if len(left) < len(newest):
                assert name in {item.session_id for item in report.pruned}
                assert name not in self.keepers and not model.frozen and model.run is None
            model.revisions = kept(model.revisions, left)

    @rule(keep=st.integers(0, 2), before_ms=ages)
    def prune_journals(self, keep: int, before_ms: int | None) -> None:
        before = {name: self.floor(name) for name in self.models}
        self.prune(PruneRule("journal", before_ms, keep))
        for name, model in self.models.items():
            floor = self.floor(name)
            rows = self.store.read_events(name, floor - 1, 10_000)
            assert [row.seq for row in rows] == list(range(floor, len(model.kinds) + 1))
            if name in self.keepers or model.frozen or model.run is not None:
                assert floor == before[name]

    def prune(self, rule: PruneRule) -> PruneReport:
        caretaker = Caretaker(self.folder)
        planned = caretaker.plan_prune(rule, no_progress)
        report = caretaker.prune(rule, LATER_MS, no_progress)
        assert [item.session_id for item in planned.pruned] == [item.session_id for item in report.pruned]
        assert planned.spared == report.spared
        if rule.what != "revisions":
            assert (planned.pruned, planned.text_bytes) == (report.pruned, report.text_bytes)
        self.check_sound()
        return report

    def floor(self, name: str) -> int:
        (row,) = query(self.folder / "aura.db", "SELECT journal_floor FROM session WHERE id = ?", name)
        assert isinstance(row[0], int)
        return row[0]

    def check_nothing_is_left_of(self, names: set[str]) -> None:
        database = self.folder / "aura.db"
        known = {row[0] for row in query(database, "SELECT sid FROM session")}
        assert not names & {row[0] for row in query(database, "SELECT id FROM session")}
        tables = [str(row[0]) for row in query(database, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            columns = {str(row[1]) for row in query(database, f"PRAGMA table_info('{table}')")}
            if "sid" in columns:
                assert {row[0] for row in query(database, f"SELECT DISTINCT sid FROM '{table}'")} <= known
        assert {row[0] for row in query(database, "SELECT DISTINCT scope FROM request")} <= known
        for name in names:
            lock = self.folder / ".locks" / f"{name}.lock"
            assert lock.exists()

    def check_everything(self) -> None:
        self.check_sound()
        for name, model in self.models.items():
            assert self.store.load_conversation(name).conversation.messages == tuple(model.bodies)
            for run in model.settled:
                assert self.store.get_run(run.id) == run
                assert self.store.find_request(name, run.request_id) == run

    def teardown(self) -> None:
        try:
            self.check_everything()
        finally:
            super().teardown()


TestPruningAgainstAModel: Callable[[], None] = PruningMachine.TestCase
PruningMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
