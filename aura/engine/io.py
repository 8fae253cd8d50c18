"""The io thread: one asyncio loop on one native daemon thread, for provider HTTP and MCP (DESIGN.md section 3).

The rest of the engine is synchronous: it submits a coroutine and waits for the `Job` through a scope. asyncio is
imported when the thread starts, so that offline commands never pay for it. Coroutines must not block the loop and
never touch SQLite.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aura import limits
from aura.engine.scope import Cancelled, Poke

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
Cleanup = Callable[[], Awaitable[object]]


class IoJob(Generic[T]):
    """A coroutine at work on the io thread: a `engine.scope.Job`. All methods may be called from any thread."""

    def __init__(
        self, loop: AbstractEventLoop, work: Coroutine[Any, Any, T], at_end: Callable[[IoJob[Any]], None]
    ) -> None:
        self._loop = loop
        self._at_end = at_end
        self._work = work
        self._lock = threading.Lock()
        self._task: Task[T] | None = None
        self._callbacks: list[Poke] = []
        self._asked_to_stop = False
        self._ended = False

    @property
    def ended(self) -> bool:
        """True once the coroutine has really finished, its clean-up included."""
        return self._ended

    def cancel(self) -> None:
        """Ask the coroutine to stop; nothing happens if it has ended. Never blocks."""
        if not self._ended:
            _call_soon(self._loop, self._cancel)

    def add_done_callback(self, callback: Poke) -> None:
        """Call `callback` when the work has ended: on the io thread, or at once in this one. It must not block."""
        with self._lock:
            if not self._ended:
                self._callbacks.append(callback)
                return
        callback()

    def result(self) -> T:
        """Return the coroutine's value or raise its error; `Cancelled("shutdown")` if it was stopped from outside.

        Raises `RuntimeError` while it is still running.
        """
        if not self._ended:
            raise RuntimeError("the work has not ended")
        if self._task is None or not self._task.done() or self._task.cancelled():
            raise Cancelled("shutdown")
        return self._task.result()

    def _start(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._finish)

    def _cancel(self) -> None:
        if self._task is None or self._asked_to_stop:
            return
        self._asked_to_stop = True  # once only: a second one would interrupt the coroutine's clean-up
        self._task.cancel()

    def _finish(self, task: Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # marks it as seen: a waiter that was cancelled never asks for the result
        self._end()

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            callbacks, self._callbacks = self._callbacks, []
        self._at_end(self)
        for callback in callbacks:
            callback()


class IoThread:
    """Owner of the loop and its thread. One per process; it starts on the first `submit` and ends with `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._jobs: set[IoJob[Any]] = set()
        self._cleanups: list[Cleanup] = []
        self._closed = False

    def submit(self, work: Coroutine[Any, Any, T]) -> IoJob[T]:
        """Start `work` on the io thread. Any thread. Raises `Cancelled("shutdown")` after `close`."""
        with self._lock:
            if self._closed:
                work.close()
                raise Cancelled("shutdown")
            loop = self._loop or self._start()
            job = IoJob(loop, work, self._jobs.discard)
            self._jobs.add(job)
            loop.call_soon_threadsafe(job._start)
            return job

    def on_close(self, cleanup: Cleanup) -> None:
        """Run `cleanup` on the io thread at `close`, after all work has ended: for connections that outlive a job."""
        with self._lock:
            self._cleanups.append(cleanup)

    def close(self, wait_ms: int = limits.IO_CLOSE_MS) -> None:
        """Cancel all work, close what `on_close` was told of, and end the thread. Repeating it does nothing.

        Blocks for at most twice `wait_ms` and a moment. Not to be called on the io thread.
        """
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(lambda: loop.create_task(_wind_up(self._cleanups, wait_ms / 1000)))
        thread.join(2 * wait_ms / 1000 + 1)

    def _start(self) -> AbstractEventLoop:
        import asyncio

        self._loop = loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(loop,), name="aura-io", daemon=True)
        self._thread.start()
        return loop

    def _run(self, loop: AbstractEventLoop) -> None:
        import asyncio

        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            for job in list(self._jobs):
                job._end()  # work that would not stop: its waiters must not wait for ever
            loop.close()


async def _wind_up(cleanups: list[Cleanup], wait_s: float) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    try:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=wait_s)
        async with asyncio.timeout(wait_s):
            for cleanup in cleanups:
                await cleanup()
            await loop.shutdown_asyncgens()
    except Exception as error:  # noqa: BLE001  # the process is going away, and the kernel closes its sockets
        _LOG.warning("the io thread did not close all connections: %s", type(error).__name__)
    finally:
        loop.stop()


def _call_soon(loop: AbstractEventLoop, callback: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        if not loop.is_closed():
            raise
