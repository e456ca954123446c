"""What the fact channel of a machine said: processor, memory, disks, network, system."""

from __future__ import annotations

from fleettui.fleet.source_record import SourceRecord
from fleettui.model.readings import CpuReading, DisksReading, MemoryReading, NetReading, SystemReading
from fleettui.model.unknown import Unknown
from fleettui.probes.cpu import CpuTimes, parse_cpu
from fleettui.probes.disks import parse_disks
from fleettui.probes.frames import Frame, Section
from fleettui.probes.memory import parse_memory
from fleettui.probes.net import NetCounters, parse_net
from fleettui.probes.system import parse_system

NOTHING = Section(0, b"")
SOURCE_OF_SECTION = {"stat": "cpu", "mem": "memory", "net": "net", "disks": "disks", "uname": "system"}


class FactsRecord:
    """Latest readings of the fact channel and the counters that rates are made of."""

    def __init__(self) -> None:
        self.cpu: CpuReading | None = None
        self.memory: MemoryReading | None = None
        self.disks: DisksReading | None = None
        self.net: NetReading | None = None
        self.system: SystemReading | None = None
        self.sources = {name: SourceRecord() for name in ("cpu", "memory", "disks", "net", "system")}
        self._cpu_times: CpuTimes | None = None
        self._net_counters: NetCounters | None = None
        self._samples = 0

    @property
    def has_rates(self) -> bool:
        """Two samples were taken on this connection."""
        return self._samples >= 2

    def begin_connection(self) -> None:
        """Rates over an outage would be averages of it: start anew."""
        self._cpu_times = None
        self._net_counters = None
        self._samples = 0

    def ask(self, sections: tuple[str, ...], now: float) -> None:
        """These sections were asked."""
        for section in sections:
            source = SOURCE_OF_SECTION.get(section)
            if source is not None:
                self.sources[source].ask(now)

    def take(self, frame: Frame, now: float) -> None:
        """Read every section of a frame."""
        sections = frame.sections
        if "stat" in sections:
            self._samples += 1
            self._take_cpu(sections, now)
        if "mem" in sections:
            self._take_memory(sections["mem"], now)
        if "net" in sections:
            at_s = now if self.cpu is None or isinstance(self.cpu.uptime_s, Unknown) else self.cpu.uptime_s
            self.net, self._net_counters = parse_net(sections["net"].payload, at_s, self._net_counters)
            self.sources["net"].succeed(now)
        if "disks" in sections:
            self._take_disks(sections["disks"], now)
        if "uname" in sections:
            self.system = parse_system(
                sections["uname"].payload,
                sections.get("os", NOTHING).payload,
                sections.get("cpu", NOTHING).payload,
            )
            self.sources["system"].succeed(now)

    def hang_disks(self, now: float) -> None:
        """df did not come back; it is not asked again on this connection."""
        self.sources["disks"].fail("df does not answer: a file system hangs; see mounts of the machine", now)

    def end(self, text: str, now: float) -> None:
        """The loop itself ended while the connection stands."""
        for source in self.sources.values():
            source.fail(text, now)

    def _take_cpu(self, sections: dict[str, Section], now: float) -> None:
        reading, self._cpu_times = parse_cpu(
            sections["stat"].payload,
            sections.get("load", NOTHING).payload,
            sections.get("uptime", NOTHING).payload,
            self._cpu_times,
        )
        self.cpu = reading
        if self._cpu_times is None:
            self.sources["cpu"].fail("/proc/stat cannot be read", now)
        else:
            self.sources["cpu"].succeed(now)

    def _take_memory(self, section: Section, now: float) -> None:
        reading = parse_memory(section.payload)
        if isinstance(reading.total_kib, Unknown):
            self.sources["memory"].fail("/proc/meminfo cannot be read", now)
            return
        self.memory = reading
        self.sources["memory"].succeed(now)

    def _take_disks(self, section: Section, now: float) -> None:
        reading = parse_disks(section.payload, section.exit_code)
        if isinstance(reading, Unknown):
            self.sources["disks"].fail(f"df: {reading.reason}", now)
            return
        self.disks = reading
        self.sources["disks"].succeed(now)
