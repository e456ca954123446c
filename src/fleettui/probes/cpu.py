"""Processor load: two samples of /proc/stat, /proc/loadavg, /proc/uptime (proc(5))."""

from __future__ import annotations

from fleettui.model.readings import CpuReading
from fleettui.model.unknown import Maybe, Unknown

CpuTimes = tuple[int, ...]
"""user nice system idle iowait irq softirq steal, in ticks. guest and guest_nice are left out: the kernel
already counts them in user and nice."""

_FIELDS = 8
_FIRST_SAMPLE = Unknown("needs two samples")
_NO_TIME = Unknown("no time passed between the samples")
_NO_STAT = Unknown("no /proc/stat")
_NO_LOAD = Unknown("no /proc/loadavg")
_NO_UPTIME = Unknown("no /proc/uptime")


def parse_cpu_times(payload: bytes) -> CpuTimes | None:
    """The counters of the first line of /proc/stat; None when it is no such line."""
    words = payload.split(b"\n", 1)[0].split(None, _FIELDS + 1)
    if len(words) < 5 or words[0] != b"cpu":
        return None
    counters = words[1 : _FIELDS + 1]
    digits = b"".join(counters)
    if not digits.isdigit() or len(digits) > _FIELDS * 20:
        return None
    return tuple(map(int, counters)) + (0,) * (_FIELDS - len(counters))


def busy_percent(previous: CpuTimes | None, current: CpuTimes | None) -> Maybe[float]:
    """Share of time not idle between two samples, 0-100; a counter that went back counts as no change."""
    if current is None:
        return _NO_STAT
    if previous is None:
        return _FIRST_SAMPLE
    steps = [after - before if after > before else 0 for before, after in zip(previous, current, strict=True)]
    whole = sum(steps)
    if whole <= 0:
        return _NO_TIME
    return round(100.0 * (whole - steps[3] - steps[4]) / whole, 1)


def parse_load(payload: bytes) -> Maybe[tuple[float, float, float]]:
    """The three averages of /proc/loadavg."""
    words = payload.split(None, 3)
    if len(words) < 3:
        return _NO_LOAD
    one, five, fifteen = _number(words[0]), _number(words[1]), _number(words[2])
    if one is None or five is None or fifteen is None:
        return _NO_LOAD
    return one, five, fifteen


def parse_uptime(payload: bytes) -> Maybe[float]:
    """Seconds since boot, first number of /proc/uptime."""
    words = payload.split(None, 1)
    value = _number(words[0]) if words else None
    return _NO_UPTIME if value is None else value


def _number(word: bytes) -> float | None:
    """`34.12` of at most 15 characters."""
    return float(word) if len(word) <= 15 and word.replace(b".", b"", 1).isdigit() else None


def parse_cpu(
    stat: bytes, load: bytes, uptime: bytes, previous: CpuTimes | None
) -> tuple[CpuReading, CpuTimes | None]:
    """The reading of sections `stat`, `load`, `uptime`, and the sample to hand in next time."""
    times = parse_cpu_times(stat)
    reading = CpuReading(busy_percent(previous, times), parse_load(load), parse_uptime(uptime))
    return reading, times
