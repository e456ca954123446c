"""What a machine says of itself once or rarely: system, processor, containers, disks, clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fleettui.model.readings import SystemReading
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown
from fleettui.probes.cgroups import parse_core_limit
from fleettui.probes.clock import find_skew_s
from fleettui.probes.engines.ollama_environment import parse_ollama_settings
from fleettui.probes.frames import Section
from fleettui.probes.lsblk import parse_blocks
from fleettui.probes.system import parse_runtime, parse_system, read_system_name

_NOTHING = Section(0, b"")
_SLOW = frozenset(("uname", "blocks", "runtime", "clock", "cgroup", "ollama"))
_TIME_LIMIT_CODES = (124, 137, 143)


class SystemRecord:
    """The latest SystemReading, put together of sections that come at different times."""

    def __init__(self) -> None:
        self.reading: SystemReading | None = None
        self.name = ""
        """`Linux`, `Darwin`, …; empty while not known."""
        self._own_core_limit: float | None = None
        """Of the cpuset; the quota comes with another section."""
        self._clock_asked_at: float | None = None

    @property
    def is_foreign(self) -> bool:
        """A system that has no /proc as Linux has it."""
        return self.name not in ("", "Linux")

    def ask(self, sections: Collection[str], now: float) -> None:
        """These sections were asked."""
        if "clock" in sections:
            self._clock_asked_at = now

    def take(self, sections: Mapping[str, Section], now: float) -> None:
        """Read what is of the system."""
        if _SLOW.isdisjoint(sections):
            return
        if "uname" in sections:
            self._take_system(sections)
        reading = self.reading or SystemReading()
        made = reading
        if "blocks" in sections:
            blocks = sections["blocks"]
            made = replace(made, block_devices=parse_blocks(blocks.payload, blocks.exit_code))
        if "runtime" in sections:
            runtime = sections["runtime"]
            made = replace(made, container_runtime=parse_runtime(runtime.payload, runtime.exit_code))
        if "clock" in sections and self._clock_asked_at is not None:
            skew_s = find_skew_s(sections["clock"].payload, self._clock_asked_at, now)
            made = replace(made, clock_skew_s=skew_s)
        if "cgroup" in sections:
            made = replace(made, core_limit=self._core_limit(sections["cgroup"].payload))
        if "ollama" in sections:
            told = sections["ollama"]
            made = replace(made, ollama=parse_ollama_settings(told.payload, told.exit_code))
        if made != reading:
            self.reading = made

    def hang(self, asked: Collection[str]) -> None:
        """A tool did not come back."""
        if "blocks" in asked:
            text = "lsblk does not answer"
            self.reading = replace(self.reading or SystemReading(), block_devices=Unknown(text))

    def _take_system(self, sections: Mapping[str, Section]) -> None:
        names = ("uname", "os", "cpu", "host")
        cpu = sections.get("cpu", _NOTHING)
        made = parse_system(
            *(sections.get(name, _NOTHING).payload for name in names),
            is_cpuinfo_cut=cpu.exit_code in _TIME_LIMIT_CODES,
        )
        self.name = read_system_name(sections["uname"].payload)
        self._own_core_limit = made.core_limit
        known = self.reading
        if known is not None:
            made = replace(
                made,
                container_runtime=known.container_runtime,
                clock_skew_s=known.clock_skew_s,
                block_devices=known.block_devices,
                core_limit=known.core_limit,
                ollama=known.ollama,
            )
        self.reading = made if made != known else known

    def _core_limit(self, cgroup: bytes) -> float | None:
        """The smaller of quota and cpuset; None where neither is below the machine's own number."""
        limits = [limit for limit in (parse_core_limit(cgroup), self._own_core_limit) if limit is not None]
        limit = min(limits, default=None)
        cores = self.reading.cores if self.reading is not None else Unknown()
        return None if limit is None or (not isinstance(cores, Unknown) and limit >= cores) else limit
