"""Writes a *scripted* model: a real GGUF file whose weights spell fixed texts, for tests against a real llama-server.

The embedding of each token is one-hot, attention and feed-forward add nothing, and the output matrix is a table of
which token follows which. The chat template ends the prompt with a marker of the route that fits the conversation,
and from that marker the most likely tokens spell the route's text. Tokenizer, template, streaming, tool-call parser
and context limits are llama-server's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, LlamaFileType, TokenType

CONTEXT_TOKENS = 131_072
PIECE_CHARS = 5  # a text is spelled in tokens of about this size, so that streams have several chunks
HEADS = 4
FOLLOWS = 40.0  # logit of the token that follows; sampling at any usual temperature cannot miss it
STOPS = 10.0  # logit of the end everywhere else
GENERATION_PROMPT = "{{- '<|im_start|>assistant\\n' }}"
END = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Route:
    """One answer. `when` is a Jinja condition over the template's `last`, `messages` and `tools`; one route has none.

    An `endless` route starts its text again and again, until the request's limit, the context or an abort ends it.
    """

    name: str
    text: str
    when: str = ""
    endless: bool = False


class _Vocabulary:
    """Tokens in order, and which one follows which."""

    def __init__(self) -> None:
        self.tokens: dict[str, TokenType] = {
            "<unk>": TokenType.UNKNOWN,
            "<s>": TokenType.CONTROL,
            "</s>": TokenType.CONTROL,
        }
        self.tokens |= {f"<0x{value:02X}>": TokenType.BYTE for value in range(256)}
        self.tokens |= dict.fromkeys(("▁", *map(chr, range(33, 127))), TokenType.NORMAL)
        self.tokens |= {"<|im_start|>": TokenType.CONTROL, END: TokenType.CONTROL}
        self.tokens |= dict.fromkeys(("<tool_call>", "</tool_call>"), TokenType.USER_DEFINED)
        self.next: dict[str, str] = {}

    def add_route(self, route: Route) -> None:
        marker = _marker(route)
        self.tokens[marker] = TokenType.CONTROL
        previous, first = marker, ""
        for piece in self._pieces(route.text.replace(" ", "▁")):
            self.tokens[piece] = TokenType.NORMAL
            self.next[previous] = piece
            previous, first = piece, first or piece
        self.next[previous] = first if route.endless else END

    def _pieces(self, text: str) -> Iterator[str]:
        """Cut `text` into tokens that exist nowhere else, so that each has one successor."""
        start = 0
        while start < len(text):
            end = start + PIECE_CHARS
            while text[start:end] in self.tokens and end < len(text):
                end += 1
            if len(text) - end < PIECE_CHARS:
                end = len(text)
            if text[start:end] in self.tokens:
                raise ValueError(f"the text ends like another one: change it after {text[:start]!r}")
            yield text[start:end]
            start = end


def write_model(path: Path, template: str, routes: Sequence[Route]) -> None:
    """Write the model to `path`. `template` is a ChatML chat template; only the last route has no condition."""
    vocabulary = _Vocabulary()
    for route in routes:
        vocabulary.add_route(route)
    writer = GGUFWriter(path, "llama")
    _write_metadata(writer, vocabulary, _with_routes(template, routes))
    _write_weights(writer, vocabulary)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _marker(route: Route) -> str:
    return f"<|route:{route.name}|>"


def _with_routes(template: str, routes: Sequence[Route]) -> str:
    """Return the template with the choice of the route's marker behind its generation prompt."""
    before, found, after = template.rpartition(GENERATION_PROMPT)
    if not found or routes[-1].when or not all(route.when for route in routes[:-1]):
        raise ValueError("the template must be ChatML, and exactly the last route without a condition")
    choice = ["{%- set last = messages[-1] -%}"]
    for index, route in enumerate(routes[:-1]):
        choice.append(f"{{%- {'elif' if index else 'if'} {route.when} -%}}{{{{- '{_marker(route)}' -}}}}")
    last = f"{{{{- '{_marker(routes[-1])}' -}}}}"
    choice.append(f"{{%- else -%}}{last}{{%- endif -%}}" if len(routes) > 1 else last)
    return before + GENERATION_PROMPT.replace("}}", "-}}") + "".join(choice) + after


def _write_metadata(writer: GGUFWriter, vocabulary: _Vocabulary, template: str) -> None:
    tokens, width = list(vocabulary.tokens), _width(vocabulary)
    writer.add_name("aura-scripted")
    writer.add_file_type(LlamaFileType.ALL_F32)
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(width // HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([-float(index) for index in range(len(tokens))])
    writer.add_token_types(list(vocabulary.tokens.values()))
    writer.add_unk_token_id(tokens.index("<unk>"))
    writer.add_bos_token_id(tokens.index("<s>"))
    writer.add_eos_token_id(tokens.index(END))
    writer.add_eot_token_id(tokens.index(END))
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(template)


def _write_weights(writer: GGUFWriter, vocabulary: _Vocabulary) -> None:
    ids = {token: index for index, token in enumerate(vocabulary.tokens)}
    count, width = len(ids), _width(vocabulary)
    # The norm before the output scales a one-hot vector by the root of its width.
    output = np.zeros((count, width), np.float32)
    output[ids[END], :] = STOPS / width**0.5
    for token, follower in vocabulary.next.items():
        output[ids[follower], ids[token]] = FOLLOWS / width**0.5
    writer.add_tensor("token_embd.weight", np.eye(count, width, dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    writer.add_tensor("output.weight", output)
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(width, np.float32))
    for name, shape in (
        ("attn_q", (width, width)),
        ("attn_k", (width // HEADS, width)),
        ("attn_v", (width // HEADS, width)),
        ("attn_output", (width, width)),
        ("ffn_gate", (64, width)),
        ("ffn_up", (64, width)),
        ("ffn_down", (width, 64)),
    ):
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float32))


def _width(vocabulary: _Vocabulary) -> int:
    return -(-len(vocabulary.tokens) // 64) * 64
