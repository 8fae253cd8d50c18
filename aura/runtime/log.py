"""The program's own log: one line per message on a stream, for operators. Never a secret, a body or a prompt."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
import uuid
from typing import TextIO

from aura.clock import Clock, format_time


class Log:
    """Writes to `stream`, standard error by default. Any thread."""

    def __init__(self, clock: Clock, stream: TextIO | None = None, *, debug: bool = False) -> None:
        self._clock = clock
        self._stream = stream if stream is not None else sys.stderr
        self._debug = debug
        self._lock = threading.Lock()

    def info(self, source: str, message: str) -> None:
        """Note something that an operator may want to know."""
        self._write("info", source, message)

    def warning(self, source: str, message: str) -> None:
        """Note something that an operator should look at."""
        self._write("warning", source, message)

    def fault(self, source: str, error: BaseException) -> str:
        """Note an unexpected error with its place in the code; return the id that users are told."""
        fault_id = uuid.uuid4().hex[:12]
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else "?"
        self._write("error", source, f"fault {fault_id}: {type(error).__name__} at {place}")
        if self._debug:
            self._write("error", source, "".join(traceback.format_exception(error)).rstrip())
        return fault_id

    def _write(self, level: str, source: str, message: str) -> None:
        line = f"{format_time(self._clock.now_ms())} {level} {source}: {message}\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


class LogHandler(logging.Handler):
    """Takes in what libraries log by Python's own means, so that it comes out as one line each, without tracebacks."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record as a line of the program's log."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._log.fault(record.name, error)
            return
        self._log.warning(record.name, record.getMessage().replace("\n", " "))


def take_over_logging(log: Log) -> None:
    """Send everything that is logged by Python's own means to `log`, for as long as the process lives."""
    logging.basicConfig(handlers=[LogHandler(log)], level=logging.WARNING, force=True)
