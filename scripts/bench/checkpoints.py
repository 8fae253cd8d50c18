"""What a checkpoint costs in sessions of given lengths, measured beside a raw append and fsync of the same bytes.

An iteration is what a run with tools really does: one commit with message.assistant and tool.started, then the
checkpoint, a commit with tool.finished and session.persisted, two new messages of 1.45 KB on average, the new revision,
the run record and all derived rows. Times are those of the checkpoint, hashing and encoding included. Bytes are those
of the whole iteration, as the kernel counts them for this process (write_bytes of /proc/self/io): the WAL and what the
writer moves from it into the database.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from aura import events as e
from aura.clock import format_time
from aura.conversation import Call, Conversation, Header, Message
from aura.events import Event, Stamped
from aura.ids import new_run_id
from aura.runs import NewRun
from aura.store import protocol as p
from aura.store.open import open_store
from aura.store.sqlite.store import SqliteStore
from aura.wire import document
from aura.wire.automation import request_digest

TIME_RATIO_MAX = 1.5
BYTES_MAX = 100_000
MESSAGE_CHARS = 1370  # with its keys an average of 1.45 KB
NOW_MS = 1_767_225_600_000


@dataclass
class Figures:
    """What was measured of one session size. Times in ms."""

    messages: int
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    raw: list[float] = field(default_factory=list)
    start_wall: list[float] = field(default_factory=list)
    iteration_bytes: float = 0.0


class Session:
    """A held session of a given length, checkpointed as a run thread does it."""

    def __init__(self, folder: Path, messages: int) -> None:
        self.folder = folder
        self.store: SqliteStore = open_store(folder)
        at = format_time(NOW_MS)
        header = Header("bench", "Bench", at, at, system="You are careful." * 20)
        bodies = tuple(document.encode_message(_message(index)) for index in range(messages))
        self.store.import_session(Conversation(header, bodies), freeze=False, at_ms=NOW_MS)
        self.lease = self.store.acquire("bench", p.Holder(os.getpid()))
        stored = self.store.load_conversation("bench")
        self.header = stored.conversation.header
        self.hasher = document.Hasher()
        self.hasher.add(stored.conversation.messages)
        self.raw = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        new = NewRun(new_run_id(NOW_MS), "r", "prompt", "hi", "block", request_digest("prompt", "block", "hi"), NOW_MS)
        self.run = self.store.accept(self.lease, new).run
        self.count = 0
        self._commit([e.MessageUser(message_id="m", content="hi"), e.RunStarted(run_id=self.run.id, message_id="m")])

    def iterate(self, figures: Figures) -> None:
        """Do one iteration and note what it cost."""
        self.count += 1
        usage = e.Usage(provider="script", model="m", input_tokens=1000, output_tokens=100)
        call = Call(f"call_{self.count}", "Bash", {"command": "ls -la src && cat README.md | head -50"})
        answer = e.MessageAssistant(message_id=f"msg_{self.count}", content="Looking.", tool_calls=(call,), usage=usage)
        began = time.perf_counter()
        self._commit([answer, e.ToolStarted(call_id=call.id, name=call.name, args=call.arguments)])
        figures.start_wall.append((time.perf_counter() - began) * 1000)
        self._checkpoint(figures, call)

    def _checkpoint(self, figures: Figures, call: Call) -> None:
        added = [_message(2 * self.count), _message(2 * self.count + 1)]
        cpu, began = time.process_time(), time.perf_counter()
        bodies = [document.encode_message(message) for message in added]
        hasher = self.hasher.copy()
        hasher.add(bodies)
        header = replace(self.header, updated_at=format_time(NOW_MS + self.count))
        tail = document.encode_tail(header)
        revision = hasher.revision(header.system, tail)
        new = tuple(p.NewMessage(body, message.role) for body, message in zip(bodies, added, strict=True))
        saved = p.Checkpoint(new, header, tail, revision, hasher.count, "checkpoint")
        done = e.ToolFinished(call_id=call.id, name=call.name, status="ok", result="x" * 1000)
        report = e.SessionPersisted(revision=revision, messages=hasher.count, reason="checkpoint", changed=True)
        self._commit([done, report], saved)
        figures.wall.append((time.perf_counter() - began) * 1000)
        figures.cpu.append((time.process_time() - cpu) * 1000)
        self.hasher, self.header = hasher, header

    def append_raw(self, figures: Figures) -> None:
        """Append and sync 3.6 KB, about what two messages and their events hold."""
        data = b"x" * 3600
        began = time.perf_counter()
        os.write(self.raw, data)
        os.fsync(self.raw)
        figures.raw.append((time.perf_counter() - began) * 1000)

    def _commit(self, events: list[Event], saved: p.Checkpoint | None = None) -> None:
        stamped = tuple(Stamped(NOW_MS, event, self.run.id) for event in events)
        self.store.commit(self.lease, p.Batch(os.urandom(8).hex(), stamped, saved)).result(30)

    def close(self) -> None:
        """Check that the last revision is what is stored, then close everything."""
        summary, pieces = self.store.export("bench")
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        assert digest.hexdigest() == summary.revision, "the exported bytes hash to the revision"
        os.close(self.raw)
        self.store.release(self.lease)
        self.store.close()


def _message(index: int) -> Message:
    size = MESSAGE_CHARS // 2 + (index * 7919) % MESSAGE_CHARS
    role = "user" if index % 2 else "assistant"
    return Message(role, "y" * size, id=f"msg_{index:08d}")  # type: ignore[arg-type]


def _written_bytes() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["write_bytes"])


def measure(directory: Path, sizes: Sequence[int], rounds: int) -> list[Figures]:
    """Measure all sizes, a round of each in turn, so that the machine's mood meets all alike."""
    sessions = [Session(directory / str(size), size) for size in sizes]
    figures = [Figures(size) for size in sizes]
    for warm_up in (True, False):
        for _ in range(10 if warm_up else rounds):
            for session, kept in zip(sessions, figures, strict=True):
                noted = Figures(0) if warm_up else kept
                session.append_raw(noted)
                session.iterate(noted)
    for session, kept in zip(sessions, figures, strict=True):
        before = _written_bytes()
        for _ in range(rounds):
            session.iterate(Figures(0))
        kept.iteration_bytes = (_written_bytes() - before) / rounds
        session.close()
    return figures
