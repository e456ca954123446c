"""What the GPU channel of a machine said: cards and their processes."""

from __future__ import annotations

from fleettui.fleet.source_record import SourceRecord
from fleettui.model.gpu import GpuReading, ProcessesReading
from fleettui.model.readings import MemoryReading
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown
from fleettui.probes.frames import Frame, Section
from fleettui.probes.nvidia import parse_gpus, query_fields, with_unified_memory
from fleettui.probes.processes import parse_apps, parse_owners, with_owners

BAD_ANSWERS_IN_A_ROW = 2
"""A single call without a row on a card that answered before is no news (exit 255 now and then, Windows)."""


class GpuRecord:
    """Latest cards and processes; last known cards stay when the tool fails."""

    def __init__(self) -> None:
        self.reading: GpuReading | None = None
        self.processes: ProcessesReading | None = None
        self.refused_fields: frozenset[str] = frozenset()
        self.sources = {"gpu": SourceRecord(), "processes": SourceRecord()}
        self._last_section: Section | None = None
        self._bad_answers = 0
        self._unified: tuple[object, object, object, GpuReading] | None = None

    @property
    def has_unified_cards(self) -> bool:
        return self.reading is not None and any(card.is_unified for card in self.reading.cards)

    @property
    def has_no_tool(self) -> bool:
        """No GPU tool was found on the machine."""
        problem = None if self.reading is None else self.reading.problem
        return problem is not None and problem.code == "no_tool"

    def ask(self, sections: tuple[str, ...], now: float) -> None:
        """These sections were asked."""
        for section in sections:
            if section.partition(":")[0] == "gpu":
                self.sources["gpu"].ask(now)
            elif section == "apps":
                self.sources["processes"].ask(now)

    def take(self, frame: Frame, now: float, *, is_gpu_expected: bool) -> bool:
        """Read a frame; False when the driver refused a field and the cards must be asked again at once."""
        section = frame.sections.get("gpu")
        if section is not None and not self._take_cards(section, now, is_gpu_expected=is_gpu_expected):
            return False
        if "apps" in frame.sections:
            self._take_processes(frame.sections["apps"], frame.sections.get("ps"), now)
        return True

    def with_memory(self, memory: MemoryReading | None) -> GpuReading | None:
        """The cards, unified ones with the machine's memory filled in."""
        if self.reading is None or not self.has_unified_cards:
            return self.reading
        known = self._unified
        if known is not None and known[:3] == (id(self.reading), id(memory), id(self.processes)):
            return known[3]
        filled = with_unified_memory(self.reading, memory, self.processes)
        self._unified = (id(self.reading), id(memory), id(self.processes), filled)
        return filled

    def end(self, text: str, now: float) -> None:
        """The loop itself ended while the connection stands."""
        for source in self.sources.values():
            source.fail(text, now)

    def _take_cards(self, section: Section, now: float, *, is_gpu_expected: bool) -> bool:
        source = self.sources["gpu"]
        if section == self._last_section and source.state == "ok":
            source.succeed(now)
            return True
        reading = parse_gpus(section.payload, section.exit_code, query_fields(self.refused_fields))
        new = set(reading.unsupported_fields) - self.refused_fields
        if new:
            self.refused_fields |= new
            return False
        self._last_section = section
        self._store(reading, now, is_gpu_expected=is_gpu_expected)
        return True

    def _store(self, reading: GpuReading, now: float, *, is_gpu_expected: bool) -> None:
        source, problem = self.sources["gpu"], reading.problem
        known = () if self.reading is None else self.reading.cards
        if problem is None:
            self._bad_answers = 0
            self.reading = reading if reading.cards or not known else replace(reading, cards=known)
            source.succeed(now)
            return
        self._bad_answers += 1
        if problem.code == "unreadable" and known and self._bad_answers < BAD_ANSWERS_IN_A_ROW:
            source.forget_question()
            return
        self.reading = replace(reading, cards=reading.cards or known)
        if problem.code == "asleep":
            source.succeed(now)
        elif problem.code in ("no_tool", "no_devices") and not is_gpu_expected and not known:
            source.drop(problem.text, now)
            self.sources["processes"].drop(problem.text, now)
        else:
            source.fail(problem.text, now)

    def _take_processes(self, apps: Section, ps: Section | None, now: float) -> None:
        source = self.sources["processes"]
        if source.state == "unsupported":
            return
        reading = parse_apps(apps.payload, apps.exit_code)
        if isinstance(reading, Unknown):
            source.fail(reading.reason, now)
            return
        self.processes = with_owners(reading, parse_owners(ps.payload)) if ps is not None else reading
        source.succeed(now)
