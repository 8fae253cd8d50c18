"""A controller's bench: a config home with a scripted model, servers of their own processes on it, bounded waits.

Servers are launched and spoken to through the real client. Every process that a `Site` starts ends with it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
if importlib.util.find_spec("aura_automation") is None:
    sys.path.insert(0, str(CHECKOUT / "clients" / "python"))

from aura_automation import Aura, Client, Event, Run, Server, ServerHandle, Store  # noqa: E402

T = TypeVar("T")
TOKEN = "a-token-of-at-least-32-characters!"
WAIT_S = 30  # bound of every wait; what is waited for takes milliseconds
POLL_S = 0.01
SERVER_VARIABLE = "AURA_TEST_SERVER"  # gevent (the default) or waitress: what the servers of every site run on
Turn = Mapping[str, Any]


def server_kind() -> str:
    """Return the HTTP server that the tests run on; fail when the environment names another one."""
    kind = os.environ.get(SERVER_VARIABLE, "gevent")
    assert kind in ("gevent", "waitress"), f"{SERVER_VARIABLE} is {kind!r}; hint: gevent or waitress"
    return kind


def until(condition: Callable[[], T], what: str = "what the test waits for", timeout_s: float = WAIT_S) -> T:
    """Return the first true value of `condition`; fail when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true within {timeout_s} s"
        time.sleep(POLL_S)
    return value


def bash(command: str, call_id: str = "call_1") -> dict[str, Any]:
    """Return a scripted call of Bash."""
    return {"id": call_id, "name": "Bash", "arguments": {"command": command}}


def calls(*made: Mapping[str, Any], content: str = "", **more: Any) -> dict[str, Any]:
    """Return a turn that makes calls."""
    return {"content": content, "calls": list(made), **more}


class Running:
    """A server that was launched, with one client of it."""

    def __init__(self, handle: ServerHandle, log: Path) -> None:
        self.handle = handle
        self.client: Client = handle.client()
        self.log = log
        self.session_id = handle.session_id
        assert handle.pid is not None
        self.pid: int = handle.pid

    def run(self, prompt: str, request_id: str = "r1", **options: Any) -> Run:
        """Submit a prompt and wait for its terminal record."""
        return self.wait(self.client.submit(request_id, prompt=prompt, **options).id)

    def wait(self, run_id: str) -> Run:
        """Wait, with a bound, for a run's terminal record."""
        deadline = time.monotonic() + WAIT_S
        return self.client.wait(run_id, stop=lambda: time.monotonic() > deadline, reconnect_s=WAIT_S)

    def events(self, after: int = 0) -> list[Event]:
        """Return the whole journal after `after`."""
        events: list[Event] = []
        while page := self.client.journal(after, limit=5000).events:
            events += page
            after = page[-1].seq
        return events

    def types(self, after: int = 0) -> list[str]:
        """Return the types of the journal's events."""
        return [event.type for event in self.events(after)]

    def event(self, type: str, after: int = 0) -> Event:
        """Wait for the first event of a type after seq `after`, which may be yet to come, and return it."""

        def find() -> Event | None:
            return next((item for item in self.events() if item.type == type and item.seq > after), None)

        return until(find, f"event {type}")

    def signal(self, number: signal.Signals) -> None:
        """Signal the process itself."""
        os.kill(self.pid, number)

    def wait_exit(self) -> int:
        """Wait for the process to end by itself; return its exit code."""
        process = self.handle._process
        assert process is not None
        return process.wait(WAIT_S)

    def stop(self) -> int | None:
        """Stop it over HTTP; return its exit code."""
        return self.handle.stop(WAIT_S)

    def kill(self) -> None:
        """End it by SIGKILL, without a goodbye."""
        process = self.handle._process
        assert process is not None
        process.kill()
        process.wait(WAIT_S)

    def end(self) -> None:
        """End it if it still runs."""
        self.client.close()
        process = self.handle._process
        if process is not None and process.poll() is None:
            self.kill()


class Site:
    """A workspace, a config home with one scripted provider, and the servers on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.work = root / "work"
        for folder in (self.home / "config" / "agents", self.home / "config" / "providers", self.work):
            folder.mkdir(parents=True, exist_ok=True)
        self.servers: list[Running] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.provider()
        self.agent()
        self.script({"content": "Hello there.", "repeat": "forever"})

    # --- configuration ------------------------------------------------------------------------------------------

    def script(self, *turns: Turn, **top: Any) -> None:
        """Make the model play `turns`."""
        self.write("script.yaml", yaml.safe_dump({**top, "turns": list(turns)}))

    def provider(self, **more: Any) -> None:
        """Write the provider file; by default no call is tried again."""
        fields = {"type": "script", "file": "script.yaml", "retry": {"max_attempts": 0}}
        self.write("config/providers/script.yaml", yaml.safe_dump({"script": fields | more}))

    def agent(self, text: str = "You are a careful assistant.", **keys: Any) -> None:
        """Write the main agent, with further keys of its frontmatter."""
        front = {"name": "main", "default": True, "model": {"provider": "script", "name": "scripted"}} | keys
        self.write("config/agents/main.md", f"---\n{yaml.safe_dump(front)}---\n{text}\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the config home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    # --- the program --------------------------------------------------------------------------------------------

    @property
    def sessions(self) -> Path:
        """The directory of the database."""
        return self.home / "sessions"

    @property
    def ready_file(self) -> Path:
        """Where servers say that they are up."""
        return self.root / "ready.json"

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of the program: this process's without its own settings."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AURA_")}
        return kept | {"PYTHONPATH": str(CHECKOUT), "HOME": str(self.root / "nobody")} | more

    def aura(self, *more: str, **environment: str) -> Aura:
        """Return the program with the root flags of this site, and `more` of them."""
        flags = ["-m", "aura", "--home", "", "--config", str(self.home), *more]
        return Aura(binary=sys.executable, args=flags, cwd=self.work, env=self.environment(**environment))

    @property
    def store(self) -> Store:
        """The offline commands, through the client."""
        return Store(self.aura())

    def launch(
        self,
        resume: str | None = None,
        *,
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        ready_file: Path | None = None,
        serve_args: Sequence[str] = (),
        **options: Any,
    ) -> Running:
        """Start a server and return it once it is ready. `--server` in `serve_args` wins over the environment's."""
        log = self.root / f"server-{len(self.servers)}.log"
        handle = Server.launch(
            self.aura(*flags, **(environment or {})),
            ready_file=ready_file or self.ready_file,
            token=TOKEN,
            resume=resume,
            log=log,
            timeout_s=WAIT_S,
            serve_args=["--server", server_kind(), *serve_args],
            **options,
        )
        self.servers.append(Running(handle, log))
        return self.servers[-1]

    def spawn(
        self,
        *words: str,
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """Start `python -m aura … words` as it is, with pipes for what it says."""
        aura = self.aura(*flags, **(environment or {}))
        if words[0] == "serve":
            words = ("serve", "--server", server_kind(), *words[1:])
        settings: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        settings |= {"cwd": self.work, "env": aura.environment() | dict(environment or {}), "start_new_session": True}
        process = subprocess.Popen([*prefix, *aura.command(*words)], **(settings | options))
        self.processes.append(process)
        return process

    def serve(self, *words: str, token: str | None = TOKEN, **options: Any) -> tuple[int, dict[str, Any] | None, str]:
        """Run `serve` where it must fail by itself: (exit code, ready document or None, standard error)."""
        environment = {} if token is None else {"AURA_SERVE_TOKEN": token}
        process = self.spawn("serve", "--ready-file", str(self.ready_file), *words, environment=environment, **options)
        _, err = process.communicate(timeout=WAIT_S)
        return process.returncode, self.read_ready(), err.decode()

    def read_ready(self) -> dict[str, Any] | None:
        """Return the ready file's document, None when there is none."""
        try:
            document = json.loads(self.ready_file.read_bytes())
        except FileNotFoundError:
            return None
        assert isinstance(document, dict)
        return document

    # --- looking ------------------------------------------------------------------------------------------------

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the database in plain SQL."""
        with closing(sqlite3.connect(f"file:{self.sessions / 'aura.db'}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file of the workspace, none when it is missing."""
        try:
            return (self.work / name).read_text().splitlines()
        except FileNotFoundError:
            return []

    def strays(self) -> list[int]:
        """Return the processes at work in the workspace that are not its servers."""
        known = {server.pid for server in self.servers} | {process.pid for process in self.processes}
        return [pid for pid in _pids() if pid not in known and _works_in(pid, self.work)]

    def end(self) -> None:
        """End every process that was started here."""
        for server in self.servers:
            server.end()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(WAIT_S)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _works_in(pid: int, folder: Path) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")) == folder
    except OSError:
        return False
