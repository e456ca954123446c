"""Xid lines of the kernel log: what the NVIDIA driver reports of its cards.

    [  512.204417] NVRM: Xid (PCI:0000:3b:00): 79, pid=2104, name=python3, GPU has fallen off the bus.

Form: https://docs.nvidia.com/deploy/xid-errors/ ; the stamp is seconds after boot, from dmesg or the journal.
"""

from __future__ import annotations

import re

from fleettui.model.gpu import GpuReading, XidEvent
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.loops_gpu import XIDS_KEPT
from fleettui.probes.nvidia_problems import read_bus_id

_LINE = re.compile(
    r"\[ *([0-9]{1,10}\.[0-9]{1,6})\].{0,80}?"
    r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{5,16})(?: GPU-I:[0-9]{1,4})?\): ([0-9]{1,5})(?![0-9]),?(.{0,400})"
)
_TEXT_LIMIT = 160
_LINE_LIMIT = 1000
_MAX_LINES = 4096


def parse_xids(payload: bytes, exit_code: int = 0) -> Maybe[tuple[float, tuple[XidEvent, ...]]]:
    """Uptime in seconds and the events, oldest first; Unknown where the kernel log may not be read."""
    if exit_code:
        return Unknown("the kernel log may not be read without root")
    first, *lines = payload.decode("utf-8", "replace").split("\n", _MAX_LINES)
    uptime = _read_seconds(first.strip())
    if uptime is None:
        return Unknown("no uptime beside the kernel log")
    events = []
    for line in lines[-XIDS_KEPT:] if not lines or lines[-1] else lines[-XIDS_KEPT - 1 : -1]:
        found = _LINE.search(line[:_LINE_LIMIT])
        if found is not None:
            stamp, bus_id, code, text = found.groups()
            events.append(XidEvent(int(code), bus_id, float(stamp), clean_text(text, _TEXT_LIMIT)))
    return uptime, tuple(events)


def _read_seconds(text: str) -> float | None:
    whole, dot, rest = text.partition(".")
    digits = whole + rest
    return float(text) if dot and digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def card_of_xid(reading: GpuReading, event: XidEvent) -> int | None:
    """Number of the card an Xid names; the kernel log prints bus ids without the function."""
    if isinstance(event.bus_id, Unknown):
        return None
    named = read_bus_id(event.bus_id if "." in event.bus_id else f"{event.bus_id}.0")
    for card in reading.cards:
        if not isinstance(card.bus_id, Unknown) and read_bus_id(card.bus_id) == named is not None:
            return card.index
    return None
