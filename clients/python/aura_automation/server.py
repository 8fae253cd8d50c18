"""A server process seen from a controller: launching it, finding it again, releasing it, stopping it.

Starting is done by `_launch`, requests by `client`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from urllib.parse import urlsplit

from aura_automation._decode import read_ready
from aura_automation._http import checked_token
from aura_automation._launch import launch
from aura_automation._limits import CALL_RETRY_S, LAUNCH_TIMEOUT_S, STOP_TIMEOUT_S
from aura_automation._process import Watch, end, wait_until
from aura_automation.aura import Aura
from aura_automation.client import Client
from aura_automation.codes import BadRequest, NotFound, Unauthorized
from aura_automation.errors import AutomationError, ContractDrift, NetworkError, ProgramFailed
from aura_automation.models import Ready, ServerInfo

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class ServerHandle:
    """One server. `url` and `session_id` name it; `pid` is None when it is not on this machine.

    Dropping a handle leaves a released server running. Dropping one that is still held stops the server, like
    the launcher's death would. One thread at a time may call `release` and `stop`; `client` is free.
    """

    def __init__(
        self,
        *,
        url: str,
        pid: int | None,
        session_id: str,
        token: str,
        ready_file: Path | None,
        process: subprocess.Popen[bytes] | None,
        lease: FileIO | None,
    ) -> None:
        """For `Server` only."""
        self.url = url
        self.pid = pid
        self.session_id = session_id
        self._token = token
        self._ready_file = ready_file
        self._process = process
        self._lease = lease
        self._watch = Watch(pid) if process is None and pid is not None else None

    def __repr__(self) -> str:
        return f"ServerHandle(url={self.url!r}, pid={self.pid}, session_id={self.session_id!r})"

    def client(self, *, retry_s: float = CALL_RETRY_S) -> Client:
        """Return a new client of this server. It follows the ready file, if known, after a restart."""
        return Client(self.url, self._token, ready_file=self._ready_file, session_id=self.session_id, retry_s=retry_s)

    def release(self) -> None:
        """Let the server outlive this process. Call it once the server is durably recorded; again, it does
        nothing.

        Raises `ProgramFailed` when the server ended before that.
        """
        if self._lease is None:
            return
        lease, self._lease = self._lease, None
        with lease:
            try:
                lease.write(b"\n")
            except BrokenPipeError:
                problem = "the server ended before it was released"
                raise ProgramFailed(problem, details={"reason": "exited"}) from None

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """Stop the server and wait for the end of its process; a server that is gone already is fine.

        Asks by POST /v1/shutdown and waits `timeout_s` (75 unless given: a run may take 60 to settle). A
        process that this handle launched and that is still there gets SIGTERM, and SIGKILL 10 s later; its
        exit status is returned. An attached one is never signalled: `ProgramFailed` with reason
        `still_running`; None is returned.
        """
        if self._process is not None:
            return self._stop_child(self._process, timeout_s)
        with Client(self.url, self._token, retry_s=0) as client:
            with suppress(NetworkError):
                client.shutdown()
            gone = wait_until(partial(self._is_gone, client), timeout_s)
        if not gone:
            problem = f"the server at {self.url} still runs after {timeout_s:g} s"
            raise ProgramFailed(problem, details={"reason": "still_running"}, hint=f"look at process {self.pid}")
        return None

    def _stop_child(self, process: subprocess.Popen[bytes], timeout_s: float) -> int:
        try:
            if process.poll() is None and self._is_asked_to_stop():
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(timeout_s)
                return end(process)
            return end(process, term_grace_s=timeout_s)
        finally:
            if self._lease is not None:
                self._lease.close()
                self._lease = None

    def _is_asked_to_stop(self) -> bool:
        try:
            with Client(self.url, self._token, retry_s=0) as client:
                client.shutdown()
        except AutomationError:
            return False  # SIGTERM asks for the same
        return True

    def _is_gone(self, client: Client) -> bool:
        if self._watch is not None and self._watch.is_running():
            return False
        try:
            info = client.server()
        except NetworkError as error:
            return not error.may_have_arrived
        except (Unauthorized, NotFound, ContractDrift):
            return True  # somebody else has the port
        return self.pid is not None and info.pid != self.pid


class Server:
    """Ways to a `ServerHandle`."""

    @staticmethod
    def launch(
        aura: Aura,
        *,
        ready_file: str | os.PathLike[str],
        token: str,
        resume: str | None = None,
        hold: bool = False,
        timeout_s: float = LAUNCH_TIMEOUT_S,
        bind: str | None = None,
        log: str | os.PathLike[str] | None = None,
        serve_args: Sequence[str] = (),
    ) -> ServerHandle:
        """Start `aura [args] [--resume ID] serve` in a process session of its own and return once it is
        ready.

        `ready_file` is where the server says that it is up (relative to this process's directory); an old one
        is removed. `token` (32 or more printable characters without spaces) goes into the child's
        environment, never into its arguments. `resume` names the session; without it a new one is made.
        `bind` is `host:port`. `serve_args` follow the other flags of serve. Output is appended to the file
        `log`, or dropped.

        The server is released before this returns. With `hold=True` it is not: record it, then call
        `handle.release()`; until then the death of this process stops the server.

        Raises the typed error that the server gives (`Unauthorized`, `SessionFrozen`, `SessionLocked`,
        `NotFound`, `InvalidId`, `ResumeFailed`, `McpUnavailable`, `ConfigInvalid`, `LauncherLost`,
        `StartupFailed`, provider errors), `ProgramFailed` when it cannot be started, ends silently or is not
        ready within `timeout_s` (60 unless given), `ContractDrift` for another ready file. The process has
        then been ended.
        """
        ready_path = Path(ready_file).absolute()
        launched = launch(
            aura,
            ready_file=ready_path,
            token=token,
            resume=resume,
            bind=bind,
            extra=serve_args,
            log=None if log is None else Path(log).absolute(),
            timeout_s=timeout_s,
        )
        handle = ServerHandle(
            url=launched.ready.url,
            pid=launched.ready.pid,
            session_id=launched.ready.session_id,
            token=token,
            ready_file=ready_path,
            process=launched.process,
            lease=launched.lease,
        )
        if not hold:
            handle.release()
        return handle

    @staticmethod
    def attach(*, ready_file: str | os.PathLike[str] | None = None, url: str | None = None, token: str) -> ServerHandle:
        """Find a running server again, by its ready file or its URL (exactly one), and make sure that it
        answers.

        Raises `ProgramFailed` with reason `no_ready_file` when there is none, the typed error of a server
        that did not start, `NetworkError` when nobody answers (it is asked once), `Unauthorized` for a wrong
        token, `NotFound` when another session is served there now, `BadRequest`.
        """
        if (ready_file is None) == (url is None):
            raise BadRequest("give exactly one of ready_file and url")
        checked_token(token)
        ready_path = None if ready_file is None else Path(ready_file).absolute()
        ready = None if ready_path is None else _read(ready_path)
        address = ready.url if ready is not None else str(url)
        with Client(address, token, retry_s=0) as client:
            info = client.server()
        if ready is not None:
            _check_same(ready, info)
        return ServerHandle(
            url=address,
            pid=info.pid if urlsplit(address).hostname in _LOOPBACK else None,
            session_id=info.session_id,
            token=token,
            ready_file=ready_path,
            process=None,
            lease=None,
        )


def _read(ready_file: Path) -> Ready:
    try:
        return read_ready(ready_file.read_bytes(), str(ready_file))
    except OSError as error:
        problem = f"the ready file cannot be read: {error}"
        raise ProgramFailed(problem, details={"reason": "no_ready_file"}, hint="launch a server") from error


def _check_same(ready: Ready, info: ServerInfo) -> None:
    if (info.session_id, info.pid) != (ready.session_id, ready.pid):
        problem = f"{ready.url} now serves session {info.session_id} from process {info.pid}"
        raise NotFound(problem, hint="the ready file is of a server that is gone: launch a new one")
