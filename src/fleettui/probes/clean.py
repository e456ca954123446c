"""Remote text is hostile: decode, strip control codes and escape sequences, limit the length."""

from __future__ import annotations

import re
from functools import lru_cache

DEFAULT_LIMIT = 200

# CSI, OSC/DCS/PM/APC strings (ended by BEL or ST) and two-character escapes, in 7-bit and C1 form.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)


def clean_text(raw: bytes | str, limit: int = DEFAULT_LIMIT) -> str:
    """One printable line of at most `limit` characters.

    Escape sequences, control, format (bidi) and unassigned characters are dropped; any white space
    becomes one blank; undecodable bytes become U+FFFD; a cut is marked by `…`.
    """
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    # isprintable() is false for every C* and Z* category except the blank: one fast check for plain text.
    if text.isprintable():
        text = text.strip() if text[:1] == " " or text[-1:] == " " else text
        return text if len(text) <= limit else text[: limit - 1] + "…"
    # Long input: escape sequences may take room, so look a little further than the limit.
    text = _ESCAPE.sub("", text[: limit * 8 + 256])
    words = "".join(" " if char.isspace() else char for char in text if char.isprintable() or char.isspace())
    text = " ".join(words.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


@lru_cache(maxsize=4096)
def clean_word(text: str) -> str:
    """`clean_text` for names that come again at every poll (cards, drivers, models)."""
    return clean_text(text)


_SECRET = re.compile(
    r"(?i)([\w.-]*(?:api[_-]?key|token|secret|passw|credential)[\w.-]*(?:=|:\s*|\s+)|bearer\s+|://[^\s/@:]*:)"
    r"(?!-)[^\s@'\"]+"
)


def hide_secrets(command: str) -> str:
    """A command line as it may be kept and shown: values of keys, tokens and passwords become `…`."""
    return _SECRET.sub(r"\1…", command)


def clean_excerpt(raw: bytes, limit: int = 400) -> str:
    """Several lines as one, joined by ` / `; for banners and error texts."""
    lines = (clean_text(line, limit) for line in raw[: limit * 8].splitlines())
    text = " / ".join(line for line in lines if line)
    return text if len(text) <= limit else text[: limit - 1] + "…"
