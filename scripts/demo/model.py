"""A real model in place of the script: finds out what the server has, and writes the two configuration files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from job import Job
from problem import Problem

TOKEN_VARIABLE = "AURA_MODEL_TOKEN"
LIST_TIMEOUT_S = 10  # a list of models is a small document
SCRIPTED = "model: {provider: script, name: scripted}"


@dataclass(frozen=True, slots=True)
class Model:
    """A model of an OpenAI-compatible server. `url` is the API's root."""

    url: str
    name: str


def find_model(url: str, name: str | None) -> Model:
    """Return the model `name` of the server at `url`, the first that it lists by default.

    Raises `Problem` for a URL that cannot be one, and when the server does not say what it has.
    """
    root = _api_root(url)
    return Model(root, name or _first_model(root))


def use_model(job: Job, model: Model) -> None:
    """Make the job's agent use `model` instead of the script."""
    (job.home / "config/providers/script.yaml").unlink()
    (job.home / "script.yaml").unlink()
    lines = ["model:", "  type: openai", f"  url: {json.dumps(model.url)}"]
    if os.environ.get(TOKEN_VARIABLE):
        lines.append(f"  token: ${{{TOKEN_VARIABLE}}}")
    (job.home / "config/providers/model.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    agent = job.home / "config/agents/main.md"
    chosen = f"model: {{provider: model, name: {json.dumps(model.name)}}}"
    agent.write_text(agent.read_text(encoding="utf-8").replace(SCRIPTED, chosen), encoding="utf-8")


def _api_root(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Problem(f"{url!r} is not an http or https address", hint="Give one such as http://127.0.0.1:8080/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Problem("the URL holds more than an address", hint=f"Put a token into {TOKEN_VARIABLE}.")
    return url.rstrip("/") + ("/v1" if parts.path in ("", "/") else "")


def _first_model(root: str) -> str:
    token = os.environ.get(TOKEN_VARIABLE)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    hint = "Check the URL and that the server runs, or name the model with --model."
    try:
        answer = httpx.get(f"{root}/models", headers=headers, timeout=LIST_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise Problem(
            f"there is no answer from {root}/models: {str(error) or type(error).__name__}", hint=hint
        ) from error
    if answer.status_code in (401, 403):
        raise Problem(
            f"{root} wants a token (HTTP {answer.status_code})", hint=f"Set {TOKEN_VARIABLE} and run this again."
        )
    if answer.status_code != 200:
        raise Problem(f"{root}/models answers with HTTP {answer.status_code}", hint=hint)
    try:
        names = [model["id"] for model in answer.json()["data"]]
    except (ValueError, TypeError, KeyError) as error:
        raise Problem(f"{root}/models is not a list of models", hint=hint) from error
    if not names or not isinstance(names[0], str):
        raise Problem(f"{root} lists no model", hint=hint)
    return names[0]
