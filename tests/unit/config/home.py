"""A config home on disk, for the tests of this folder. It is a test tool, not a test."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from aura.config.homes import Homes
from aura.config.resolve import load_configuration
from aura.config.spec import Configuration
from aura.errors import ConfigInvalid

MAIN = "---\nname: main\nmodel: {provider: local, name: qwen}\n---\nYou are a careful assistant.\n"
LOCAL = "local: {type: llamacpp, url: 'http://127.0.0.1:8080'}\n"


class Home:
    """A config home that starts with one valid agent and one valid provider."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("config/agents/main.md", MAIN)
        self.write("config/providers/local.yaml", LOCAL)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def agent(self, name: str, keys: str = "", body: str = "Be careful.", file: str | None = None) -> Path:
        """Write an agent with a valid model, and `keys` as further lines of its frontmatter."""
        text = f"---\nname: {name}\nmodel: {{provider: local, name: qwen}}\n{keys}\n---\n{body}\n"
        return self.write(f"config/agents/{file or name}.md", text)

    def load(self, environ: Mapping[str, str] | None = None) -> Configuration:
        return load_configuration(Homes((self.path,), self.path, self.path), environ or {})

    def refusal(self, environ: Mapping[str, str] | None = None) -> ConfigInvalid:
        """Load, which must fail, and return the error."""
        with pytest.raises(ConfigInvalid) as caught:
            self.load(environ)
        return caught.value
