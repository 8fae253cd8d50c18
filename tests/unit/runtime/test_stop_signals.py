"""A stop signal is heard while the main thread waits for something else, whichever thread the system gives it to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]

# The main thread blocks the signals and sits in a wait: what hears them must be another thread.
PROGRAM = """
import os, signal, sys, threading
from aura.runtime.stop_signals import watch_stop_signals

heard, all_heard = [], threading.Event()

def on_signal(number):
    heard.append((number.name, threading.current_thread().name))
    if len(heard) == 3:
        all_heard.set()

watch_stop_signals(lambda number: heard.append("an earlier watcher"))
watch_stop_signals(on_signal)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
    os.kill(os.getpid(), number)
    all_heard.wait(0.2)
print(all_heard.wait(30), heard)
"""


def test_signals_are_heard_while_the_main_thread_waits():
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, env=environment, check=True
    )
    names = [("SIGTERM", "aura-signal"), ("SIGINT", "aura-signal"), ("SIGTERM", "aura-signal")]
    assert done.stdout == f"True {names}\n"
