#!/usr/bin/env python3
"""Asks for many chats and notes when their pieces arrive: a process of its own, so that it takes no interpreter from a
server.

`ask` starts one with a `Plan`. A chat's prompt is unique, and so is the answer that belongs to it, which is checked to
the letter. Times count from the moment that the plan gives a chat, not from when it was begun: a late loop is seen.
It parses no more than it must, so that what is measured is the server.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

WAIT_S = 120
PIECES_COUNT = 20
DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Plan:
    """`count` chats over `spread_ms`, each in a new connection; with `in_a_row` one begins when another has ended.

    Prompts begin with `word`. `model` is what the request names.
    """

    url: str
    word: str
    count: int
    spread_ms: int = 0
    in_a_row: bool = False
    model: str = "main"


@dataclass(frozen=True, slots=True)
class Times:
    """What was seen: times in ms from each chat's moment, chats that went wrong, and this process's CPU seconds."""

    first_ms: tuple[float, ...]
    end_ms: tuple[float, ...]
    wrong: tuple[str, ...]
    cpu_s: float


def percentile(values: tuple[float, ...], percentage: int) -> float:
    """Return what `percentage` of 100 values do not exceed."""
    return sorted(values)[min(len(values) - 1, len(values) * percentage // 100)] if values else float("nan")


def pieces(prompt: str) -> list[str]:
    """Return the pieces of the answer that belongs to a prompt, as a script and a provider give them."""
    return [prompt, *(f" word{number}" for number in range(1, PIECES_COUNT))]


def ask(plan: Plan) -> Times:
    """Carry the plan out in a process of its own; return what it saw."""
    with asking(plan) as running:
        return running.times()


class Asking:
    """A plan that is being carried out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait_open(self) -> None:
        """Return when all chats have an answer's head."""
        assert self._line() == {"open": True}

    def times(self) -> Times:
        """Return what was seen, once all chats have ended."""
        while "open" in (found := self._line()):
            continue
        return Times(tuple(found["first_ms"]), tuple(found["end_ms"]), tuple(found["wrong"]), found["cpu_s"])

    def _line(self) -> dict:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that asks has ended early"
        return json.loads(line)


@contextmanager
def asking(plan: Plan) -> Iterator[Asking]:
    """Carry the plan out in a process of its own, while the caller looks at the server."""
    command = [sys.executable, str(Path(__file__).resolve()), json.dumps(asdict(plan))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield Asking(process)
    finally:
        process.kill()
        process.wait()


class _Asker:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._host, self._port = plan.url.removeprefix("http://").split(":")
        self._open_count = 0
        self._first_ms: list[float] = []
        self._end_ms: list[float] = []
        self._wrong: list[str] = []

    async def run(self) -> None:
        plan = self._plan
        begun = time.perf_counter() + (0 if plan.in_a_row else 0.2)
        if plan.in_a_row:
            for number in range(plan.count):
                await self._chat(number, time.perf_counter())
        else:
            gap_s = plan.spread_ms / 1000 / plan.count
            await asyncio.gather(*(self._chat(number, begun + number * gap_s) for number in range(plan.count)))
        found = {"first_ms": self._first_ms, "end_ms": self._end_ms, "wrong": self._wrong, "cpu_s": time.process_time()}
        _print(found)

    async def _chat(self, number: int, at: float) -> None:
        prompt = f"{self._plan.word} {number} of {id(self)}"
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        try:
            async with asyncio.timeout(WAIT_S):
                text = await self._read(prompt, at)
        except (OSError, ValueError, EOFError, TimeoutError) as error:
            self._wrong.append(f"{prompt}: {type(error).__name__}: {error}"[:300])
            return
        if text != "".join(pieces(prompt)):
            self._wrong.append(f"{prompt}: {text}"[:300])

    async def _read(self, prompt: str, at: float) -> str:
        reader, writer = await asyncio.open_connection(self._host, int(self._port))
        try:
            writer.write(self._request(prompt))
            status = await reader.readline()
            if b" 200 " not in status:
                raise ValueError(status.decode() + (await reader.read(500)).decode())
            while await reader.readline() not in (b"\r\n", b""):
                continue
            text, first_ms = "", None
            async for data in _data(reader, self._note_open):
                now_ms = (time.perf_counter() - at) * 1000
                if data == DONE:
                    self._end_ms.append(now_ms)
                    self._first_ms.append(first_ms if first_ms is not None else now_ms)
                    return text
                content = json.loads(data)["choices"][0]["delta"].get("content")
                if content:
                    first_ms = first_ms if first_ms is not None else now_ms
                    text += content
            raise ValueError(f"the stream ended early after {text!r:.100}")
        finally:
            writer.close()

    def _request(self, prompt: str) -> bytes:
        body = json.dumps(
            {"model": self._plan.model, "stream": True, "messages": [{"role": "user", "content": prompt}]}
        ).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        return f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def _note_open(self) -> None:
        self._open_count += 1
        if self._open_count == self._plan.count:
            _print({"open": True})


async def _data(reader: asyncio.StreamReader, on_open: Callable[[], None]) -> AsyncIterator[str]:
    """Yield the data of each event of a chunked stream; call `on_open` at its first chunk."""
    buffer = b""
    is_open = False
    while size := int(await reader.readline() or b"0", 16):
        if not is_open:
            is_open = True
            on_open()
        buffer += await reader.readexactly(size)
        await reader.readexactly(2)
        *whole, buffer = buffer.split(b"\n\n")
        for event in whole:
            for line in event.split(b"\n"):
                if line.startswith(b"data: "):
                    yield line[6:].decode()


def _print(found: Mapping[str, object]) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    asyncio.run(_Asker(Plan(**json.loads(sys.argv[1]))).run())
