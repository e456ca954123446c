"""Main memory: /proc/meminfo. Used is total - available; no formula of our own stands in for MemAvailable."""

from __future__ import annotations

from fleettui.model.readings import MemoryDetails, MemoryLimit, MemoryReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.cgroups import parse_memory_limits

_NO_LINE = Unknown("not in /proc/meminfo")
_NO_TOTAL = Unknown("MemTotal is 0")
_KEYS = [b"MemTotal:", b"MemFree:", b"MemAvailable:", b"SwapTotal:", b"SwapFree:"]
_MAX_DIGITS = 15
_LIMIT = b"Limit:"


def parse_memory(payload: bytes, details: MemoryDetails | None = None) -> MemoryReading:
    """The reading of section `mem`; a missing line (MemAvailable before Linux 3.14) is Unknown.

    The loop adds a line for each cgroup limit; one that the machine's size already sets is none. lxcfs sets
    MemAvailable to MemFree: the reading then says that more may be available.
    """
    limits: tuple[MemoryLimit, ...] = ()
    at = payload.find(_LIMIT)
    total, free, available, swap_total, swap_free = _read_kib(payload if at < 0 else payload[:at])
    if at >= 0:
        limits = parse_memory_limits(payload[at:], None if isinstance(total, Unknown) else total)
    return MemoryReading(
        total or _NO_TOTAL,
        available,
        swap_total,
        swap_free,
        available == free and not isinstance(available, Unknown),
        limits,
        details,
    )


def _read_kib(meminfo: bytes) -> list[Maybe[int]]:
    """The values of _KEYS. The loop sends just these lines, in this order."""
    words = meminfo.split()
    if words[::3] == _KEYS:
        values = words[1::3]
        digits = b"".join(values)
        if len(values) == len(_KEYS) and digits.isdigit() and max(map(len, values)) <= _MAX_DIGITS:
            return [*map(int, values)]
    found = _find_lines(meminfo)
    return [_kib(found.get(key)) for key in _KEYS]


def _find_lines(payload: bytes) -> dict[bytes, bytes]:
    """First value of each of our keys, where other lines stand between them."""
    found: dict[bytes, bytes] = {}
    for line in payload.split(b"\n"):
        words = line.split(None, 2)
        if len(words) > 1 and words[0] in _KEYS:
            found.setdefault(words[0], words[1])
    return found


def _kib(word: bytes | None) -> Maybe[int]:
    return int(word) if word is not None and word.isdigit() and len(word) <= _MAX_DIGITS else _NO_LINE
