"""Network rates: two samples of /proc/net/dev (proc(5))."""

from __future__ import annotations

from functools import lru_cache

from fleettui.model.readings import NetInterface, NetReading
from fleettui.model.record import dataclass, field
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_word

_FIRST_SAMPLE = Unknown("needs two samples")
_WENT_BACK = Unknown("counter went back")
_NO_TIME = Unknown("no time passed between the samples")
NOTHING_UNCOUNTED: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NetCounters:
    """One sample of all interfaces."""

    at_s: float
    """Any clock that runs evenly; best the machine's own uptime of the same frame."""
    counters: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes received and sent by interface name."""


def parse_net(
    payload: bytes, at_s: float, previous: NetCounters | None, uncounted: frozenset[str] = NOTHING_UNCOUNTED
) -> tuple[NetReading, NetCounters]:
    """Rates since `previous`, loopback left out, and the sample to hand in next time.

    A counter that went back (reset, 32-bit wrap) leaves the interface without rates for one sample.
    `uncounted` names interfaces that enter no sum. The last colon ends a name: it may hold one (`eth0:1`),
    and old kernels put no blank behind it.
    """
    counters: dict[str, tuple[int, int]] = {}
    interfaces: list[NetInterface] = []
    elapsed_s = 0.0 if previous is None else at_s - previous.at_s
    before = {} if previous is None else previous.counters
    for line in payload.split(b"\n"):
        name, colon, rest = line.rpartition(b":")
        words = rest.split(None, 9)
        if not colon or len(words) < 9 or not _is_counter(words[0]) or not _is_counter(words[8]):
            continue
        label = _label(name)
        if label == "lo" or not label:
            continue
        received, sent = now = int(words[0]), int(words[8])
        last = before.get(label)
        counters[label] = now
        rx: Maybe[float]
        tx: Maybe[float]
        if last is None:
            rx = tx = _FIRST_SAMPLE
        elif elapsed_s <= 0:
            rx = tx = _NO_TIME
        elif received < last[0] or sent < last[1]:
            rx = tx = _WENT_BACK
        else:
            rx, tx = (received - last[0]) / elapsed_s, (sent - last[1]) / elapsed_s
        interfaces.append(NetInterface(label, rx, tx, label not in uncounted))
    return NetReading(tuple(interfaces)), NetCounters(at_s, counters)


def parse_uncounted(payload: bytes) -> frozenset[str]:
    """Interfaces whose bytes pass another one. Lines `<kind> <name>` of section `links`.

    Where there are cards (`device`), only they count: bridges, bonds, VLANs and tunnels carry the same bytes
    again. A container has none; there all but bridges, bonds and tunnels count.
    """
    kinds: dict[str, str] = {}
    for line in payload.decode("utf-8", "replace").split("\n"):
        kind, blank, name = line.partition(" ")
        if blank and name:
            kinds[clean_word(name)] = kind
    counted = {"device"} if "device" in kinds.values() else {"virtual"}
    return frozenset(name for name, kind in kinds.items() if kind not in counted)


@lru_cache(maxsize=1024)
def _label(name: bytes) -> str:
    return clean_word(name.strip().decode("utf-8", "replace"))


def _is_counter(word: bytes) -> bool:
    return word.isdigit() and len(word) <= 20
