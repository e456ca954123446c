"""JSON as AMD's tools print it: behind warning lines, values with units in three spellings.

`{"value": 16, "unit": "MB"}` (ROCm 6 and 7), `"16 MB"` and plain numbers (ROCm 5.7, 6.0), `"N/A"` anywhere.
A MB of theirs is 1024 * 1024 bytes: amdsmi_commands.py divides by that, and an 8 GiB card has 8176 of them.
"""

from __future__ import annotations

import json
from math import isfinite

from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.probes.clean import clean_text

MAX_BYTES = 2 << 20
_MAX_STARTS = 40
_UNITS_IN_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_MIB = 1 << 20
_LARGEST = 10.0**15


def read_document(payload: bytes) -> tuple[object, tuple[str, ...]]:
    """The first JSON array or object in a tool's output, None where none is whole, and the lines before."""
    text = payload[:MAX_BYTES].decode("utf-8", "replace")
    decoder = json.JSONDecoder(parse_constant=lambda _: "N/A")
    lines: list[str] = []
    at = 0
    for line in text.split("\n"):
        if line[:1] in ("[", "{") and len(lines) <= _MAX_STARTS:
            try:
                return decoder.raw_decode(text, at)[0], tuple(lines)
            except (ValueError, RecursionError):
                pass  # `[WARNING] …`, or a document cut short
        if line.strip():
            lines.append(line)
        at += len(line) + 1
    return None, tuple(lines[:_MAX_STARTS])


def read_entries(document: object) -> dict[int, dict[str, object]]:
    """One entry for each GPU, by the tool's own number: a list of them, or one under `gpu_data` (ROCm 7)."""
    if isinstance(document, dict):
        document = document.get("gpu_data", [document])
    found: dict[int, dict[str, object]] = {}
    for entry in document if isinstance(document, list) else ():
        index = entry.get("gpu") if isinstance(entry, dict) else None
        if isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 1024:
            found[index] = entry
    return found


def find(entry: object, *names: str) -> object:
    """What stands under these names, one inside the other; None where nothing does."""
    for name in names:
        if not isinstance(entry, dict):
            return None
        entry = entry.get(name)
    return entry


def read_text(value: object) -> Maybe[str]:
    """A word of the tool."""
    if value is None:
        return NOT_READ
    if not isinstance(value, str):
        return Unknown("no text")
    text = clean_text(value)
    return text if text and text not in ("N/A", "None") else Unknown(text or "empty")


def read_quantity(value: object) -> tuple[Maybe[float], str]:
    """Number and unit of a value in any of the spellings; without a unit an empty one."""
    unit = ""
    if isinstance(value, dict):
        unit = str(value.get("unit") or "")[:8]
        value = value.get("value")
    if isinstance(value, str):
        number, _, rest = value.strip().partition(" ")
        unit = rest.strip()[:8] or unit
        value = _number(number)
    if value is None:
        return NOT_READ, unit
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return (value if isinstance(value, Unknown) else Unknown("no number")), unit
    if not 0 <= value <= _LARGEST:
        return Unknown("out of range"), unit
    return float(value), unit


def _number(text: str) -> Maybe[float]:
    if not text.isascii() or "_" in text or len(text) > 20:
        return Unknown(clean_text(text, 40) or "empty")
    try:
        number = float(text)
    except ValueError:
        return Unknown(clean_text(text, 40) or "empty")
    return number if isfinite(number) else Unknown("no number")


def read_mib(value: object, unit_else: str = "MB") -> Maybe[int]:
    """An amount of memory in MiB; `unit_else` holds where the tool prints none."""
    number, unit = read_quantity(value)
    if isinstance(number, Unknown):
        return number
    size = _UNITS_IN_BYTES.get((unit or unit_else).upper().replace("IB", "B"))
    return Unknown(f"unit {clean_text(unit, 10)}") if size is None else int(number * size) // _MIB


def read_whole(value: object) -> Maybe[int]:
    """A percentage or a temperature."""
    number, _ = read_quantity(value)
    return number if isinstance(number, Unknown) else round(number)


def read_plain(value: object) -> Maybe[float]:
    """Watts."""
    return read_quantity(value)[0]
