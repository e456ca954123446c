"""Numbers as text. Unknown prints as `–`, never as 0."""

from __future__ import annotations

from fleettui.model.clock import duration as duration  # noqa: PLC0414 - a unit of the screens too
from fleettui.model.clock import iso_utc
from fleettui.model.unknown import Maybe, Unknown

DASH = "–"
PERCENT_WIDTH = 5
"""Columns of `100 %`."""
_GIB = 1 << 30
_KIB_IN_GIB = 1 << 20


def gib_text(mib: Maybe[int]) -> str:
    """GiB with one decimal: `18.2`."""
    return DASH if isinstance(mib, Unknown) else f"{mib / 1024:.1f}"


def gib_short(mib: Maybe[int]) -> str:
    """GiB, the decimal only below 100: `18.2`, `122`."""
    if isinstance(mib, Unknown):
        return DASH
    return f"{mib / 1024:.1f}" if mib < 100 * 1024 - 51 else f"{mib / 1024:.0f}"


def gib_whole(mib: Maybe[int]) -> str:
    """GiB without decimals, for sums: `1536`."""
    return DASH if isinstance(mib, Unknown) else f"{mib / 1024:.0f}"


def bytes_gib(count: Maybe[int]) -> str:
    """Bytes as GiB with one decimal, from 1000 on without."""
    if isinstance(count, Unknown):
        return DASH
    gib = count / _GIB
    return f"{gib:.1f}" if gib < 999.95 else f"{gib:.0f}"


def kib_gib(kib: Maybe[int]) -> str:
    """KiB as whole GiB, below 10 with one decimal."""
    if isinstance(kib, Unknown):
        return DASH
    gib = kib / _KIB_IN_GIB
    return f"{gib:.1f}" if gib < 9.95 else f"{gib:.0f}"


def disk_size(count: int) -> str:
    """Bytes as disks are sold, decimal: `7.7 TB`, `480 GB`."""
    return f"{count / 1e12:.1f} TB" if count >= 999_500_000_000 else f"{count / 1e9:.0f} GB"


def percent(value: Maybe[float], width: int) -> str:
    """`12 %`, for columns; `12%` where they are narrow."""
    if width >= PERCENT_WIDTH or isinstance(value, Unknown):
        return percent_prose(value)
    return f"{value:.0f}%"


def percent_prose(value: Maybe[float]) -> str:
    """`12 %`, for sentences."""
    return DASH if isinstance(value, Unknown) else f"{value:.0f} %"


def celsius(value: Maybe[int]) -> str:
    """`41 °C`."""
    return DASH if isinstance(value, Unknown) else f"{value} °C"


def watts(value: Maybe[float]) -> str:
    """`212 W`."""
    return DASH if isinstance(value, Unknown) else f"{value:.0f} W"


def rate(bytes_s: Maybe[float]) -> str:
    """`1.1 MB/s`, decimal."""
    return DASH if isinstance(bytes_s, Unknown) else f"{bytes_s / 1e6:.1f} MB/s"


def age(seconds: float | None) -> str:
    """Age of something read; `–` for never."""
    return DASH if seconds is None else duration(seconds)


def remaining(seconds: float) -> str:
    """Time to a moment ahead, rounded up within the minute: `4m`, `38s`; never negative."""
    if seconds <= 0:
        return "0s"
    return duration(seconds + 0.999 if seconds < 60 else seconds)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """`1 GPU`, `8 GPUs`, `5 copies`."""
    word = singular if number == 1 else (plural if plural is not None else singular + "s")
    return f"{number} {word}"


def date_and_time(epoch_s: Maybe[float], utc_offset_s: int = 0) -> str:
    """`2026-03-10 09:15:30` in the zone of that offset."""
    if isinstance(epoch_s, Unknown):
        return f"{DASH:<19}"
    return iso_utc(epoch_s + utc_offset_s)[:-1].replace("T", " ")
