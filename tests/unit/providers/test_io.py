"""The io thread runs coroutines, stops them when asked, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from aura.engine.io import IoThread
from aura.engine.scope import Cancelled

WAIT_S = 10


async def forever(started: threading.Event, cleaned: list[str] | None = None, clean_s: float = 0) -> None:
    started.set()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(clean_s)
        if cleaned is not None:
            cleaned.append("clean")


def ended(job) -> bool:
    event = threading.Event()
    job.add_done_callback(event.set)
    return event.wait(WAIT_S)


def test_a_coroutine_gives_its_value_or_its_error(io, scope):
    async def answer() -> int:
        return 42

    async def fail() -> int:
        raise ValueError("no")

    assert scope.wait(io.submit(answer())) == 42
    with pytest.raises(ValueError, match="no"):
        scope.wait(io.submit(fail()))


def test_a_result_is_not_given_before_the_end(io):
    job = io.submit(forever(threading.Event()))
    with pytest.raises(RuntimeError, match="has not ended"):
        job.result()


def test_a_cancelled_job_has_ended_only_after_its_clean_up(io):
    started, cleaned = threading.Event(), []
    job = io.submit(forever(started, cleaned, clean_s=0.05))
    assert started.wait(WAIT_S)
    job.cancel()
    job.cancel()
    assert ended(job)
    assert cleaned == ["clean"]
    with pytest.raises(Cancelled) as caught:
        job.result()
    assert caught.value.reason == "shutdown"


def test_a_cancelled_scope_stops_its_job(io, scope):
    started, cleaned = threading.Event(), []
    job = io.submit(forever(started, cleaned))
    threading.Thread(target=lambda: (started.wait(WAIT_S), scope.cancel("request"))).start()
    with pytest.raises(Cancelled) as caught:
        scope.wait(job)
    assert (caught.value.reason, cleaned, job.ended) == ("request", ["clean"], True)


def test_a_callback_on_an_ended_job_runs_at_once(io, scope):
    async def nothing() -> None:
        return None

    job = io.submit(nothing())
    scope.wait(job)
    called: list[int] = []
    job.add_done_callback(lambda: called.append(threading.get_ident()))
    assert called == [threading.get_ident()]


def test_close_ends_all_work_runs_cleanups_and_joins_the_thread():
    io = IoThread()
    started, order = threading.Event(), []
    job = io.submit(forever(started, order))
    assert started.wait(WAIT_S)

    async def close_connections() -> None:
        order.append("closed")

    io.on_close(close_connections)
    io.close()
    io.close()
    assert (order, job.ended) == (["clean", "closed"], True)
    assert not [thread for thread in threading.enumerate() if thread.name == "aura-io"]


def test_work_that_will_not_stop_does_not_hold_up_close():
    async def stubborn(started: threading.Event) -> None:
        started.set()
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if not started.is_set():
                    raise

    io = IoThread()
    started = threading.Event()
    job = io.submit(stubborn(started))
    assert started.wait(WAIT_S)
    io.close(wait_ms=50)
    assert job.ended
    with pytest.raises(Cancelled):
        job.result()


def test_nothing_is_taken_after_close():
    io = IoThread()
    io.close()
    with pytest.raises(Cancelled):
        io.submit(forever(threading.Event()))


def test_building_providers_imports_neither_asyncio_nor_the_sdk():
    code = (
        "import sys; from pathlib import Path;"
        "from aura.config.spec import ProviderSpec; from aura.engine.io import IoThread;"
        "from aura.engine.providers.registry import build_provider;"
        "build_provider(ProviderSpec('a', 'llamacpp', Path('a'), url='http://h'), IoThread());"
        "print([name for name in ('asyncio', 'openai', 'httpx2', 'jinja2', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
