"""What the fact channel of a machine said: processor, memory, disks, network, system."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fleettui.fleet.needs import FAST_FACTS
from fleettui.fleet.source_record import SourceRecord
from fleettui.fleet.system_record import SystemRecord
from fleettui.model.readings import (
    CpuReading,
    DisksReading,
    MemoryDetails,
    MemoryReading,
    NetReading,
    SystemReading,
)
from fleettui.model.sockets import ServerProcess, SocketsReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.cpu import CpuTimes, parse_cpu
from fleettui.probes.disks import parse_disks
from fleettui.probes.frames import Frame, Section
from fleettui.probes.memory import parse_memory
from fleettui.probes.memory_details import parse_memory_details
from fleettui.probes.net import NOTHING_UNCOUNTED, NetCounters, parse_net, parse_uncounted
from fleettui.probes.sockets import parse_servers, parse_sockets, with_ours

NOTHING = Section(0, b"")
_FAST = frozenset(FAST_FACTS)
SOURCE_OF_SECTION = {
    "stat": "cpu", "mem": "memory", "net": "net", "disks": "disks", "uname": "system", "sockets": "sockets",
}  # fmt: skip
_TITLES = {"cpu": "CPU", "memory": "memory", "net": "network rates"}


class FactsRecord:
    """Latest readings of the fact channel and the counters that rates are made of."""

    def __init__(self) -> None:
        self.cpu: CpuReading | None = None
        self.memory: MemoryReading | None = None
        self.disks: DisksReading | None = None
        self.net: NetReading | None = None
        self.sockets: SocketsReading | None = None
        self.servers: tuple[ServerProcess, ...] = ()
        """Processes that may be servers of models, when they were looked for last."""
        self.count_own: Callable[[int], int] | None = None
        """How many connections to a port this fleettui holds open through SSH; None: not connected."""
        names = ("cpu", "memory", "disks", "net", "sockets", "system")
        self.sources = {name: SourceRecord() for name in names}
        self._system = SystemRecord()
        self._details: MemoryDetails | None = None
        self._uncounted = NOTHING_UNCOUNTED
        self._cpu_times: CpuTimes | None = None
        self._net_counters: NetCounters | None = None
        self._samples = 0
        self._last_sockets: tuple[Section, Maybe[SocketsReading]] = (NOTHING, parse_sockets(b""))
        """The last list of sockets and what stands in it."""

    @property
    def system(self) -> SystemReading | None:
        """What changes rarely; the same object while it did not."""
        return self._system.reading

    @property
    def has_rates(self) -> bool:
        """Two samples were taken on this connection."""
        return self._samples >= 2

    def begin_connection(self) -> None:
        """Rates over an outage would be averages of it: start anew."""
        self._cpu_times = None
        self._net_counters = None
        self._samples = 0
        for source in self.sources.values():
            source.forget_end()

    def ask(self, sections: tuple[str, ...], now: float) -> None:
        """These sections were asked."""
        for section in sections:
            source = SOURCE_OF_SECTION.get(section)
            if source is not None:
                self.sources[source].ask(now)
        if sections is not FAST_FACTS:
            self._system.ask(sections, now)

    def take(self, frame: Frame, now: float) -> None:
        """Read every section of a frame."""
        sections = frame.sections
        if not _FAST.issuperset(sections):
            self._take_slow(sections, now)
        if "stat" in sections:
            self._samples += 1
            self._take_cpu(sections, now)
        if "mem" in sections:
            self._take_memory(sections["mem"], now)
        if "net" in sections:
            self._take_net(sections["net"], now)

    def hang(self, asked: Collection[str], now: float) -> None:
        """The tool of a section did not come back; it is not asked again on this connection."""
        if "disks" in asked:
            self.sources["disks"].fail(
                "df does not answer: a file system hangs; see mounts of the machine", now
            )
        self._system.hang(asked)

    def end(self, text: str, now: float) -> None:
        """The loop itself ended while the connection stands."""
        for source in self.sources.values():
            source.end(text, now)

    def _take_slow(self, sections: dict[str, Section], now: float) -> None:
        """What is not asked on each tick, before what it explains."""
        if "uname" in sections:
            self.sources["system"].succeed(now)
        self._system.take(sections, now)
        if "links" in sections:
            self._uncounted = parse_uncounted(sections["links"].payload)
        if "cgroup" in sections:
            names = ("arc", "psi", "swaps", "cgroup")
            details = parse_memory_details(*(sections.get(name, NOTHING).payload for name in names))
            self._details = self._details if details == self._details else details
        if "disks" in sections:
            self._take_disks(sections["disks"], now)
        if "sockets" in sections:
            self._take_sockets(sections["sockets"], now)
        if "servers" in sections:
            self.servers = parse_servers(sections["servers"].payload)

    def _take_cpu(self, sections: dict[str, Section], now: float) -> None:
        reading, self._cpu_times = parse_cpu(
            sections["stat"].payload,
            sections.get("load", NOTHING).payload,
            sections.get("uptime", NOTHING).payload,
            self._cpu_times,
        )
        if self._cpu_times is None:
            self._fail("cpu", "/proc/stat cannot be read", now)
            return
        self.cpu = reading
        self.sources["cpu"].succeed(now)

    def _take_memory(self, section: Section, now: float) -> None:
        reading = parse_memory(section.payload, self._details)
        if isinstance(reading.total_kib, Unknown):
            self._fail("memory", "/proc/meminfo cannot be read", now)
            return
        self.memory = reading
        self.sources["memory"].succeed(now)

    def _take_net(self, section: Section, now: float) -> None:
        if section.exit_code and not section.payload:
            self._net_counters = None
            self._fail("net", "/proc/net/dev cannot be read", now)
            return
        at_s = now if self.cpu is None or isinstance(self.cpu.uptime_s, Unknown) else self.cpu.uptime_s
        self.net, self._net_counters = parse_net(section.payload, at_s, self._net_counters, self._uncounted)
        self.sources["net"].succeed(now)

    def _take_disks(self, section: Section, now: float) -> None:
        reading = parse_disks(section.payload, section.exit_code)
        if isinstance(reading, Unknown):
            self.sources["disks"].fail(f"df: {reading.reason}", now)
            return
        self.disks = reading
        self.sources["disks"].succeed(now)

    def _take_sockets(self, section: Section, now: float) -> None:
        if section != self._last_sockets[0]:
            self._last_sockets = section, parse_sockets(section.payload)
        reading = self._last_sockets[1]
        if isinstance(reading, Unknown):
            self.sockets = None
            self.sources["sockets"].drop("no list of TCP sockets (/proc/net/tcp)", now)
            return
        if self.count_own is not None:
            reading = with_ours(reading, self.count_own)
        self.sockets = self.sockets if reading == self.sockets else reading
        self.sources["sockets"].succeed(now)

    def _fail(self, source: str, error: str, now: float) -> None:
        """A file of /proc is missing: an error on Linux, and what other systems do not have."""
        if self._system.is_foreign:
            text = f"{_TITLES[source]} not available on {self._system.name}"
            self.sources[source].drop(text, now)
        else:
            self.sources[source].fail(error, now)
