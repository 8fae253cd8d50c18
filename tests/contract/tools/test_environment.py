"""Secrets reach no child: neither through its own environment nor through /proc/<parent>/environ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aura.engine.executors.environment import child_environment

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import json, os, subprocess, sys
from aura.engine.executors.environment import child_environment, erase_from_environ
if "rename" in sys.argv:
    os.environ["AURA_SERVE_TOKEN"] = "second-secret-value"
values = [erase_from_environ("AURA_SERVE_TOKEN"), erase_from_environ("MY_KEY"), erase_from_environ("NOT_THERE")]
child = subprocess.run(["/bin/sh", "-c", "cat /proc/$PPID/environ; printf '\\\\0|\\\\0'; env -0"],
    env=child_environment(), capture_output=True, check=True)
print(json.dumps({"values": values, "left": "AURA_SERVE_TOKEN" in os.environ, "seen": child.stdout.decode()}))
"""


@pytest.mark.requirement("serve.token.hidden")
@pytest.mark.parametrize("arguments", [[], ["rename"]])
def test_an_erased_variable_is_seen_by_no_child(arguments: list[str]) -> None:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "AURA_SERVE_TOKEN": "first-secret-value",
        "MY_KEY": "third-secret-value",
        "AURA_SERVE_TOKENS": "harmless",
        "EMPTY": "",
    }
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    said = json.loads(finished.stdout)
    token = "second-secret-value" if arguments else "first-secret-value"
    assert said["values"] == [token, "third-secret-value", None]
    assert said["left"] is False
    assert "secret-value" not in said["seen"]
    parent, _, child = said["seen"].partition("\0|\0")
    assert "AURA_SERVE_TOKENS=harmless" in parent
    assert "AURA_SERVE_TOKENS=harmless" in child


def test_a_child_gets_everything_but_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "AURA_SERVE_TOKEN": "t1",
        "AURA_API_KEY": "t2",
        "AURA_PROVIDERS_LOCAL_TOKEN": "t3",
        "AURA_PROVIDERS_LOCAL_URL": "http://127.0.0.1",
        "OPENAI_API_KEY": "t4",
        "OTHER": "t4",
        "PLAIN": "t44",
        "EMPTY": "",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    environment = child_environment({"t4", ""})
    assert set(given) & set(environment) == {"AURA_PROVIDERS_LOCAL_URL", "PLAIN", "EMPTY"}
