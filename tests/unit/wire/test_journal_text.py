"""Lines of a journal read back: ours byte for byte, other programs' in our spelling, and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from aura.store.journals import GENESIS_HASH
from aura.store.replay import Replay
from aura.wire.automation import envelope
from aura.wire.catalogue import CONTRACT_TYPES
from aura.wire.event_reader import EVENT_TYPES
from aura.wire.journal_text import encode_data, parse_line
from aura.wire.line_chain import LineChain
from tests.support.samples import SESSION_ID, journal

LINES = [line.text for line in journal()]


def text_of(line: bytes, session_id: str = SESSION_ID) -> bytes:
    parsed = parse_line(line)
    data = encode_data(parsed, session_id)
    return envelope(parsed.seq, parsed.at_ms, parsed.type, session_id, parsed.run_id, data)


def test_every_type_of_the_contract_can_be_read() -> None:
    assert frozenset(EVENT_TYPES) == CONTRACT_TYPES
    assert {parse_line(line).type for line in LINES} == CONTRACT_TYPES


@pytest.mark.parametrize("line", LINES, ids=[f"{line.seq}-{line.type}" for line in journal()])
def test_a_line_of_ours_comes_out_as_it_went_in(line: bytes) -> None:
    assert text_of(line) == line
    assert text_of(line + b"\r\n") == line


def test_the_events_read_are_those_that_were_written_but_for_what_the_contract_does_not_carry() -> None:
    for line in journal():
        event = parse_line(line.text).event
        assert type(event) is type(line.event)
        if line.type not in ("input.resolved", "run.cancel_requested", "message.assistant"):
            assert event == line.event


def test_another_session_gets_its_own_id_into_lines_and_records() -> None:
    for line in LINES:
        moved = text_of(line, "task-2")
        assert json.loads(moved) == json.loads(line.replace(b'"session_id":"task-1"', b'"session_id":"task-2"'))
        assert b"task-1" not in moved.replace(b"task-1:", b"")


def test_a_foreign_spelling_is_taken_and_its_data_kept() -> None:
    foreign = (
        b'{ "run_id":null, "seq":1, "type":"notice", "time":"2027-01-01T01:00:00.123456+01:00",'
        b' "session_id":"s", "data":{"level":"info","source":"a","message":"\\u00e9","more":[1.0]} }'
    )
    parsed = parse_line(foreign)
    assert parsed.at_ms == parse_line(text_of(foreign, "s")).at_ms
    assert text_of(foreign, "s") == (
        '{"seq":1,"time":"2027-01-01T00:00:00.123Z","type":"notice","session_id":"s","run_id":null,'
        '"data":{"level":"info","source":"a","message":"é","more":[1.0]}}'.encode()
    )


def changed(number: int, change: Callable[[dict[str, Any]], object]) -> bytes:
    event = json.loads(LINES[number])
    change(event)
    return json.dumps(event).encode()


BAD_LINES = {
    "not json": (b"{", "line 1 column 2"),
    "no object": (b"[]", "not an object"),
    "unknown key": (changed(0, lambda event: event.update(more=1)), "'more' is no key"),
    "missing key": (changed(0, lambda event: event.pop("run_id")), "event.run_id is missing"),
    "seq": (changed(0, lambda event: event.update(seq=True)), "event.seq is not a whole number"),
    "negative seq": (changed(0, lambda event: event.update(seq=-1)), "event.seq is not a whole number"),
    "time": (changed(0, lambda event: event.update(time="today")), "event.time: not an RFC 3339"),
    "type": (changed(0, lambda event: event.update(type="delta.content")), "'delta.content' is no type"),
    "session": (changed(0, lambda event: event.update(session_id="../x")), "event.session_id"),
    "run": (changed(0, lambda event: event.update(run_id='run_"')), "event.run_id"),
    "data": (changed(0, lambda event: event.update(data=[])), "event.data is not an object"),
    "data key": (changed(0, lambda event: event["data"].pop("pid")), "data.pid is missing"),
    "data value": (changed(0, lambda event: event["data"].update(pid="1")), "data.pid is not a whole number"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_refused_with_what_is_wrong(name: str) -> None:
    line, problem = BAD_LINES[name]
    with pytest.raises(ValueError, match=problem):
        parse_line(line)


def test_a_journal_can_be_gone_through_and_its_chain_is_that_of_its_lines() -> None:
    replay, chain = Replay(SESSION_ID), GENESIS_HASH
    for line in LINES:
        replay.take(parse_line(line))
        chain = hashlib.sha256(chain + line).digest()
    assert (replay.last_seq, replay.chain_hash) == (len(LINES), chain)
    assert list(replay.inputs.values())[:3] == ["Do the tests pass?", "", "/stats"]


def without(*numbers: int) -> list[bytes]:
    kept = [json.loads(line) for number, line in enumerate(LINES) if number not in numbers]
    for seq, event in enumerate(kept, start=1):
        event["seq"] = seq
    return [json.dumps(event).encode() for event in kept]


def number_of(type: str, nth: int = 0) -> int:
    return [number for number, line in enumerate(journal()) if line.type == type][nth]


IMPOSSIBLE = {
    "gap": ([LINES[0], LINES[2]], "its seq is 3 where 2 follows"),
    "twice": ([LINES[0], LINES[0]], "its seq is 1 where 2 follows"),
    "does not begin": (LINES[1:], "its seq is 2 where 1 follows"),
    "another session": (
        [LINES[0], LINES[1].replace(b'"session_id":"task-1"', b'"session_id":"task-2"', 1)],
        "it is of session task-2",
    ),
    "not accepted": (without(number_of("run.accepted")), "was not accepted"),
    "not settled": (without(number_of("run.persisted")), "has not settled"),
    "not finished": (without(number_of("run.finished")), "cannot become persisted"),
    "not asked": (without(number_of("input.required")), "is not pending"),
    "other outcome": (
        [
            line.replace(b'"outcome":"completed"', b'"outcome":"cancelled"') if b'"run.finished"' in line else line
            for line in LINES
        ],
        "not what the events make of it",
    ),
    "run of another": (
        [line.replace(b'"run":{"id":"run_', b'"run":{"id":"run_x') for line in LINES],
        "data.run.id is not the run_id",
    ),
    "a run without a run": (
        [changed(number, lambda e: e.update(run_id=None)) for number in range(len(LINES))],
        "data.run.id is not the run_id of the event|has a run_id",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_journal_that_no_store_can_have_written_is_refused(name: str) -> None:
    lines, problem = IMPOSSIBLE[name]
    replay = Replay(SESSION_ID)
    with pytest.raises(ValueError, match=problem):
        for line in lines:
            replay.take(parse_line(line))


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_a_chain_is_recomputed_from_pieces_of_any_size(size: int) -> None:
    text = b"".join(line + b"\n" for line in LINES)
    expected = GENESIS_HASH
    hashes = []
    for line in LINES:
        expected = hashlib.sha256(expected + line).digest()
        hashes.append(expected)
    chain = LineChain(0, GENESIS_HASH, 1, expected=hashes[4], wanted_seq=3)
    for start in range(0, len(text), size):
        chain.add(text[start : start + size])
    chain.end()
    assert (chain.problem, chain.seq, chain.sha256) == (None, len(LINES), hashes[-1])
    assert (chain.expected_seqs, chain.wanted) == ([5], LINES[2])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LINES[0] + b"\n" + LINES[2] + b"\n", "where event 2 should be is another line"),
        (LINES[0], "line 1 has no end"),
        (b"\n", "where event 1 should be is another line"),
    ],
)
def test_a_chain_says_what_is_wrong_with_the_text(text: bytes, problem: str) -> None:
    chain = LineChain(0, GENESIS_HASH, 1)
    chain.add(text)
    chain.end()
    assert chain.problem == problem
