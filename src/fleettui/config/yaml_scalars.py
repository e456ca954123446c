"""Values of plain YAML scalars, and how a text is written as one.

YAML 1.2 core schema, narrowed to what survives a trip through JSON as written: only true/false are
booleans, dates, `on`, `1:30`, `0x1F` and `007` stay text, `1.10` keeps its digits.
"""

from __future__ import annotations

import json
import re
from typing import Any

from fleettui.model.written import read_float

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,299})", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9._/-]*", re.ASCII)
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some reader of YAML takes for no text."""


def write_text(text: str) -> str:
    """A text as YAML: in double quotes (JSON is YAML) where it would mean something else without."""
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _RESERVED
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def core_value(text: str) -> Any:
    """The value of a plain scalar."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in "-+.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and len(text) <= 300:
        value = float(text)
        if value - value == 0:  # finite; JSON has no infinity, so 1e999 stays text
            return read_float(text) if _JSON_NUMBER.fullmatch(text) else value
    return text
