"""Network rates: two samples of /proc/net/dev (proc(5))."""

from __future__ import annotations

from fleettui.model.readings import NetInterface, NetReading
from fleettui.model.record import dataclass, field
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_word

_FIRST_SAMPLE = Unknown("needs two samples")
_WENT_BACK = Unknown("counter went back")
_NO_TIME = Unknown("no time passed between the samples")


@dataclass(frozen=True, slots=True)
class NetCounters:
    """One sample of all interfaces."""

    at_s: float
    """Any clock that runs evenly; best the machine's own uptime of the same frame."""
    counters: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes received and sent by interface name."""


def parse_net(payload: bytes, at_s: float, previous: NetCounters | None) -> tuple[NetReading, NetCounters]:
    """Rates since `previous`, loopback left out, and the sample to hand in next time."""
    counters: dict[str, tuple[int, int]] = {}
    interfaces: list[NetInterface] = []
    elapsed_s = 0.0 if previous is None else at_s - previous.at_s
    before = {} if previous is None else previous.counters
    for line in payload.split(b"\n"):
        name, colon, rest = line.partition(b":")
        words = rest.split()
        if not colon or len(words) < 9 or not _is_counter(words[0]) or not _is_counter(words[8]):
            continue
        label = clean_word(name.strip().decode("utf-8", "replace"))
        if label == "lo" or not label:
            continue
        now = (int(words[0]), int(words[8]))
        last = before.get(label)
        counters[label] = now
        if last is None:
            interfaces.append(NetInterface(label, _FIRST_SAMPLE, _FIRST_SAMPLE))
        else:
            rates = (_rate(old, new, elapsed_s) for old, new in zip(last, now, strict=True))
            interfaces.append(NetInterface(label, *rates))
    return NetReading(tuple(interfaces)), NetCounters(at_s, counters)


def _is_counter(word: bytes) -> bool:
    return word.isdigit() and len(word) <= 20


def _rate(old: int, new: int, elapsed_s: float) -> Maybe[float]:
    if elapsed_s <= 0:
        return _NO_TIME
    return _WENT_BACK if new < old else (new - old) / elapsed_s
