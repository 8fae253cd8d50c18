"""Goes through a journal from its first event on, as the store did that wrote it, and refuses what no store can have
written. Pure: it holds only what it must remember, and writes nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from aura import events as e
from aura.runs import Run, accept, fold
from aura.store.journals import GENESIS_HASH
from aura.wire.automation import envelope, request_digest
from aura.wire.event_reader import Members
from aura.wire.journal_text import JournalLine, encode_data, read_new_run


@dataclass(slots=True)
class Replay:
    """A journal that is being read for the session `session_id`, which may be another one than it was written for.

    After the last `take`: `last_seq` and `chain_hash` are those the session will have; `inputs` is what is known of
    each run's input, by run id.
    """

    session_id: str
    last_seq: int = 0
    chain_hash: bytes = GENESIS_HASH
    inputs: dict[str, str] = field(default_factory=dict)
    input_ids: set[str] = field(default_factory=set)
    _source_id: str | None = None
    _live: Run | None = None
    _request_ids: set[str] = field(default_factory=set)
    _pending: set[str] = field(default_factory=set)

    def take(self, line: JournalLine) -> None:
        """Go on by one event. Raises `ValueError` if it cannot follow the ones before it."""
        seq = self.last_seq + 1
        if line.seq != seq:
            raise ValueError(f"its seq is {line.seq} where {seq} follows")
        if self._source_id is None:
            self._source_id = line.session_id
        elif line.session_id != self._source_id:
            raise ValueError(f"it is of session {line.session_id}, the ones before it are of {self._source_id}")
        if isinstance(line.event, e.RunAccepted):
            self._accept(line)
        elif line.run_id is not None:
            self._fold(line, line.run_id)
        elif line.type.startswith("run."):
            raise ValueError(f"a {line.type} has a run_id")
        self._follow_inputs(line)
        data = encode_data(line, self.session_id)
        text = envelope(seq, line.at_ms, line.type, self.session_id, line.run_id, data)
        self.chain_hash = hashlib.sha256(self.chain_hash + text).digest()
        self.last_seq = seq

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs that the journal has, in its order."""
        return tuple(self.inputs)

    def _accept(self, line: JournalLine) -> None:
        run = accept(read_new_run(line, ""), self.session_id, line.seq)
        if self._live is not None and not self._live.terminal:
            raise ValueError(f"run {self._live.id} has not settled")
        if run.id in self.inputs:
            raise ValueError(f"run {run.id} was accepted before")
        if run.request_id in self._request_ids:
            raise ValueError(f"request {run.request_id[:80]!r} made another run")
        self._request_ids.add(run.request_id)
        self.inputs[run.id] = ""
        self._live = run
        self._check_record(line, run)

    def _fold(self, line: JournalLine, run_id: str) -> None:
        run = self._live
        if run is None or run.id != run_id:
            raise ValueError(f"run {run_id} " + ("has settled" if run_id in self.inputs else "was not accepted"))
        if run.terminal:
            raise ValueError(f"run {run_id} has settled")
        self._live = run = fold(run, line.event, line.seq, line.at_ms)
        self._check_record(line, run)
        self._note_input(line, run)

    def _check_record(self, line: JournalLine, run: Run) -> None:
        if "run" not in line.data or not line.type.startswith("run."):
            return
        record = Members("data", line.data).object("run")
        if record.text("id") != run.id:
            raise ValueError("data.run.id is not the run_id of the event")
        if record.text("state") != run.state or record.optional_text("outcome") != run.outcome:
            raise ValueError(f"data.run is not what the events make of it: {run.state}, outcome {run.outcome}")

    def _note_input(self, line: JournalLine, run: Run) -> None:
        """Keep what the run was asked: the first text whose digest proves it, or else how it entered the conversation.

        A controller's request is not in the journal itself, and directives may have changed it on its way.
        """
        match line.event:
            case e.MessageUser(content=text) | e.CommandResult(command=text):
                proven = request_digest(run.kind, run.on_input, text) == run.request_digest
                if proven or not self.inputs[run.id]:
                    self.inputs[run.id] = text
            case _:
                return

    def _follow_inputs(self, line: JournalLine) -> None:
        match line.event:
            case e.InputRequired(input_id=input_id):
                if line.run_id is None:
                    raise ValueError("an input.required has a run_id")
                if input_id in self.input_ids:
                    raise ValueError(f"input {input_id[:80]!r} was asked before")
                self.input_ids.add(input_id)
                self._pending.add(input_id)
            case e.InputResolved(input_id=input_id):
                if input_id not in self._pending:
                    raise ValueError(f"input {input_id[:80]!r} is not pending")
                self._pending.discard(input_id)
            case _:
                return
