"""What the fact channel of a machine said: processor, memory, disks, network, system."""

from __future__ import annotations

from fleettui.fleet.source_record import SourceRecord
from fleettui.model.readings import CpuReading, DisksReading, MemoryReading, NetReading, SystemReading
from fleettui.probes import cpu as cpu_probe
from fleettui.probes import disks as disks_probe
from fleettui.probes import memory as memory_probe
from fleettui.probes import net as net_probe
from fleettui.probes import system as system_probe
from fleettui.probes.frames import Frame, Section

TIME_LIMIT_CODES = (124, 137, 143)


class FactsRecord:
    """Latest readings of the fact channel and the counters that rates are made of."""

    def __init__(self) -> None:
        self.cpu: CpuReading | None = None
        self.memory: MemoryReading | None = None
        self.disks: DisksReading | None = None
        self.net: NetReading | None = None
        self.system: SystemReading | None = None
        self.has_rates = False
        """Two samples were taken."""
        self.sources = {name: SourceRecord() for name in ("cpu", "memory", "disks", "net", "system")}
        self._cpu_times: cpu_probe.CpuTimes | None = None
        self._net_counters: net_probe.NetCounters | None = None
