"""Random sequences of verbs against a plain model: what the store must hold after any of them.

The model keeps whole documents in dictionaries; it knows no chain, no sharing and no SQL.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from aura import events as e
from aura.conversation import Message
from aura.errors import AuraError, Busy, Exists, RequestConflict, RevisionMismatch, SessionFrozen, SessionLocked
from aura.runs import Run, fold
from aura.runs import accept as accept_run
from aura.store import protocol as p
from aura.store.care import no_progress
from aura.store.caretaker import find_caretaker
from aura.store.open import open_store
from aura.wire import document
from tests.unit.store.store_kit import NOW_MS, Keeper, exported, header, new_run, persisted, query, sha256

texts = st.text(st.characters(codec="utf-8"), max_size=12)
messages = st.lists(
    st.builds(Message, st.sampled_from(("user", "assistant", "system")), texts, type=st.sampled_from((0, 3))),
    max_size=4,
)


@dataclass
class Model:
    """One session: its documents by revision, oldest first, and its events' kinds and runs."""

    bodies: list[bytes] = field(default_factory=list)
    revisions: list[tuple[str, list[bytes]]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    run: Run | None = None
    settled: list[Run] = field(default_factory=list)
    frozen: bool = False
    parent: tuple[str, str] | None = None

    @property
    def head(self) -> str:
        return self.revisions[-1][0]


class StoreMachine(RuleBasedStateMachine):
    sessions: Bundle[str] = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="aura-model-"))
        self.store = open_store(self.folder)
        self.models: dict[str, Model] = {}
        self.keepers: dict[str, Keeper] = {}
        self.counter = 0

    def teardown(self) -> None:
        for keeper in self.keepers.values():
            keeper.release()
        self.store.close()
        shutil.rmtree(self.folder)

    # --- verbs --------------------------------------------------------------------------------------------------

    @initialize(target=sessions)
    def first(self) -> str:
        return self.create()

    @rule(target=sessions)
    def create(self) -> str:
        name = self.next("s")
        made = self.store.create_session(header(name))
        self.models[name] = Model(revisions=[(made.revision, [])])
        return name

    @rule(name=sessions, added=messages)
    def checkpoint(self, name: str, added: list[Message]) -> None:
        self.save(name, added, None)

    @rule(name=sessions, added=messages, part=st.integers(0, 100))
    def compact(self, name: str, added: list[Message], part: int) -> None:
        self.save(name, added, len(self.models[name].bodies) * part // 100)

    @rule(name=sessions, count=st.integers(1, 5))
    def notices(self, name: str, count: int) -> None:
        keeper = self.hold(name)
        if keeper is None:
            return
        keeper.commit([e.Notice(level="info", origin="x", message=str(index)) for index in range(count)])
        self.models[name].kinds += ["notice"] * count

    @rule(name=sessions)
    def accept(self, name: str) -> None:
        keeper, model = self.hold(name), self.models[name]
        if keeper is None:
            return
        new = new_run(self.next("r"))
        if model.run is not None:
            with pytest.raises(Busy):
                self.store.accept(keeper.lease, new)
            return
        accepted = self.store.accept(keeper.lease, new)
        model.run = accept_run(new, name, len(model.kinds) + 1)
        model.kinds.append("run.accepted")
        assert (accepted.created, accepted.run) == (True, model.run)

    @rule(name=sessions)
    def accept_again(self, name: str) -> None:
        model = self.models[name]
        keeper = self.hold(name)
        known = [run for run in [*model.settled, model.run] if run is not None]
        if keeper is None or not known:
            return
        assert self.store.accept(keeper.lease, new_run(known[0].request_id)) == p.Accepted(known[0], created=False)
        with pytest.raises(RequestConflict):
            self.store.accept(keeper.lease, new_run(known[0].request_id, "another text"))

    @rule(name=sessions, step=st.sampled_from(("start", "iterate", "finish", "settle", "cancel")))
    def step(self, name: str, step: str) -> None:
        model = self.models[name]
        if model.run is None:
            return
        if step == "cancel":
            cancelled = self.store.request_cancel(model.run.id, reason="request", message=None, at_ms=NOW_MS)
            if not model.run.cancel_requested:
                self.applied(name, [e.RunCancelRequested()])
            assert cancelled == model.run
            return
        keeper = self.hold(name)
        if keeper is None:
            return
        events: list[e.Event] = {
            "start": [e.MessageUser(message_id="m", content="c"), e.RunStarted(run_id=model.run.id, message_id="m")],
            "iterate": [
                e.MessageAssistant(message_id="m", content="c"),
                e.ToolStarted(call_id=self.next("c"), name="Bash", args={}),
                e.ToolFinished(call_id=f"c{self.counter}", name="Bash", status="error", result="", error="x"),
            ],
            "finish": [e.RunFinished(outcome="completed")],
            "settle": [e.RunPersisted()],
        }[step]  # type: ignore[assignment]
        before = len(model.kinds)
        try:
            for seq, event in enumerate(events, before + 1):
                fold(model.run, event, seq, NOW_MS)
        except ValueError:
            with pytest.raises(AuraError):
                keeper.commit(events, model.run.id)
            return
        receipt = keeper.commit(events, model.run.id)
        self.applied(name, events)
        assert (receipt.first_seq, receipt.last_seq) == (before + 1, len(model.kinds))

    @rule(target=sessions, name=sessions, oldness=st.integers(0, 5))
    def fork(self, name: str, oldness: int) -> str:
        model, child = self.models[name], self.next("f")
        revision, bodies = model.revisions[-1 - min(oldness, len(model.revisions) - 1)]
        asked = revision if oldness else None
        made = self.store.fork(name, child, revision=asked, expect_revision=revision, at_ms=NOW_MS)
        again = self.store.fork(name, child, revision=asked, at_ms=NOW_MS + 1)
        assert (made.created, again.created, again.session) == (True, False, made.session)
        self.models[child] = Model(list(bodies), [(made.session.revision, list(bodies))], parent=(name, revision))
        return child

    @rule(name=sessions)
    def fork_wrongly(self, name: str) -> None:
        with pytest.raises(RevisionMismatch):
            self.store.fork(name, self.next("w"), expect_revision="0" * 64, at_ms=NOW_MS)
        other = next(iter(self.models))
        if self.models[other].parent != (name, self.models[name].head):
            with pytest.raises(Exists):
                self.store.fork(name, other, at_ms=NOW_MS)

    @rule(target=sessions, name=sessions)
    def import_copy(self, name: str) -> str:
        copy = self.next("i")
        parsed = document.parse_document(exported(self.store, name), id=copy)
        made = self.store.import_session(parsed, freeze=False, at_ms=NOW_MS)
        assert made.created and not self.store.import_session(parsed, freeze=False, at_ms=NOW_MS).created
        old = self.models[name]
        self.models[copy] = Model(
            list(parsed.messages),
            [(made.session.revision, list(parsed.messages))],
            frozen=old.frozen,
            parent=old.parent,
        )
        return copy

    @rule(name=sessions)
    def freeze_held(self, name: str) -> None:
        if name in self.keepers:
            with pytest.raises(SessionLocked):
                self.store.freeze(name, at_ms=NOW_MS)

    @precondition(lambda self: len(self.models) > 2)
    @rule(name=consumes(sessions))
    def freeze(self, name: str) -> None:
        model = self.models[name]
        self.let_go(name)
        frozen = self.store.freeze(name, expect_revision=model.head, at_ms=NOW_MS)
        assert frozen.changed is not model.frozen
        if frozen.changed:
            if model.run is not None:
                saved = self.models[name].revisions[-1]
                count = sum(document.decode_message(body).role != "system" for body in saved[1])
                seq = max((i for i, kind in enumerate(model.kinds, 1) if kind == "session.persisted"), default=0)
                self.applied(name, [e.RunLost(revision=saved[0], messages=count, persisted_seq=seq)])
            model.revisions.append((frozen.session.revision, list(model.bodies)))
            model.frozen = True
        assert self.store.freeze(name, at_ms=NOW_MS) == p.Frozen(frozen.session, changed=False)

    @rule(name=sessions)
    def release(self, name: str) -> None:
        self.let_go(name)

    @rule()
    def reopen(self) -> None:
        for name in list(self.keepers):
            self.let_go(name)
        self.store.close()
        self.store = open_store(self.folder)

    # --- what must hold at any time -----------------------------------------------------------------------------

    @invariant()
    def heads_are_what_the_model_says(self) -> None:
        listed = {item.id: item for item in self.store.list_sessions(p.SessionFilter()).items}
        assert set(listed) == set(self.models)
        for name, model in self.models.items():
            assert (listed[name].revision, listed[name].frozen) == (model.head, model.frozen)
            assert self.store.read_last_seq(name) == len(model.kinds)
            if model.run is not None:
                assert self.store.get_run(model.run.id) == model.run

    def check_sound(self) -> None:
        caretaker = find_caretaker(self.folder)
        assert caretaker is not None
        unowned = {model.run.id for name, model in self.models.items() if model.run and name not in self.keepers}
        findings = caretaker.check(quick=False, progress=no_progress).findings
        assert {finding.code for finding in findings} <= {"run_unowned"} and len(findings) == len(unowned)

    def check_everything(self) -> None:
        self.check_sound()
        for name, model in self.models.items():
            assert [item.sha256 for item in self.store.list_revisions(name)][::-1] == [r for r, _ in model.revisions]
            for revision, bodies in model.revisions:
                data = exported(self.store, name, revision)
                assert sha256(data) == revision
                assert json.loads(data)["messages"] == [json.loads(body) for body in bodies]
                assert self.store.load_conversation(name, revision).conversation.messages == tuple(bodies)
            rows = self.store.read_events(name, 0, 10_000)
            assert [row.seq for row in rows] == list(range(1, len(model.kinds) + 1))
            assert [row.type for row in rows] == model.kinds
            for run in model.settled:
                assert self.store.get_run(run.id) == run
            seen = query(self.folder / "aura.db", "SELECT body FROM v_message WHERE session_id = ? ORDER BY idx", name)
            assert [str(row[0]).encode() for row in seen] == model.bodies

    # --- inside -------------------------------------------------------------------------------------------------

    def next(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def hold(self, name: str) -> Keeper | None:
        if name in self.keepers:
            return self.keepers[name]
        if self.models[name].frozen:
            with pytest.raises(SessionFrozen):
                Keeper(self.store, name)
            return None
        self.keepers[name] = Keeper(self.store, name)
        return self.keepers[name]

    def let_go(self, name: str) -> None:
        keeper = self.keepers.pop(name, None)
        if keeper is not None:
            keeper.release()

    def save(self, name: str, added: list[Message], keep: int | None) -> None:
        keeper, model = self.hold(name), self.models[name]
        if keeper is None:
            return
        saved = keeper.checkpoint(added, keep=keep)
        run_id = model.run.id if model.run else None
        keeper.commit([persisted(saved)], run_id, saved)
        if keep is not None:
            model.bodies = model.bodies[:keep]
        model.bodies = model.bodies + [document.encode_message(message) for message in added]
        model.revisions.append((saved.revision, list(model.bodies)))
        self.applied(name, [persisted(saved)])

    def applied(self, name: str, events: list[e.Event]) -> None:
        model = self.models[name]
        for event in events:
            model.kinds.append(event.kind)
            if model.run is not None:
                model.run = fold(model.run, event, len(model.kinds), NOW_MS)
        if model.run is not None and model.run.terminal:
            model.settled.append(model.run)
            model.run = None


class CheckedMachine(StoreMachine):
    def teardown(self) -> None:
        try:
            self.check_everything()
        finally:
            super().teardown()


TestStoreAgainstAModel: Callable[[], None] = CheckedMachine.TestCase
CheckedMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
