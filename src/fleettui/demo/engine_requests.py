"""What a request to a stand-in asks for: document, durations, options, words and vectors of the answer."""

from __future__ import annotations

import json
import math
import re
from typing import Any

ANSWER = (
    "This", "answer", "comes", "from", "a", "simulated", "machine:", "nothing", "was", "computed,", "but",
    "memory,", "time", "and", "keep_alive", "behave", "as", "they", "would", "on", "a", "real", "one.",
)  # fmt: skip
LONGEST_S = (2**63 - 1) / 1e9
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|s|m|h)")


def read_document(body: bytes) -> dict[str, Any]:
    """The JSON object of a request; empty where the body is none."""
    try:
        asked = json.loads(body)
    except ValueError:
        return {}
    return asked if isinstance(asked, dict) else {}


def keep_alive_seconds(value: Any) -> float | None:
    """`"10m"`, `"1h30m"`, `300`, `-1`, `"-1"` -> seconds, negative for ever; None when it is no duration."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _in_range(float(value))
    if not isinstance(value, str):
        return None
    text = value.strip()
    sign = -1.0 if text.startswith("-") else 1.0
    text = text.lstrip("+-")
    if text.replace(".", "", 1).isdigit():
        return _in_range(sign * float(text))
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return _in_range(sign * sum(float(number) * _UNITS_S[unit] for number, unit in parts))


def _in_range(seconds: float) -> float | None:
    """What Go's durations can hold; longer is for ever."""
    if math.isnan(seconds):
        return None
    return seconds if seconds < LONGEST_S else -1.0


def options_of(asked: dict[str, Any]) -> dict[str, Any]:
    options = asked.get("options")
    return options if isinstance(options, dict) else {}


def context_of(options: dict[str, Any]) -> int | None:
    asked = options.get("num_ctx")
    return asked if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0 else None


def words_for(num_predict: Any) -> list[str]:
    """As many words as asked for, the sentence over again when it is too short."""
    count = num_predict if isinstance(num_predict, int) and num_predict > 0 else len(ANSWER)
    return [ANSWER[place % len(ANSWER)] for place in range(min(count, 4096))]


def vector_for(text: str, length: int) -> list[float]:
    """Some unit-sized numbers that depend on the text."""
    start = sum(text.encode()) % 97 + 1
    return [round(((start * (place + 3)) % 199 - 99) / 2_800, 7) for place in range(length)]
