"""Processor load: two samples of /proc/stat, /proc/loadavg, /proc/uptime (proc(5))."""

from __future__ import annotations

from fleettui.model.readings import CpuReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.numbers import is_digits, read_float

CpuTimes = tuple[int, ...]
"""user nice system idle iowait irq softirq steal, in ticks. guest and guest_nice are left out: the kernel
already counts them in user and nice."""

_FIELDS = 8
_FIRST_SAMPLE = Unknown("needs two samples")
_NO_TIME = Unknown("no time passed between the samples")


def parse_cpu_times(payload: bytes) -> CpuTimes | None:
    """The counters of the first line of /proc/stat; None when it is no such line."""
    words = payload.split(b"\n", 1)[0].split()
    if len(words) < 5 or words[0] != b"cpu":
        return None
    counters = words[1 : _FIELDS + 1]
    if not all(word.isdigit() and len(word) < 20 for word in counters):
        return None
    return tuple(map(int, counters)) + (0,) * (_FIELDS - len(counters))


def busy_percent(previous: CpuTimes | None, current: CpuTimes | None) -> Maybe[float]:
    """Share of time not idle between two samples, 0-100; a counter that went back counts as no change."""
    if current is None:
        return Unknown("no /proc/stat")
    if previous is None:
        return _FIRST_SAMPLE
    steps = [max(0, after - before) for before, after in zip(previous, current, strict=True)]
    whole = sum(steps)
    if whole <= 0:
        return _NO_TIME
    return round(100.0 * (whole - steps[3] - steps[4]) / whole, 1)


def parse_load(payload: bytes) -> Maybe[tuple[float, float, float]]:
    """The three averages of /proc/loadavg."""
    words = payload.decode("ascii", "replace").split()
    values = [read_float(word) for word in words[:3]]
    numbers = [value for value in values if not isinstance(value, Unknown)]
    if len(numbers) != 3:
        return Unknown("no /proc/loadavg")
    return numbers[0], numbers[1], numbers[2]


def parse_uptime(payload: bytes) -> Maybe[float]:
    """Seconds since boot, first number of /proc/uptime."""
    word = payload.decode("ascii", "replace").partition(" ")[0].strip()
    whole, dot, rest = word.partition(".")
    if not is_digits(whole) or not (is_digits(rest) if dot else True):
        return Unknown("no /proc/uptime")
    return float(word)


def parse_cpu(
    stat: bytes, load: bytes, uptime: bytes, previous: CpuTimes | None
) -> tuple[CpuReading, CpuTimes | None]:
    """The reading of sections `stat`, `load`, `uptime`, and the sample to hand in next time."""
    times = parse_cpu_times(stat)
    reading = CpuReading(busy_percent(previous, times), parse_load(load), parse_uptime(uptime))
    return reading, times
