"""Numbers of the filter language with their units: `24`, `24GiB`, `90%`, `10s`, `1d4h`, `300W`."""

from __future__ import annotations

import re
from typing import NamedTuple

from fleettui.view.filter_fields import Field, Unit

_FACTORS: dict[Unit, dict[str, float]] = {
    "GiB": {
        "": 1.0, "g": 1.0, "gb": 1.0, "gib": 1.0, "m": 1 / 1024, "mb": 1 / 1024, "mib": 1 / 1024,
        "t": 1024.0, "tb": 1024.0, "tib": 1024.0,
    },
    "%": {"": 1.0, "%": 1.0},
    "s": {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0},
    "°C": {"": 1.0, "c": 1.0, "°c": 1.0, "°": 1.0},
    "W": {"": 1.0, "w": 1.0, "kw": 1000.0},
    "MB/s": {"": 1.0, "mb/s": 1.0, "mb": 1.0, "kb/s": 0.001, "kb": 0.001, "gb/s": 1000.0, "gb": 1000.0},
    "count": {"": 1.0},
}  # fmt: skip
EXAMPLES: dict[Unit, str] = {
    "GiB": "24, 24GiB or 500MiB", "%": "5 or 5%", "s": "10s, 5m, 2h or 1d4h", "°C": "80", "W": "300 or 300W",
    "MB/s": "100 or 100MB/s", "count": "2",
}  # fmt: skip
_DIGITS: dict[Unit, int] = {"GiB": 1}
"""Decimals that the screen shows; equality goes by what is shown."""

# Bounded, so that no text can make it slow or the number infinite.
_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*(%|°[cC]?|[a-zA-Z]*(?:/s)?)", re.ASCII)
_MAX_PARTS = 8


class Quantity(NamedTuple):
    """A number in the unit of its field."""

    value: float
    is_percent: bool
    """Compare with the field's share."""
    digits: int
    """Decimals that count for equality."""


def parse_quantity(text: str, field: Field) -> Quantity | None:
    """The number, None where it is none or has a unit that is not the field's."""
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text)
    if field.percent is not None and rest.endswith("%"):
        value = _sum_of(rest[:-1].strip(), {"": 1.0})
        return None if value is None else Quantity(sign * value, True, 0)
    value = _sum_of(rest, _FACTORS[field.unit])
    return None if value is None else Quantity(sign * value, False, _DIGITS.get(field.unit, 0))


def _sum_of(text: str, factors: dict[str, float]) -> float | None:
    """`1d4h` is the sum of its parts; a part without a unit stands alone."""
    value, at, parts = 0.0, 0, 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None or parts == _MAX_PARTS:
            return None
        factor = factors.get(found[2].lower())
        if factor is None or (parts and not found[2]):
            return None
        value += float(found[1]) * factor
        at = found.end()
        parts += 1
    return value if parts else None
