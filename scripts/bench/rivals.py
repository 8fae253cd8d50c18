"""What a checkpoint costs elsewhere: one JSON file rewritten, openai-agents' SQLiteSession, langgraph's SqliteSaver.

The last two are measured when they are installed (the extra `bench`), as they come: their own settings, their own idea
of what is durable. A checkpoint is two messages of 1.45 KB added to a conversation of a given length.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import time
from collections.abc import Callable
from pathlib import Path

MESSAGE_CHARS = 1370

Save = Callable[[int], None]


def message(index: int) -> dict[str, str]:
    """Return a message of average size."""
    return {"role": "user" if index % 2 else "assistant", "content": "y" * MESSAGE_CHARS, "id": f"msg_{index:08d}"}


def median_ms(save: Save, rounds: int) -> float:
    """Return the median time of a checkpoint."""
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        save(number)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def json_file(directory: Path, length: int, rounds: int) -> float:
    """Rewrite one JSON file atomically: a temporary file, fsync, rename, fsync of the directory."""
    messages = [message(n) for n in range(length)]
    target, fresh = directory / "session.json", directory / "session.json.new"
    folder = os.open(directory, os.O_RDONLY)

    def save(number: int) -> None:
        messages.extend((message(2 * number), message(2 * number + 1)))
        with fresh.open("w") as file:
            json.dump({"messages": messages}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
        os.fsync(folder)

    try:
        return median_ms(save, rounds)
    finally:
        os.close(folder)


def find_sqlite_session(directory: Path, length: int, rounds: int) -> float | None:
    """Add two items to an openai-agents SQLiteSession, or return None when it is not installed."""
    try:
        from agents.memory.sqlite_session import SQLiteSession
    except ImportError:
        return None
    session = SQLiteSession("bench", directory / "agents.db")

    def add(count: int) -> None:
        asyncio.run(session.add_items([message(n) for n in range(count)]))  # type: ignore[misc]

    add(length)
    try:
        return median_ms(lambda _: add(2), rounds)
    finally:
        session.close()


def find_sqlite_saver(directory: Path, length: int, rounds: int) -> float | None:
    """Put a checkpoint with all messages into langgraph's SqliteSaver, or return None when it is not installed."""
    try:
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        return None
    saver = SqliteSaver(sqlite3.connect(directory / "langgraph.db", check_same_thread=False))
    saver.setup()
    messages = [message(n) for n in range(length)]

    def save(number: int) -> None:
        messages.extend((message(2 * number), message(2 * number + 1)))
        checkpoint = empty_checkpoint()
        checkpoint["id"] = f"{number:032d}"
        checkpoint["channel_values"] = {"messages": messages}
        saver.put({"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}, checkpoint, {}, {})

    try:
        return median_ms(save, rounds)
    finally:
        saver.conn.close()
