"""Main memory: /proc/meminfo. Used is total - available; no formula of our own stands in for MemAvailable."""

from __future__ import annotations

from fleettui.model.readings import MemoryReading
from fleettui.model.unknown import Maybe, Unknown

_NO_LINE = Unknown("not in /proc/meminfo")
_KEYS = (b"MemTotal", b"MemAvailable", b"SwapTotal", b"SwapFree")


def parse_memory(payload: bytes) -> MemoryReading:
    """The reading of section `mem`; a missing line (MemAvailable before Linux 3.14) is Unknown."""
    found: dict[bytes, int] = {}
    for line in payload.split(b"\n"):
        key, _, rest = line.partition(b":")
        if key in _KEYS:
            words = rest.split()
            if words and words[0].isdigit() and len(words[0]) < 16:
                found[key] = int(words[0])
    total = found.get(b"MemTotal")
    return MemoryReading(
        total or (_NO_LINE if total is None else Unknown("MemTotal is 0")),
        _known(found.get(b"MemAvailable")),
        _known(found.get(b"SwapTotal")),
        _known(found.get(b"SwapFree")),
    )


def _known(value: int | None) -> Maybe[int]:
    return _NO_LINE if value is None else value
