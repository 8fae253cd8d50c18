"""The examples of docs/api.md: reads them from the page, and sends them to a live server in the page's order.

An example is a fence `http` with a request, followed by a fence with what is answered: `json STATUS` or `text stream`.
Ids that the page made up stand for those that the server makes: what stands at the same place is the same thing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tests.support.raw_server import Answer, Served, wait_for

_FENCES = re.compile(r"^```http\n(.*?)^```\n\n^```(json \d+|text stream)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ID = re.compile(rf"((?:run_|msg_|inp_)?{_UUID}|[0-9a-f]{{64}})")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_OF_THE_MACHINE = frozenset(("pid", "url", "workdir", "write_home", "commit", "aura_version", "version"))


@dataclass(frozen=True)
class Example:
    """One request of the page and what the page says of the answer. `status` is None for a stream."""

    method: str
    path: str
    headers: dict[str, str]
    body: str
    status: int | None
    answer: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def read_examples(page: str) -> list[Example]:
    """Return a page's examples, in order."""
    return [_example(*found.groups()) for found in _FENCES.finditer(page)]


def _example(request: str, kind: str, answer: str) -> Example:
    head, _, body = request.partition("\n\n")
    first, *lines = head.splitlines()
    method, path = first.split(" ", 1)
    headers = dict(line.split(": ", 1) for line in lines)
    return Example(method, path, headers, body.strip(), None if kind == "text stream" else int(kind[5:]), answer)


class Player:
    """Sends examples to a server. `ids` maps what the page calls things to what the server calls them."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.ids: dict[str, str] = {}

    def play(self, example: Example) -> None:
        """Send one example; fail unless the answer is the page's, names aside. A GET is repeated until it is."""
        if example.status is None:
            self._play_stream(example)
            return
        answers: list[Answer] = []

        def fits() -> bool:
            answers.append(self._send(example))
            return self._fits(example, answers[-1])

        try:
            if example.method == "GET":
                wait_for(fits, example.name, 10)
            else:
                assert fits()
        except AssertionError:
            live = answers[-1]
            raise AssertionError(
                f"{example.name}: {live.status}\nlive: {live.body.decode()}\npage: {example.answer}"
            ) from None
        _learn(json.loads(example.answer), answers[-1].json, self.ids)

    def _send(self, example: Example) -> Answer:
        body = self._translate(example.body).encode() if example.body else None
        return self._served.request(example.method, self._translate(example.path), body, **example.headers)

    def _fits(self, example: Example, answer: Answer) -> bool:
        return answer.status == example.status and masked(answer.json) == masked(json.loads(example.answer))

    def _play_stream(self, example: Example) -> None:
        expected = list(_frames(example.answer))
        _, _, query = self._translate(example.path).partition("?")
        with self._served.stream(f"?{query}", **example.headers) as stream:
            live = list(islice(stream.frames(), len(expected)))
        for found, wanted in zip(live, expected, strict=True):
            assert set(found) == set(wanted)
            assert (found.get("id"), found["event"]) == (wanted.get("id"), wanted["event"])
            assert masked(json.loads(found["data"])) == masked(json.loads(wanted["data"]))

    def _translate(self, text: str) -> str:
        return _ID.sub(lambda found: self.ids.get(found[0], found[0]), text)


def masked(value: Any, key: str = "") -> Any:
    """Return a document without what differs from server to server: ids, times, hashes, the machine's own."""
    if isinstance(value, dict):
        return {name: masked(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    if key in _OF_THE_MACHINE:
        return f"<{key}>"
    if isinstance(value, str):
        return _TIME.sub("<time>", _ID.sub("<id>", value))
    return value


def _learn(page: Any, live: Any, ids: dict[str, str]) -> None:
    if isinstance(page, dict):
        for name, item in page.items():
            _learn(item, live[name], ids)
    elif isinstance(page, list):
        for item, found in zip(page, live, strict=True):
            _learn(item, found, ids)
    elif isinstance(page, str) and _ID.fullmatch(page):
        assert ids.setdefault(page, live) == live, f"the page uses {page} for two things"


def _frames(text: str) -> Iterator[dict[str, str]]:
    for block in text.strip().split("\n\n"):
        yield dict(line.split(": ", 1) for line in block.splitlines())
