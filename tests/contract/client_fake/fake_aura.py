"""A stand-in for the aura program. FAKE_MODE says how it behaves; FAKE_RECORD is a file for what it was given.

It is run as a script and knows only enough of the command line for the client's tests.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODE = os.environ.get("FAKE_MODE", "ready")
TOKEN = os.environ.get("AURA_SERVE_TOKEN", "")
LIFE_MAX_S = 60.0  # a test that fails must not leave a process behind for long


def record(**facts: object) -> None:
    path = Path(os.environ["FAKE_RECORD"])
    known = json.loads(path.read_text()) if path.exists() else {}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(known | facts))
    fresh.replace(path)


def flag(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def session() -> int:
    answers = json.loads(os.environ["FAKE_ANSWER"])
    sys.stdout.write(answers["stdout"])
    sys.stderr.write(answers["stderr"])
    sys.stdout.flush()
    if MODE == "slow":
        time.sleep(LIFE_MAX_S)
    return int(answers["exit"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        print(self.path, flush=True)

    def do_GET(self) -> None:
        self.answer(200, INFO)

    def do_POST(self) -> None:
        self.answer(202, {})
        if MODE != "stubborn":
            threading.Thread(target=leave, args=("shutdown", 0)).start()

    def answer(self, status: int, document: dict[str, object]) -> None:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            status = 401
            document = {"error": {"code": "unauthorized", "message": "no", "retryable": False, "details": {}}}
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


INFO: dict[str, object] = {}


def leave(why: str, status: int) -> None:
    record(left=why)
    os._exit(status)


def watch_launcher(fd: int) -> None:
    if os.read(fd, 1):
        record(released=True)
    else:
        leave("launcher_lost", 3)


def write_ready(document: object) -> None:
    target = Path(flag("--ready-file"))
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    fresh.write_text(document if isinstance(document, str) else json.dumps(document))
    fresh.replace(target)


def serve() -> int:
    launcher_fd = int(flag("--launcher-fd"))
    record(session=os.getsid(0), pid=os.getpid())
    if MODE == "dies":
        print("cannot go on", flush=True)
        return 7
    if MODE == "error":
        error = {"code": "session_frozen", "message": "it is frozen", "retryable": False, "details": {}}
        write_ready({"api": 1, "error": error})
        return 1
    if MODE == "garbage":
        write_ready({"api": 1, "address": "here"})
        time.sleep(LIFE_MAX_S)
    if MODE == "hangs":
        threading.Thread(target=watch_launcher, args=(launcher_fd,), daemon=True).start()
        time.sleep(LIFE_MAX_S)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=leave, args=("sigterm", 5)).start())
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    about = {"api": 1, "url": f"http://127.0.0.1:{http.server_address[1]}", "pid": os.getpid()}
    about |= {"session_id": flag("--resume", "fresh"), "aura_version": "0", "commit": "c", "workdir": os.getcwd()}
    about |= {"write_home": "/home"}
    INFO.update(about | {"started_at": "2026-11-30T10:00:00.000Z", "state": "ready", "last_seq": 0})
    threading.Thread(target=watch_launcher, args=(launcher_fd,), daemon=True).start()
    threading.Timer(LIFE_MAX_S, leave, ("old age", 9)).start()
    write_ready(about)
    http.serve_forever(0.01)
    return 0


if __name__ == "__main__":
    record(argv=sys.argv[1:], token=TOKEN, cwd=os.getcwd())
    sys.exit(session() if "session" in sys.argv else serve())
