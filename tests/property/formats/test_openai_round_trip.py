"""Whatever a chat messages file holds, an import and an export give it back: `aura.wire.formats.openai`."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from aura.conversation import find_broken_pair
from aura.wire import canonical, document
from aura.wire.formats import openai

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IDS = st.sampled_from(["", "call_1", "call_2", "call_3"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
PARTS = st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT})
    | st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.fixed_dictionaries({"url": TEXT})})
    | st.dictionaries(TEXT, JSON, max_size=2)
    | JSON,
    max_size=3,
)
CONTENT = TEXT | PARTS | JSON
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": IDS,
            "type": st.just("function"),
            "function": st.fixed_dictionaries(
                {"name": TEXT, "arguments": TEXT | st.dictionaries(TEXT, JSON, max_size=2).map(json.dumps)}
            ),
        }
    ),
    max_size=3,
)
USER = st.fixed_dictionaries({"role": st.just("user"), "content": CONTENT}, optional={"name": TEXT})
SYSTEM = st.fixed_dictionaries({"role": st.sampled_from(["system", "developer"]), "content": CONTENT})
TOOL = st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": CONTENT})
ASSISTANT = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": CONTENT},
    optional={"tool_calls": CALLS, "reasoning_content": TEXT, "refusal": TEXT, "weight": JSON},
)
ODD = st.dictionaries(TEXT, JSON, max_size=3) | JSON
MESSAGES = st.lists(USER | SYSTEM | TOOL | ASSISTANT | ASSISTANT | ODD, max_size=8)
FIELDS = st.dictionaries(TEXT.filter(lambda key: key != "messages"), JSON, max_size=3)


def stored(value):
    """Return header and messages of the conversation after a document was made of it and parsed."""
    conversation = openai.read_conversation(value, canonical.encode(value)).conversation
    again = document.parse_document(b"".join(document.iterate_document(conversation.messages, conversation.header)))
    assert again == conversation
    messages = document.read_messages(again.messages)
    assert find_broken_pair(messages) is None
    return again.header, messages


@settings(max_examples=300, deadline=None)
@given(MESSAGES, FIELDS)
def test_any_conversation_is_written_again_as_it_was(messages, fields):
    value = {"messages": messages, **fields}
    written = openai.write_conversation(*stored(value))
    assert written.fields == value
    assert written.left_out == 0


@settings(max_examples=150, deadline=None)
@given(MESSAGES)
def test_an_export_of_ours_is_imported_with_equal_messages(messages):
    header, ours = stored({"messages": messages})
    again_header, again = stored(openai.write_conversation(header, ours).fields)
    assert (again_header.system, again) == (header.system, ours)
