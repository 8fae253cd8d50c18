"""The parts of the documentation that are made from the code: `python -m tests.support.reference` writes them.

In a page, what stands between `<!-- made: NAME -->` and `<!-- end -->` is one part. A test compares; nothing else of a
page is touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from aura.cli.openapi import document_text
from aura.wire import automation, openapi
from aura.wire.codes import CODES, Code
from aura.wire.operations import EVERYWHERE, OPERATIONS, PREFIX, Operation
from aura.wire.schemas.event_data import DURABLE, LIVE, HeartbeatData, RunChangeData
from tests.support import samples

DOCS = Path(__file__).parents[2] / "docs"
PART = re.compile(r"(<!-- made: ([\w. -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PLACES = {"http": "HTTP", "run": "run", "start-up": "start-up", "session": "`aura session`"}
DOCUMENT = cast("dict[str, Any]", openapi.automation_document())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def pages() -> Mapping[str, str]:
    """Return each file of the documentation that has made parts, as it should be."""
    made = {name: made_page((DOCS / name).read_text(encoding="utf-8")) for name in ("api.md", "events.md", "errors.md")}
    made["openapi-automation.json"] = document_text(openapi.automation_document())
    made["events.schema.json"] = document_text(openapi.events_document())
    return made


def made_page(text: str) -> str:
    """Return a page with its parts made anew. Raises `KeyError` for a part that there is not."""
    parts = _parts()
    return PART.sub(lambda found: found[1] + parts[found[2]]() + found[3], text)


def part_names(text: str) -> set[str]:
    """Return the names of a page's parts."""
    return {found[2] for found in PART.finditer(text)}


def _parts() -> Mapping[str, Callable[[], str]]:
    parts: dict[str, Callable[[], str]] = {
        "routes": _routes,
        "run": lambda: _keys("Run"),
        "types": _types,
        "durable": _durable,
        "live": _live,
        "codes": _codes,
    }
    for operation in OPERATIONS:
        parts[operation.name] = partial(_operation, operation)
    return parts


# --- api.md ------------------------------------------------------------------------------------------------------


def _routes() -> str:
    lines = ["| route | what it does | success | its own errors |", "|---|---|---|---|"]
    for operation in OPERATIONS:
        own = ", ".join(f"`{name}`" for name in operation.codes)
        successes = ", ".join(str(item.status) for item in operation.successes)
        path = f"[`{operation.method} {PREFIX}{operation.path}`](#{_anchor(operation.summary)})"
        lines.append(f"| {path} | {operation.summary} | {successes} | {own} |")
    return "\n".join(lines) + "\n"


def _operation(operation: Operation) -> str:
    described = DOCUMENT["paths"][PREFIX + operation.path][operation.method.lower()]
    lines = [f"`{operation.method} {PREFIX}{operation.path}`", "", operation.says, ""]
    takes = list(_takes(operation, described))
    if takes:
        lines += ["| takes | in | type | meaning |", "|---|---|---|---|", *takes, ""]
    lines += ["| answers | with |", "|---|---|"]
    for success in operation.successes:
        names = " or ".join(f"`{schema.__name__.removesuffix('Schema')}`" for schema in success.schemas)
        headers = "".join(f" Header `{name}`." for name in success.headers if name != "Cache-Control")
        lines.append(f"| {success.status} {names or '`text/event-stream`'} | {success.says}{headers} |")
    for status, codes in operation.errors().items():
        own = [code for code in codes if code.name not in EVERYWHERE]
        lines += [f"| {status} `{code.name}` | {code.means} |" for code in own]
    return "\n".join(lines) + "\n"


def _takes(operation: Operation, described: dict[str, Any]) -> Iterator[str]:
    for item in described.get("parameters", ()):
        name = item["name"] + ("" if item.get("required") else "?")
        yield f"| `{name}` | {item['in']} | {_type(item['schema'])} | {item['description']} |"
    if operation.body is not None:
        body = SCHEMAS[operation.body.__name__.removesuffix("Schema")]
        for name, rule in body["properties"].items():
            shown = name if name in body.get("required", ()) else f"{name}?"
            yield f"| `{shown}` | body | {_type(rule)} | {rule['description']} |"


# --- events.md ---------------------------------------------------------------------------------------------------


def _types() -> str:
    lines = ["| type | what happened |", "|---|---|"]
    lines += [f"| [`{line.type}`](#{_anchor(line.type)}) | {_what_happened(line)} |" for line in _first_lines()]
    return "\n".join(lines) + "\n"


def _durable() -> str:
    blocks = []
    for line in _first_lines():
        if line.type == "run.accepted":
            said = "All `run.` types but `run.started` have the same data. [api.md](api.md#runs) explains `Run`."
            keys = f"{said}\n\n{_keys('RunChangeData')}"
        elif DURABLE[line.type] is RunChangeData:
            keys = "Data as of [`run.accepted`](#runaccepted).\n"
        else:
            keys = _keys(openapi.data_name(line.type))
        example = json.dumps(json.loads(line.text), ensure_ascii=False)
        blocks.append(f"### {line.type}\n\n{_what_happened(line)}\n\n{keys}\n```json event\n{example}\n```\n")
    return "\n".join(blocks)


def _first_lines() -> list[samples.Line]:
    """Return one line of each type, in the order of the contract's table."""
    first = {line.type: line for line in samples.first_of_each_type()}
    return [first[name] for name in DURABLE]


def _what_happened(line: samples.Line) -> str:
    schema = DURABLE[line.type]
    return _doc(type(line.event) if schema is RunChangeData else schema)


def _live() -> str:
    sent = dict(map(automation.transient_fields, samples.LIVE_ITEMS))
    blocks = []
    for name, schema in LIVE.items():
        keys = "" if schema is HeartbeatData else _keys(openapi.data_name(name)) + "\n"
        data = json.dumps(sent.get(name, {}), ensure_ascii=False)
        blocks.append(f"### {name}\n\n{_doc(schema)}\n\n{keys}```text frame\nevent: {name}\ndata: {data}\n```\n")
    return "\n".join(blocks)


def _keys(name: str) -> str:
    schema = SCHEMAS[name]
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rsplit("/", 1)[-1]]
    lines = ["| key | type | meaning |", "|---|---|---|"]
    for key, rule in schema["properties"].items():
        lines.append(f"| `{key}` | {_type(rule)} | {rule.get('description', '')} |")
    return "\n".join(lines) + "\n"


# --- errors.md ---------------------------------------------------------------------------------------------------


def _codes() -> str:
    lines = ["| code | where | HTTP | run ends | details | means | what to do |", "|---|---|---|---|---|---|---|"]
    lines += [_code_row(code) for code in CODES.values()]
    return "\n".join(lines) + "\n"


def _code_row(code: Code) -> str:
    name = f"`{code.name}`" + (" (retryable)" if code.retryable else "")
    places = ", ".join(PLACES[place] for place in code.places)
    details = " ".join(f"`{key}`" for key in code.details)
    status = "" if code.http_status is None else str(code.http_status)
    return f"| {name} | {places} | {status} | {code.outcome or ''} | {details} | {code.means} | {code.do} |"


# --- words -------------------------------------------------------------------------------------------------------


def _type(rule: dict[str, Any]) -> str:
    if "$ref" in rule:
        return f"`{rule['$ref'].rsplit('/', 1)[-1]}`"
    if "anyOf" in rule:
        return " or ".join(_type(item) for item in rule["anyOf"])
    if "enum" in rule:
        return " ".join(f"`{json.dumps(item)}`" for item in rule["enum"]) + _default(rule)
    names = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    shown = " or ".join(names)
    if "items" in rule:
        shown = shown.replace("array", f"array of {_type(rule['items'])}")
    if "minimum" in rule or "maximum" in rule:
        shown += f" {rule.get('minimum', '')}…{rule.get('maximum', '')}".rstrip()
    return shown + _default(rule)


def _default(rule: dict[str, Any]) -> str:
    return f", default {json.dumps(rule['default'])}" if "default" in rule else ""


def _doc(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    for file, content in pages().items():
        (DOCS / file).write_text(content, encoding="utf-8")
