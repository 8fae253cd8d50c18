"""Whatever a file holds, reading it either works or is `config_invalid`."""

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from aura.config.homes import Homes
from aura.config.resolve import load_configuration
from aura.errors import ConfigInvalid
from tests.unit.config.home import LOCAL, MAIN

# Pieces that YAML gives a meaning to, and keys that the tables know: more telling than letters alone.
PIECES = st.sampled_from(
    [
        *"\n\n\n::: -[]{},&*!|>'\"%@`#?\t~=$\\.",
        *("\n  ", "\n    ", ": ", "- ", "<<: ", "&a ", "*a ", "!!int ", "!!float ", "!!bool ", "!!set ", "!x "),
        *("---\n", "...\n", "\ufeff", "\x00", "\ud7ff", "\U0001f600", "é"),
        *("name", "model", "provider", "local", "tools", "enabled", "policy", "deny", "inherit", "main", "features"),
        *("type", "script", "llamacpp", "url", "http://h", "token", "${X}", "timeout", "retry", "file", "sandbox"),
        *(
            "true",
            "off",
            "null",
            "0",
            "-1",
            "1e999",
            ".nan",
            "0x_",
            "2024-99-99",
            "1:2",
            "190:20:30",
            "{{",
            "}}",
            "{% ",
        ),
    ]
)
GARBAGE = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
    st.lists(PIECES, max_size=40).map(lambda pieces: "".join(pieces).encode()),
)
FILES = st.sampled_from(
    ["config/agents/x.md", "config/providers/x.yaml", "config/features/x.yaml", "config/sandbox/x.yml"]
)


def load(file: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        files = {"config/agents/main.md": MAIN.encode(), "config/providers/local.yaml": LOCAL.encode(), file: content}
        for name, data in files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(data)
        try:
            configuration = load_configuration(Homes((home,), home, home), {"X": "secret"})
        except ConfigInvalid as error:
            assert "\n" not in error.message
            assert str(home) in error.message
            error.message.encode()
        else:
            assert "main" in configuration.agents


@given(FILES, GARBAGE)
@example("config/providers/x.yaml", b"a: {type: [script]}")
@example("config/providers/x.yaml", b"a: {<<: {type: script}, file: config}")
@example("config/features/x.yaml", b"tools: &a {result: *a}")
def test_a_file_of_garbage_is_refused_and_never_crashes(file: str, content: bytes) -> None:
    load(file, content)


@given(st.lists(PIECES, max_size=40).map("".join))
@example("tools: {policy: {deny: [{{]}}")
def test_garbage_in_the_frontmatter_is_refused_and_never_crashes(keys: str) -> None:
    load("config/agents/x.md", f"---\nname: x\n{keys}\n---\nBody.\n".encode())


@given(st.lists(PIECES, max_size=40).map("".join))
def test_garbage_in_a_provider_is_refused_and_never_crashes(keys: str) -> None:
    load("config/providers/x.yaml", f"x:\n  type: llamacpp\n  {keys}\n".encode())


@given(st.lists(PIECES, max_size=40).map("".join))
@example("{{ '%s' % () }}")
@example("{{ Agent.format }}{{ [] | first }}")
@example("{{ 'x' | int(base=99) }}")
def test_garbage_in_a_prompt_is_refused_and_never_crashes(body: str) -> None:
    load("config/agents/x.md", f"---\nname: x\nmodel: {{provider: local, name: q}}\n---\n{body}\n".encode())
