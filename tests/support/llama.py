"""A real llama-server with a scripted model, for the tests marked `llama`. It starts one process and ends that one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.support.scripted_model import Route, write_model

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
HELLO = "Hello from a real llama-server with naïve ünïcode 日本 😀."
ROUTES = (
    Route("after_tool", "The tool answered; it is done.", "last.role == 'tool'"),
    Route("call", CALL, "'weather' in last.content and tools"),
    Route("endless", "It goes on and on, and there is no end to it, ", "'forever' in last.content", endless=True),
    Route("say", HELLO),
)
THINKING_ROUTES = (Route("think", "<think>\nWell, let me see.\n</think>\n\nI have thought about it."),)
TEMPLATE = "Qwen-Qwen2.5-7B-Instruct.jinja"
THINKING_TEMPLATE = "Qwen-Qwen3-0.6B.jinja"
START_S = 60  # a start takes a tenth of a second on an idle machine
STOP_S = 10
PORT_LINE = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")


def llama_home() -> Path:
    """Return the directory that `scripts/build-llama-server` makes. Raises with a hint when it is not there."""
    cache = (
        os.environ.get("AURA_CACHE_DIR") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aura"
    )
    home = Path(cache) / "llama-server-b11434"
    if not (home / "llama-server").is_file():
        raise FileNotFoundError(
            f"{home}/llama-server is missing: run scripts/build-llama-server, or leave them out with AURA_SKIP_LLAMA=1"
        )
    return home


def make_model(path: Path, routes: Sequence[Route] = ROUTES, template: str = TEMPLATE) -> Path:
    """Write a scripted model with one of llama.cpp's own chat templates; return `path`."""
    write_model(path, (llama_home() / "models" / "templates" / template).read_text(), routes)
    return path


class LlamaServer:
    """A running llama-server on a port of its own choice. `url` is its root; `arguments` go to its command line.

    With a model it serves that one as `scripted`; with a directory it is a router over the models in it, by file name.
    """

    def __init__(self, model: Path, log: Path, arguments: Sequence[str]) -> None:
        source = ("--models-dir", str(model)) if model.is_dir() else ("-m", str(model), "--alias", "scripted")
        command = [
            str(llama_home() / "llama-server"),
            *(*source, "--host", "127.0.0.1", "--port", "0"),
            *("-t", "1", "--jinja", "--no-ui", "--slots", "--props", "--offline", *arguments),
        ]
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        try:
            self.url = f"http://127.0.0.1:{self._wait_for_port()}"
            self._wait_for_health()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process, and a router's children with it; return when it has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process and its children at once, without a goodbye to their clients."""
        self._end(signal.SIGKILL)

    def busy_slots(self) -> int:
        """Return how many answers it is making."""
        return sum(1 for slot in self.get("/slots") if slot["is_processing"])

    def get(self, path: str):
        """Return the JSON document at `path`."""
        with urllib.request.urlopen(self.url + path, timeout=STOP_S) as answer:
            return json.load(answer)

    def _end(self, first: signal.Signals) -> None:
        for number in (first, signal.SIGKILL):
            if self._process.poll() is not None:
                return
            os.killpg(self._process.pid, number)  # the leader is not reaped yet, so the number is still its group's
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                continue

    def _wait_for_port(self) -> int:
        for _ in self._attempts():
            if found := PORT_LINE.search(self._log.read_text(errors="replace")):
                return int(found[1])
        raise self._failed("did not say its port")

    def _wait_for_health(self) -> None:
        for _ in self._attempts():
            try:
                self.get("/health")
                return
            except (urllib.error.URLError, ConnectionError):
                continue
        raise self._failed("did not become ready")

    def _attempts(self):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            yield
            time.sleep(0.02)

    def _failed(self, what: str) -> RuntimeError:
        end = self._log.read_text(errors="replace")[-3000:]
        return RuntimeError(f"llama-server {what} (exit code {self._process.poll()}):\n{end}")
