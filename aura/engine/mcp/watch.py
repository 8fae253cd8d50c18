"""Parts of the SDK and of its HTTP client that also tell when a server is gone. They decide nothing."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import httpx2
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher


class PostWatch(httpx2.AsyncHTTPTransport):
    """The usual transport, which also tells when a message could not be posted. It uses no proxy."""

    def __init__(self, on_failure: Callable[[int | None], None]) -> None:
        """`on_failure` is given the status of a refusal, None where there was no answer."""
        super().__init__()
        self._on_failure = on_failure

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request as usual."""
        status: int | None = None
        try:
            response = await super().handle_async_request(request)
            status = response.status_code
            return response
        finally:
            if request.method == "POST" and (status is None or status >= 400):
                self._on_failure(status)


class Dispatcher(JSONRPCDispatcher):
    """The SDK's dispatcher, which also tells when the server is gone."""

    on_end: Callable[[], None]

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Read until the connection ends."""
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self.on_end()
