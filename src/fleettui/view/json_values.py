"""Values as JSON has them: null for what was not read, GiB and rates with one decimal."""

from __future__ import annotations

from typing import Any

from fleettui.model.unknown import Maybe, T, Unknown

Document = dict[str, Any]

GIB = 1 << 30
KIB_IN_GIB = 1 << 20


def known(value: Maybe[T]) -> T | None:
    """The value, or null."""
    return None if isinstance(value, Unknown) else value


def rounded(value: Maybe[float]) -> float | None:
    """One decimal."""
    return None if isinstance(value, Unknown) else round(float(value), 1)


def gib(value: Maybe[int], unit: int) -> float | None:
    """GiB with one decimal; `unit`: how many of the value make one."""
    return None if isinstance(value, Unknown) else round(value / unit, 1)


def tidy(value: float) -> float | int:
    """2.0 as 2, 0.5 as it is."""
    return int(value) if value == int(value) else value
