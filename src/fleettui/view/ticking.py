"""Which machines have text on the screen that moves with the clock alone."""

from __future__ import annotations

from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown

COUNTDOWN_S = 60.0
"""Nearer expiries are shown in seconds; farther ones move with the next snapshot."""


def is_ticking(snapshot: MachineSnapshot, now: float, interval_s: float) -> bool:
    """True when a row must be drawn again each second although nothing new came: a next try or an age is
    counted, or a copy is about to expire. A machine that answers in time is drawn with each answer."""
    seen = snapshot.last_seen
    if snapshot.link.state != "up" or seen is None or now - seen >= 1.5 * interval_s:
        return True
    return any(
        not copy.is_pinned
        and not isinstance(copy.expires_at, Unknown)
        and copy.expires_at - now < COUNTDOWN_S
        for copy in snapshot.loaded
    )
