"""The waitress server: a pool of plain threads behind one socket loop on a thread of its own.

Each waiting reader holds a thread, so they are bounded, and some threads are kept for everybody else
(`aura.api.streams`). This module answers nothing itself but requests that are not HTTP.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import ErrorTask

from aura import limits
from aura.runtime.log import Log

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class WaitressServer:
    """A server that accepts once it is made. Any thread."""

    def __init__(self, wsgi_app: WSGIApplication, listener: socket.socket, log: Log, malformed: bytes) -> None:
        _send_logs_to(log)
        self._sockets: dict[int, object] = {}
        self._stopping = threading.Event()
        self._server = create_server(
            wsgi_app,
            map=self._sockets,
            sockets=[listener],
            threads=limits.STREAM_THREADS_COUNT + limits.RESERVE_THREADS_COUNT,
            backlog=limits.ACCEPT_BACKLOG_COUNT,
            connection_limit=limits.CONNECTIONS_MAX_COUNT,
            max_request_body_size=limits.BODY_DRAIN_BYTES,  # the exact bound is the app's, with the right answer
            outbuf_high_watermark=limits.STREAM_BUFFER_BYTES,
            send_bytes=1,  # an event goes out when it is written, not when a buffer is full
            asyncore_use_poll=True,
            channel_request_lookahead=1,  # a caller that hangs up is noticed while its request is at work
            log_socket_errors=False,
            ident=None,
        )
        self._server.channel_class = _channel_class(malformed)
        self._listener = listener
        self._thread = threading.Thread(target=self._loop, name="aura-http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the listener and all connections."""
        self._wait_flushed()
        self._stopping.set()
        self._server.pull_trigger()
        self._thread.join()
        wasyncore.close_all(self._sockets)
        self._server.task_dispatcher.shutdown(timeout=limits.HTTP_THREADS_END_MS / 1000)
        self._listener.close()

    def _wait_flushed(self) -> None:
        """Let finished responses go out: waitress writes their last bytes after it has closed their body."""
        deadline = time.monotonic() + limits.FLUSH_MS / 1000
        while any(self._is_sending(channel) for channel in tuple(self._server.active_channels.values())):
            if time.monotonic() > deadline:
                return
            time.sleep(limits.FLUSH_LOOK_MS / 1000)

    @staticmethod
    def _is_sending(channel: HTTPChannel) -> bool:
        return bool(channel.requests or channel.total_outbufs_len)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            wasyncore.loop(timeout=limits.HTTP_LOOP_MS / 1000, use_poll=True, map=self._sockets, count=1)


def _channel_class(malformed: bytes) -> type[HTTPChannel]:
    """Return a channel that answers what is not HTTP, or far too large, with this body."""

    class MalformedTask(ErrorTask):  # type: ignore[misc]  # waitress has no types
        def execute(self) -> None:
            self.status = "400 Bad Request"
            self.response_headers.append(("Content-Type", "application/json"))
            self.set_close_on_finish()
            self.content_length = len(malformed)
            self.write(malformed)

    class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
        error_task_class = MalformedTask

    return Channel


class _LogHandler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)  # a queue for threads is normal, a fault is not
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._log.fault("http", error)
        else:
            self._log.warning("http", record.getMessage())


def _send_logs_to(log: Log) -> None:
    logger = logging.getLogger("waitress")
    logger.propagate = False
    logger.handlers = [_LogHandler(log)]
    queue = logging.getLogger("waitress.queue")
    queue.propagate = True
