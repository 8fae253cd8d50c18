"""A script file is read strictly: every mistake is config_invalid and names file and key."""

from __future__ import annotations

import pytest

from aura.engine.providers.script_file import FOREVER, read_script
from aura.engine.providers.script_template import Context
from aura.errors import ConfigInvalid


def test_defaults_are_those_of_the_page(write_script):
    script = read_script(write_script("turns: [{}]"))
    assert (script.context_tokens, script.models) == (131072, ("scripted",))
    turn = script.turns[0]
    assert (turn.uses, turn.delay_ms, turn.chunk_delay_ms, turn.last, turn.error) == (1, 0, 0, None, None)


def test_forever_has_no_limit(write_script):
    assert read_script(write_script("turns: [{repeat: forever}]")).turns[0].uses == FOREVER


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("turns: [{contents: a}]", r"turns\[0\].contents: unknown key 'contents'"),
        ("turn: []", "unknown key 'turn'"),
        ("models: [a]", "turns is missing"),
        ("[]", "is not a mapping"),
        ("", "turns is missing"),
        ("turns: {}", "turns: is not a list"),
        ("turns: [{when: {first: a}}]", r"turns\[0\]\.when\.first: unknown key 'first'"),
        ("turns: [{when: {last: '('}}]", r"turns\[0\]\.when\.last: is not a regular expression"),
        ("turns: [{content: '{{ last'}]", r"turns\[0\]\.content: bad template"),
        ("turns: [{content: '{% for %}'}]", r"turns\[0\]\.content: bad template"),
        ("turns: [{content: '{{ lats }}'}]", r"turns\[0\]\.content: bad template: lats is not defined"),
        ("turns: [{content: '{{ last | nope }}'}]", r"turns\[0\]\.content: bad template"),
        ("turns: [{}, {chunks: [a, '{{']}]", r"turns\[1\]\.chunks\[1\]: bad template"),
        ("turns: [{calls: [{name: A, arguments: {b: [{c: '{{'}]}}]}]", r"turns\[0\]\.calls\[0\]\.arguments\.b\[0\]\.c"),
        ("turns: [{content: yes}]", r"turns\[0\]\.content: is not text but True"),
        ("turns: [{content: 7}]", r"turns\[0\]\.content: is not text but 7"),
        ("turns: [{calls: [{name: A, arguments: {n: .nan}}]}]", r"arguments\.n: "),
        ("turns: [{calls: [{arguments: {}}]}]", r"turns\[0\]\.calls\[0\]: name is missing"),
        ("turns: [{calls: [{name: A, arguments: []}]}]", r"arguments: is not a mapping"),
        ("turns: [{calls: [{id: a, name: A}, {id: a, name: B}]}]", r"turns\[0\]\.calls: uses a call id twice"),
        ("turns: [{content: a, chunks: [b]}]", r"turns\[0\]: has both content and chunks"),
        ("turns: [{content: a, error: {kind: network}}]", r"turns\[0\]: has both error and content"),
        ("turns: [{error: {kind: odd}}]", r"turns\[0\]\.error: kind is 'odd'"),
        ("turns: [{error: {kind: [http]}}]", r"turns\[0\]\.error: kind is \['http'\]"),
        ("turns: [{error: {kind: http}}]", r"turns\[0\]\.error: status is missing"),
        ("turns: [{error: {kind: http, status: 200}}]", r"error\.status: is not a whole number from 400 to 599"),
        ("turns: [{error: {kind: network, status: 503}}]", r"error: status does not belong to kind network"),
        ("turns: [{repeat: 2, error: {kind: network, times: 3}}]", r"turns\[0\]\.repeat: stands beside error\.times"),
        ("turns: [{error: {kind: network, times: 0}}]", r"error\.times: is not a whole number"),
        ("turns: [{repeat: 0}]", r"turns\[0\]\.repeat: is not a whole number"),
        ("turns: [{repeat: true}]", r"turns\[0\]\.repeat: is not a whole number"),
        ("turns: [{repeat: always}]", r"turns\[0\]\.repeat: is 'always'"),
        ("turns: [{delay_ms: -1}]", r"turns\[0\]\.delay_ms: is not a whole number"),
        ("turns: [{delay_ms: 1.5}]", r"turns\[0\]\.delay_ms: is not a whole number"),
        ("turns: [{usage: {inptu: 1}}]", r"turns\[0\]\.usage\.inptu: unknown key 'inptu'"),
        ("turns: [{usage: {input: -1}}]", r"turns\[0\]\.usage\.input"),
        ("{models: [], turns: []}", "models: is empty"),
        ("{context: 0, turns: []}", "context: is not a whole number"),
        ("turns: []\nturns: []", "script.yaml:2: the key 'turns' stands on line 1 already"),
        ("{1: a, turns: []}", "a key must be text"),
        ("turns: [", "script.yaml:2: "),
        ("turns: !!python/object:os.system []", "is not supported"),
        ("a: &a [*a]", "levels"),
        ("turns: \x00", "is not allowed"),
    ],
)
def test_a_mistake_names_file_and_key(write_script, text, problem):
    path = write_script(text)
    with pytest.raises(ConfigInvalid, match=problem) as caught:
        read_script(path)
    assert caught.value.message.startswith(f"{path}:")


def test_a_mistake_names_its_line(write_script):
    with pytest.raises(ConfigInvalid, match=r"script\.yaml:4: turns\[1\]\.repeat: "):
        read_script(write_script("turns:\n  - content: a\n  - content: b\n    repeat: 0\n"))


def test_a_key_without_a_value_is_absent_but_null_is_an_argument(write_script):
    turn = read_script(write_script("turns: [{content: , calls: [{name: A, arguments: {a: null}}]}]")).turns[0]
    assert (turn.content, turn.calls[0].arguments(Context("", "", 1))) == (None, {"a": None})


def test_a_file_that_is_missing_or_a_directory_is_config_invalid(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigInvalid, match=r"cannot be read|not a regular file"):
            read_script(path)


def test_a_file_that_is_not_utf8_is_config_invalid(tmp_path):
    path = tmp_path / "script.yaml"
    path.write_bytes(b"turns: [{content: '\xff\xfe'}]")
    with pytest.raises(ConfigInvalid):
        read_script(path)


def test_deep_nesting_is_config_invalid(write_script):
    deep = "[" * 5000 + "]" * 5000
    with pytest.raises(ConfigInvalid):
        read_script(write_script(f"turns: {deep}"))
    arguments = "{a: " * 300 + "1" + "}" * 300
    with pytest.raises(ConfigInvalid, match="levels"):
        read_script(write_script(f"turns: [{{calls: [{{name: A, arguments: {arguments}}}]}}]"))
