"""How long to wait before the next connection attempt."""

from __future__ import annotations

import random

MAX_DELAY_S = 30.0
"""No delay is longer, jitter included; attempts never stop."""

EARLY_INTERVALS = (0.4, 0.65, 0.9)
"""First delays, in poll intervals: three tries within two intervals, so an outage shorter than 2 s is over
by then at the default interval. After them the delay doubles."""

JITTER = 0.2
"""Delays vary by this share both ways, so that machines behind one switch do not come back in step."""


def retry_delay_s(failures: int, interval_s: float) -> float:
    """Delay before attempt number `failures + 1` after that many failed ones (1 or more)."""
    if failures <= len(EARLY_INTERVALS):
        base = EARLY_INTERVALS[max(0, failures - 1)] * interval_s
    else:
        base = interval_s * 2.0 ** min(failures - len(EARLY_INTERVALS), 8)
    return min(MAX_DELAY_S / (1.0 + JITTER), base) * random.uniform(1.0 - JITTER, 1.0 + JITTER)
