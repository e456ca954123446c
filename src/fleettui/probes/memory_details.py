"""What changes the meaning of free memory: the ZFS cache, tasks that wait for memory, swap in memory."""

from __future__ import annotations

from fleettui.model.readings import MemoryDetails
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.cgroups import parse_limit_cache_kib
from fleettui.probes.numbers import read_float

_NO_ARC = Unknown("no ZFS")
_NO_PSI = Unknown("no /proc/pressure")


def parse_memory_details(arc: bytes, psi: bytes, swaps: bytes, cgroup: bytes) -> MemoryDetails:
    """The reading of sections `arc`, `psi`, `swaps`, `cgroup`; each may be empty."""
    size, shrinkable = map(_kib, parse_arc_bytes(arc))
    some, full = parse_pressure(psi)
    return MemoryDetails(size, shrinkable, parse_limit_cache_kib(cgroup), some, full, parse_zram_kib(swaps))


def parse_arc_bytes(payload: bytes) -> tuple[Maybe[int], Maybe[int]]:
    """The ZFS cache and how far it can shrink: size - c_min. Source: arcstats, `name type data`."""
    found: dict[bytes, int] = {}
    for line in payload.split(b"\n"):
        words = line.split()
        if len(words) == 3 and words[0] in (b"size", b"c_min") and words[2].isdigit() and len(words[2]) < 20:
            found[words[0]] = int(words[2])
    size, least = found.get(b"size"), found.get(b"c_min")
    if size is None:
        return _NO_ARC, _NO_ARC
    return size, Unknown("no c_min in arcstats") if least is None else max(0, size - least)


def _kib(count: Maybe[int]) -> Maybe[int]:
    return count if isinstance(count, Unknown) else count // 1024


def parse_pressure(payload: bytes) -> tuple[Maybe[float], Maybe[float]]:
    """avg10 of the lines `some` and `full`. Source: Documentation/accounting/psi.rst, Linux 4.20."""
    found: dict[str, Maybe[float]] = {}
    for line in payload.decode("ascii", "replace").split("\n"):
        words = line.split()
        if len(words) > 1 and words[1].startswith("avg10="):
            value = read_float(words[1][6:])
            is_percent = isinstance(value, float) and value <= 100
            found[words[0]] = value if is_percent else Unknown("unreadable pressure")
    return found.get("some", _NO_PSI), found.get("full", _NO_PSI)


def parse_zram_kib(payload: bytes) -> Maybe[int]:
    """KiB of swap on zram devices. Source: /proc/swaps, `Filename Type Size Used Priority`, KiB."""
    if not payload:
        return Unknown("no /proc/swaps")
    total = 0
    for line in payload.split(b"\n"):
        words = line.split()
        if len(words) >= 5 and b"/zram" in words[0] and words[2].isdigit() and len(words[2]) < 16:
            total += int(words[2])
    return total
