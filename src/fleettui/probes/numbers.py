"""Fields of text answers as values: a number, or Unknown with the reason the tool gave."""

from __future__ import annotations

from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text

_EMPTY = Unknown("empty")
_REASONS: dict[str, Unknown] = {
    text: Unknown(text.strip("[]"))
    for text in ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "ERR!")
}
_MAX_DIGITS = 15
_REASON_LIMIT = 60


def is_digits(text: str) -> bool:
    """True for 1 to 15 ASCII digits."""
    return text.isdigit() and text.isascii() and len(text) <= _MAX_DIGITS


def unknown(text: str) -> Unknown:
    """The Unknown that a field's own text stands for: `[N/A]`, `ERR!`, a sentence in brackets, rubbish."""
    known = _REASONS.get(text)
    if known is not None:
        return known
    if not text:
        return _EMPTY
    if text[0] == "[" and text[-1] == "]":
        return Unknown(clean_text(text[1:-1], _REASON_LIMIT) or "empty")
    return Unknown(f"unreadable: {clean_text(text, _REASON_LIMIT)}")


def read_int(text: str) -> Maybe[int]:
    """A whole number of at most 15 digits."""
    return int(text) if is_digits(text) else unknown(text)


def read_float(text: str) -> Maybe[float]:
    """A number as `34.12`; `34,12` (a tool that ignores LC_ALL=C) is the same."""
    if text.isascii() and len(text) <= _MAX_DIGITS and text.replace(".", "", 1).isdigit():
        # 34.12, and `.5` or `5.`, which no tool prints
        return float(text)
    whole, dot, rest = text.partition(",")
    if dot and is_digits(whole) and is_digits(rest) and len(rest) <= 2:
        return float(f"{whole}.{rest}")
    return unknown(text)


def read_text(text: str) -> Maybe[str]:
    """A word or name; text in brackets is a reason, not a value."""
    if not text or text[0] == "[" or text in _REASONS:
        return unknown(text)
    return clean_text(text) or _EMPTY
