"""Text and images of content lists, as the messages and tool results of Claude Code and Codex hold them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aura.jsontypes import JsonValue, object_at, text_at
from aura.wire.formats.records import Repair, Repairs
from aura.wire.images import read_data, read_url

_TEXT = frozenset(("text", "input_text", "output_text"))


@dataclass(frozen=True, slots=True)
class Content:
    """The readable part of a content list."""

    text: str = ""
    images: tuple[JsonValue, ...] = ()


def read_content(value: JsonValue, repairs: Repairs) -> Content:
    """Return the text and images of a string or a list of parts. A part of another kind leaves a mark in the text."""
    if isinstance(value, str):
        return Content(value)
    texts, images = [], list[JsonValue]()
    for part in value if isinstance(value, Sequence) else ():
        image = find_image(part)
        if isinstance(part, str):
            texts.append(part)
        elif text_at(part, "type") in _TEXT:
            texts.append(text_at(part, "text"))
        elif image is not None:
            images.append(image)
        else:
            repairs.add(Repair.PART)
            texts.append(f"[{text_at(part, 'type') or 'unknown part'}]")
    return Content("\n".join(texts), tuple(images))


def find_image(part: JsonValue) -> JsonValue | None:
    """Return the image that a part is, None when it is something else."""
    source = object_at(part, "source")
    match text_at(part, "type"), text_at(source, "type"):
        case "image", "base64":
            return read_data(text_at(source, "data"), text_at(source, "media_type"))
        case "image", "url":
            return read_url(text_at(source, "url"))
        case "input_image", _ if text_at(part, "image_url"):
            return read_url(text_at(part, "image_url"))
    return None
