"""SIGINT and SIGTERM as calls on a thread of their own, whatever the main thread does. It decides nothing.

Python runs a signal's handler on the main thread, between two of its instructions. One that arrives just before that
thread enters the hub's poll, or a lock, waits there for whatever ends the wait: for ever, in a server that nobody asks
anything. So the work is not done in the handler. The C level of Python writes the signal's number to a pipe, on any
thread and at once; the thread `aura-signal` reads it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_READ_BYTES = 64


def watch_stop_signals(on_signal: Callable[[signal.Signals], None]) -> None:
    """From now on call `on_signal` for each SIGINT and SIGTERM, one at a time, on a native thread.

    Main thread only. It stays so until the process ends, so that a late signal cuts nobody's end short; a later call
    takes over from this one. Signals that arrive while `on_signal` works are kept, up to what a pipe holds.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    thread = threading.Thread(target=_read, args=(reading, on_signal), name="aura-signal", daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        signal.signal(number, _leave_it_to_the_thread)
    if before != -1:
        os.close(before)


def _read(reading: int, on_signal: Callable[[signal.Signals], None]) -> None:
    while numbers := os.read(reading, _READ_BYTES):
        for number in numbers:
            if number in STOP_SIGNALS:
                on_signal(signal.Signals(number))
    os.close(reading)


def _leave_it_to_the_thread(_number: int, _frame: FrameType | None) -> None:
    """Without a handler of Python's own the signal would do what the system does by default."""
