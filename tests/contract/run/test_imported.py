"""A session that came from another program is worked on like any other, and leaves as it came, with what is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import foreign
from tests.support.serving import WAIT_S, Site


def aura(site: Site, *words: str) -> None:
    process = site.spawn(*words)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, (out, err)


@pytest.mark.parametrize(
    ("path", "format"), [(foreign.CLAUDE_CODE, "claude-code"), (foreign.CODEX, "codex")], ids=["claude-code", "codex"]
)
def test_an_imported_session_goes_on_and_is_written_back_with_its_new_records(
    site: Site, tmp_path: Path, path: Path, format: str
) -> None:
    aura(site, "session", "import", str(path))
    (session,) = site.store.list().sessions
    site.script({"content": "It is done."})
    process = site.spawn("run", "Is it done?", flags=["--resume", session.id])
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (0, b"It is done.\n"), err
    aura(site, "session", "export", session.id, "--format", format, "--output", str(tmp_path / "back.jsonl"))
    source, back = (foreign.json_lines(file.read_bytes()) for file in (path, tmp_path / "back.jsonl"))
    assert back[: len(source)] == source
    text = str(back[len(source) :])
    assert len(back) == len(source) + 2 and "Is it done?" in text and "It is done." in text
