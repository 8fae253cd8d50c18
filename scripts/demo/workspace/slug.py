"""Names for web addresses."""

import re


def slug(title: str) -> str:
    """Return `title` in lower case, its words joined by single dashes, with nothing else in it."""
    return re.sub(r"[^a-z0-9]", "-", title.lower())
