#!/usr/bin/env python3
"""What a gateway is measured beside, as processes: a provider with a scripted answer, and a proxy that only passes on.

Both speak as much HTTP as they need, on one asyncio loop, and print their port. The provider stands for a model server
and, asked directly, for the least that a server of the machine can do. The proxy is what somebody would have instead of
a gateway that keeps nothing: an HTTP client's stream, byte for byte.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chats import DONE, pieces

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END_S = 5
Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def provider(delay_ms: int, piece_delay_ms: int) -> Iterator[tuple[str, int]]:
    """Run a provider whose answers begin after `delay_ms`; yield its URL and pid."""
    with _running(["provider", str(delay_ms), str(piece_delay_ms)]) as found:
        yield found


@contextmanager
def proxy(url: str) -> Iterator[tuple[str, int]]:
    """Run a proxy before the provider at `url`; yield its URL and pid."""
    with _running(["proxy", url]) as found:
        yield found


@contextmanager
def _running(arguments: list[str]) -> Iterator[tuple[str, int]]:
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid
    finally:
        process.kill()
        process.wait(END_S)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _event(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    fields = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    if finish_reason is not None:
        fields["usage"] = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
    return b"data: %s\n\n" % json.dumps(fields).encode()


def _provide(delay_ms: int, piece_delay_ms: int) -> Answer:
    async def answer(body: bytes, writer: asyncio.StreamWriter) -> None:
        prompt = next(item for item in reversed(json.loads(body)["messages"]) if item["role"] == "user")["content"]
        writer.write(HEAD + _chunk(b":\n\n"))
        await asyncio.sleep(delay_ms / 1000)
        for index, piece in enumerate(pieces(prompt)):
            if index and piece_delay_ms:
                await asyncio.sleep(piece_delay_ms / 1000)
            writer.write(_chunk(_event({"content": piece})))
            await writer.drain()
        writer.write(_chunk(_event({}, "stop")) + _chunk(f"data: {DONE}\n\n".encode()) + b"0\r\n\r\n")
        await writer.drain()

    return answer


def _pass_on(url: str) -> Answer:
    import httpx2

    client = httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=None))

    async def answer(body: bytes, writer: asyncio.StreamWriter) -> None:
        headers = {"Content-Type": "application/json"}
        async with client.stream("POST", f"{url}/v1/chat/completions", content=body, headers=headers) as response:
            writer.write(HEAD)
            async for data in response.aiter_raw():
                writer.write(_chunk(data))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    return answer


async def _read_head(reader: asyncio.StreamReader) -> int:
    """Return how many bytes follow the head of the next request, 0 when there is none."""
    length = 0
    while (line := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return length


async def _serve(answer: Answer) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while length := await _read_head(reader):
                await answer(await reader.readexactly(length), writer)
        except (ConnectionError, EOFError):
            return  # the caller is gone
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    asyncio.run(_serve(_pass_on(*words) if kind == "proxy" else _provide(*map(int, words))))
