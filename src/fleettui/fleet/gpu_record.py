"""What the GPU channel of a machine said: cards and their processes."""

from __future__ import annotations

from operator import is_
from typing import NamedTuple

from fleettui.fleet.gpu_condition_record import GpuConditionRecord
from fleettui.fleet.source_record import SourceRecord
from fleettui.model.gpu import GpuCard, GpuFault, GpuReading, ProcessesReading, count_busy
from fleettui.model.readings import MemoryReading
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown
from fleettui.probes.frames import Frame, Section
from fleettui.probes.loops_gpu import CONDITION_FIELDS, FAST_FIELDS
from fleettui.probes.nvidia import parse_gpus, same_bus_id, with_unified_memory
from fleettui.probes.nvidia_problems import ASLEEP_EXIT
from fleettui.probes.processes import NOT_AVAILABLE_EXIT, parse_apps, parse_owners, with_owners

BAD_ANSWERS_IN_A_ROW = 2
"""A single call without a row on a card that answered before is no news (exit 255 now and then, Windows)."""


class AskedFields(NamedTuple):
    """Query fields of a question: its answer has these columns, whatever was learnt since."""

    cards: tuple[str, ...] = FAST_FIELDS
    condition: tuple[str, ...] = CONDITION_FIELDS


class GpuRecord:
    """Latest cards and processes; last known cards stay when the tool fails."""

    def __init__(self) -> None:
        self.reading: GpuReading | None = None
        self.processes: ProcessesReading | None = None
        self.refused_fields: frozenset[str] = frozenset()
        """Query fields that the present driver refused."""
        self.asked = AskedFields()
        self.condition = GpuConditionRecord()
        self.sources = {"gpu": SourceRecord(), "processes": SourceRecord()}
        self._plain: GpuReading | None = None
        """The last answer, before the slow sections are joined to it."""
        self._driver: str | None = None
        self._last_section: Section | None = None
        self._bad_answers = 0
        self._unified: tuple[tuple[object, ...], GpuReading] | None = None

    @property
    def has_cards(self) -> bool:
        """Cards were seen, and the last answer had some."""
        return self._plain is not None and bool(self._plain.cards) and not self._plain.is_stale

    @property
    def has_unified_cards(self) -> bool:
        if self.reading is not None:
            for card in self.reading.cards:
                if card.is_unified:
                    return True
        return False

    @property
    def has_no_tool(self) -> bool:
        """No GPU tool was found on the machine."""
        problem = None if self.reading is None else self.reading.problem
        return problem is not None and problem.code == "no_tool"

    def ask(self, sections: tuple[str, ...], now: float) -> None:
        """These sections were asked."""
        for section in sections:
            name, _, fields = section.partition(":")
            if name == "gpu":
                if fields or self.asked.cards is not FAST_FIELDS:
                    cards = tuple(fields.split(":")) if fields else FAST_FIELDS
                    self.asked = self.asked._replace(cards=cards)
                self.sources["gpu"].ask(now)
            elif name == "condition":
                self.asked = self.asked._replace(condition=tuple(fields.split(":")))
            elif section == "apps":
                self.sources["processes"].ask(now)

    def take(
        self, frame: Frame, now: float, *, is_gpu_expected: bool, asked: AskedFields | None = None
    ) -> bool:
        """Read a frame; False when the driver refused a field and the cards must be asked again at once.

        `asked`: `self.asked` of the moment the frame arrived, which may be read after the next question.
        """
        sections, asked = frame.sections, asked or self.asked
        section = sections.get("gpu")
        if section is not None and not self._take_cards(
            section, asked.cards, now, is_gpu_expected=is_gpu_expected
        ):
            return False
        if self.condition.take(sections, now, asked.condition) and self._plain is not None:
            self.reading = self._joined(self._plain)
        if "apps" in sections:
            self._take_processes(sections["apps"], sections.get("ps"), now)
        return True

    def with_memory(self, memory: MemoryReading | None) -> GpuReading | None:
        """The cards, unified ones with the machine's memory filled in."""
        if self.reading is None or not self.has_unified_cards:
            return self.reading
        parts = (self.reading, memory, self.processes)
        if self._unified is not None and all(map(is_, self._unified[0], parts)):
            return self._unified[1]
        filled = with_unified_memory(self.reading, memory, self.processes)
        self._unified = (parts, filled)
        return filled

    def end(self, text: str, now: float) -> None:
        """The loop itself ended while the connection stands."""
        for source in self.sources.values():
            source.fail(text, now)

    def _take_cards(
        self, section: Section, fields: tuple[str, ...], now: float, *, is_gpu_expected: bool
    ) -> bool:
        source = self.sources["gpu"]
        if section == self._last_section and source.state == "ok":
            self._count_busy_again()
            source.succeed(now)
            return True
        reading = parse_gpus(section.payload, section.exit_code, fields)
        if reading.unsupported_fields:
            # Each of them was asked, so there is one less to ask now: this ends.
            self.refused_fields |= set(reading.unsupported_fields)
            return False
        self._last_section = section
        self._note_driver(reading.cards)
        self._store(reading, now, is_gpu_expected=is_gpu_expected)
        return True

    def _note_driver(self, cards: tuple[GpuCard, ...]) -> None:
        """Another driver may know what the last one refused: ask for everything again."""
        driver = cards[0].driver if cards else None
        if driver is None or driver == self._driver or isinstance(driver, Unknown):
            return
        if self._driver is not None:
            self.refused_fields = frozenset()
            self.condition.begin_driver()
        self._driver = driver

    def _store(self, reading: GpuReading, now: float, *, is_gpu_expected: bool) -> None:
        source, problem = self.sources["gpu"], reading.problem
        known = () if self._plain is None else self._plain.cards
        if problem is None:
            self._bad_answers = 0
            faults = _with_indices(reading.faults, known) if reading.faults else ()
            self._keep(reading, known, faults)
            if reading.cards:
                source.succeed(now)
            else:
                source.fail(faults[0].text if faults else "no card answered", now)
            return
        self._bad_answers += 1
        if problem.code == "unreadable" and known and self._bad_answers < BAD_ANSWERS_IN_A_ROW:
            source.forget_question()
            self._last_section = None  # the same again is the second of two
            return
        self._keep(reading, known, ())
        if problem.code == "asleep":
            source.succeed(now)
        elif problem.code in ("no_tool", "no_devices") and not is_gpu_expected and not known:
            source.drop(problem.text, now)
            self.sources["processes"].drop(problem.text, now)
        else:
            source.fail(problem.text, now)

    def _keep(self, reading: GpuReading, known: tuple[GpuCard, ...], faults: tuple[GpuFault, ...]) -> None:
        """The cards of this answer; where it has none the last known ones, marked as stale."""
        cards = count_busy(reading.cards, known)
        if cards is not reading.cards:
            reading = replace(reading, cards=cards)
        if not reading.cards and known:
            reading = replace(reading, cards=known, is_stale=True, faults=faults)
        elif faults:
            reading = replace(reading, faults=faults)
        self._plain = reading
        self.reading = self._joined(reading)

    def _count_busy_again(self) -> None:
        """The same answer as before is one more sample."""
        plain = self._plain
        if plain is None or not any(card.busy_samples for card in plain.cards):
            return
        cards = count_busy(plain.cards, plain.cards)
        if cards is not plain.cards:
            self._plain = replace(plain, cards=cards)
            self.reading = self._joined(self._plain)

    def _joined(self, reading: GpuReading) -> GpuReading:
        """The reading with MIG instances under their cards and the condition beside them."""
        return self.condition.join(reading)

    def _take_processes(self, apps: Section, ps: Section | None, now: float) -> None:
        source = self.sources["processes"]
        if self.sources["gpu"].state == "unsupported":
            return
        if apps.exit_code == ASLEEP_EXIT:
            source.succeed(now)  # nothing runs on cards that sleep
            return
        reading = parse_apps(apps.payload, apps.exit_code)
        if isinstance(reading, Unknown):
            if apps.exit_code == NOT_AVAILABLE_EXIT:
                self.processes = None
                source.drop(reading.reason, now)
            else:
                source.fail(reading.reason, now)
            return
        self.processes = with_owners(reading, parse_owners(ps.payload)) if ps is not None else reading
        source.succeed(now)


def _with_indices(faults: tuple[GpuFault, ...], known: tuple[GpuCard, ...]) -> tuple[GpuFault, ...]:
    """Faults with the number of their card, where an earlier answer had a card with that bus id."""
    named = []
    for fault in faults:
        for card in known:
            if (
                not isinstance(fault.bus_id, Unknown)
                and not isinstance(card.bus_id, Unknown)
                and same_bus_id(fault.bus_id, card.bus_id)
            ):
                named.append(replace(fault, index=card.index))
                break
        else:
            named.append(fault)
    return tuple(named)
