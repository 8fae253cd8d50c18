"""Images of messages: base64 under `Data` (engine.md 3.3), JPEG unless `media_type` says otherwise, or a `url`."""

from __future__ import annotations

import re

from aura.jsontypes import JsonObject, JsonValue, text_at

JPEG = "image/jpeg"
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def read_data(data: str, media_type: str) -> JsonObject:
    """Return a stored image of base64 `data`."""
    return {"Data": data} if media_type == JPEG else {"Data": data, "media_type": media_type}


def read_url(url: str) -> JsonObject:
    """Return a stored image of a URL, whose data is taken out of it where it holds any."""
    match = _DATA_URL.fullmatch(url)
    return read_data(match[2], match[1]) if match else {"url": url}


def data_url(image: JsonValue) -> str:
    """Return the URL of a stored image, "" for an object that is none."""
    data = text_at(image, "Data")
    return f"data:{text_at(image, 'media_type') or JPEG};base64,{data}" if data else text_at(image, "url")
