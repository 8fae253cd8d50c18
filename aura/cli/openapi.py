"""`aura openapi`: the documents that describe the automation API, made from its schemas. It starts no server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from aura.cli import streams
from aura.errors import BadRequest
from aura.jsontypes import JsonValue
from aura.wire import openapi

F = TypeVar("F", bound=Callable[..., Any])


def _output_option(command: F) -> F:
    return click.option(
        "--output",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write it to FILE, which is replaced.  [default: standard output]",
    )(command)


@click.group("openapi", help="Print the documents that describe the HTTP API. No server is needed.")
def command() -> None:
    """Group the commands; there is nothing to do before them."""


@command.command("automation", help="OpenAPI 3.1 of everything under /v1 of `aura serve`.")
@_output_option
def automation_command(output: Path | None) -> None:
    """Print the OpenAPI document."""
    _write(openapi.automation_document(), output)


@command.command("events", help="JSON Schemas (draft 2020-12) of all events.")
@_output_option
def events_command(output: Path | None) -> None:
    """Print the JSON Schemas."""
    _write(openapi.events_document(), output)


def document_text(document: JsonValue) -> str:
    """Return a document as it is printed and checked in: for people too, so with line ends."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _write(document: JsonValue, output: Path | None) -> None:
    text = document_text(document)
    if output is None or str(output) == "-":
        streams.write_stdout(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror}", hint="Name another file.") from error
