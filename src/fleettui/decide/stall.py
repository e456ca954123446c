"""Engines that work on nothing though requests are queued, from one reading to the next.

SGLang was seen with 0 running and a long queue for good (sgl-project/sglang #24140); between two requests
any engine may show it for a moment.
"""

from __future__ import annotations

from fleettui.model.readings import EngineReading
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown

STALL_S = 20.0
"""Several polls; requests are not queued that long by an engine that has nothing else to do."""


def note_stall(reading: EngineReading, before: EngineReading | None, now: float) -> EngineReading:
    """The reading with the moment since which its queue stands still; the very same one where nothing of it
    changed. `before`: the reading until now; `now`: epoch seconds of the answer."""
    since = None
    if is_stalled(reading):
        since = before.stalled_since if before is not None and before.stalled_since is not None else now
    return reading if since == reading.stalled_since else replace(reading, stalled_since=since)


def is_stalled(reading: EngineReading) -> bool:
    """Nothing in work, and something queued."""
    waiting = reading.waiting
    return reading.is_answering and reading.running == 0 and not isinstance(waiting, Unknown) and waiting > 0


def stall_text(reading: EngineReading, now: float) -> str:
    """`0 running with 40 queued for 32 s: stuck?`; empty where it is not so, or only just."""
    if reading.stalled_since is None or not is_stalled(reading):
        return ""
    stalled_s = now - reading.stalled_since
    return (
        f"0 running with {reading.waiting} queued for {stalled_s:.0f} s: stuck?"
        if stalled_s >= STALL_S
        else ""
    )
