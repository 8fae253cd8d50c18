"""Which homes are read, and which one is written to."""

import subprocess
import sys
from pathlib import Path

import pytest

from aura.config.homes import resolve_homes
from aura.errors import ConfigInvalid


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def made(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_the_defaults_are_taken_where_they_exist(tmp_path: Path, cwd: Path) -> None:
    user = made(tmp_path / "user" / ".aura")
    project = made(cwd / ".aura")
    homes = resolve_homes(None, [], {"HOME": str(tmp_path / "user")}, cwd)
    assert homes.layers == (user, project)
    assert homes.write_home == project
    assert homes.store_dir == project / "sessions"
    assert homes.global_home == user
    assert homes.launch_dir == cwd


@pytest.mark.requirement("store.location.home")
def test_without_a_project_home_the_global_home_is_written_to(tmp_path: Path, cwd: Path) -> None:
    user = made(tmp_path / "user" / ".aura")
    homes = resolve_homes(None, [], {"HOME": str(tmp_path / "user")}, cwd)
    assert homes.layers == (user,)
    assert homes.write_home == user


def test_an_empty_home_flag_disables_the_global_home(tmp_path: Path, cwd: Path) -> None:
    made(tmp_path / "user" / ".aura")
    project = made(cwd / ".aura")
    environ = {"HOME": str(tmp_path / "user"), "AURA_HOME": str(tmp_path / "user" / ".aura")}
    homes = resolve_homes("", [], environ, cwd)
    assert homes.layers == (project,)
    assert homes.global_home is None


@pytest.mark.requirement("store.location")
def test_the_last_config_is_the_write_home_and_need_not_exist(tmp_path: Path, cwd: Path) -> None:
    project = made(cwd / ".aura")
    homes = resolve_homes("", [".aura", str(tmp_path / "run-home")], {}, cwd)
    assert homes.layers == (project, tmp_path / "run-home")
    assert homes.write_home == tmp_path / "run-home"
    assert not homes.write_home.exists()


def test_empty_entries_are_skipped_and_commas_separate(cwd: Path) -> None:
    one, two, three = made(cwd / "one"), made(cwd / "two"), made(cwd / "three")
    homes = resolve_homes("", ["one,,two", "", "three", ""], {}, cwd)
    assert homes.layers == (one, two, three)
    assert homes.write_home == three


def test_a_repeated_home_is_read_once_but_may_be_the_write_home(cwd: Path) -> None:
    one, two = made(cwd / "one"), made(cwd / "two")
    homes = resolve_homes("", ["one", "two", "./one"], {}, cwd)
    assert homes.layers == (one, two)
    assert homes.write_home == one


def test_environment_variables_stand_for_the_flags(cwd: Path) -> None:
    one, two, three = made(cwd / "one"), made(cwd / "two"), made(cwd / "three")
    homes = resolve_homes(None, [], {"AURA_HOME": "one", "AURA_CONFIG": "two,three"}, cwd)
    assert homes.layers == (one, two, three)
    assert homes.write_home == three


def test_flags_win_over_environment_variables(cwd: Path) -> None:
    one, two = made(cwd / "one"), made(cwd / "two")
    homes = resolve_homes("one", ["two"], {"AURA_HOME": "x", "AURA_CONFIG": "y"}, cwd)
    assert homes.layers == (one, two)


def test_an_empty_aura_home_disables_the_global_home(tmp_path: Path, cwd: Path) -> None:
    made(tmp_path / ".aura")
    project = made(cwd / ".aura")
    assert resolve_homes(None, [], {"HOME": str(tmp_path), "AURA_HOME": ""}, cwd).layers == (project,)


@pytest.mark.requirement("store.location.home")
def test_an_explicit_empty_config_leaves_only_the_global_home(cwd: Path) -> None:
    made(cwd / ".aura")
    one = made(cwd / "one")
    homes = resolve_homes("one", [""], {}, cwd)
    assert homes.layers == (one,)
    assert homes.write_home == one


def test_a_tilde_is_the_users_home(tmp_path: Path, cwd: Path) -> None:
    user = made(tmp_path / "user" / "conf")
    assert resolve_homes("~/conf", [], {"HOME": str(tmp_path / "user")}, cwd).layers == (user,)


def test_dots_in_a_relative_home_are_resolved(tmp_path: Path, cwd: Path) -> None:
    beside = made(tmp_path / "beside")
    assert resolve_homes("../beside", [], {}, cwd).layers == (beside,)


def test_no_home_at_all_names_both_flags(cwd: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        resolve_homes("", [], {}, cwd)
    assert caught.value.code == "config_invalid"
    assert caught.value.hint is not None
    assert "--config" in caught.value.hint
    assert "--home" in caught.value.hint


def test_a_missing_home_that_is_not_the_write_home_is_named(cwd: Path) -> None:
    made(cwd / ".aura")
    with pytest.raises(ConfigInvalid) as caught:
        resolve_homes("", ["typo", ".aura"], {}, cwd)
    assert str(cwd / "typo") in caught.value.message
    assert "does not exist" in caught.value.message


def test_a_home_that_is_a_file_is_named(cwd: Path) -> None:
    (cwd / "file").write_text("")
    with pytest.raises(ConfigInvalid, match="is not a directory"):
        resolve_homes("", ["file"], {}, cwd)


def test_a_home_with_a_nul_character_is_refused(cwd: Path) -> None:
    with pytest.raises(ConfigInvalid, match="NUL"):
        resolve_homes("", ["a\0b"], {}, cwd)


def test_finding_the_homes_imports_nothing_heavy() -> None:
    code = "import sys, aura.config.homes; print(*sorted(m for m in sys.modules if '.' not in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    loaded = set(done.stdout.split())
    assert "aura" in loaded
    assert loaded.isdisjoint({"yaml", "jinja2", "marshmallow", "asyncio", "flask", "gevent", "apsw"})
