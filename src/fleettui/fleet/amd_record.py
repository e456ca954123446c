"""What the AMD part of the GPU channel said, and how it joins the cards of another vendor."""

from __future__ import annotations

from fleettui.fleet.source_record import SourceRecord
from fleettui.model.gpu import GpuCard, GpuProblem, GpuReading, ProcessesReading, count_busy
from fleettui.model.machine import Machine
from fleettui.model.record import replace
from fleettui.model.snapshot import SourceStatus
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.amd import counts_as_card, make_cards, merge, needs_metric, with_kinds
from fleettui.probes.amd_json import read_document
from fleettui.probes.amd_problems import NOT_LOADED, read_amd_problem, split_tool
from fleettui.probes.amd_processes import parse_amd_processes
from fleettui.probes.amd_sysfs import AmdFacts, parse_kinds, parse_sysfs, parse_tool_name, parse_unbound
from fleettui.probes.amd_tools import parse_tool
from fleettui.probes.frames import Frame, Section
from fleettui.probes.processes import parse_owners, with_owners

TOOL_PERIOD_S = 10.0
"""A call takes half a second of the machine's CPU."""

LONG_BUSY_S = 60.0
"""amdgpu shows a constant 100 % busy while a server is resident; real work pauses now and then."""

LOW_POWER_SHARE = 0.5
"""Of the limit: a card that is really busy draws more."""

UNBOUND_EXIT = 6
TOOL_SECTIONS = ("amd-static", "amd-list", "amd-metric")
CONSTANT_BUSY = Unknown("100 % all the time: not trusted")
_NO_NVIDIA = ("no_tool", "no_devices")


class AmdRecord:
    """Latest AMD cards and processes of a machine; absent until sysfs shows a card."""

    def __init__(self) -> None:
        self.sources = {"amd": SourceRecord(), "amd processes": SourceRecord()}
        self.processes: ProcessesReading | None = None
        self._is_absent = False
        self._sysfs: tuple[AmdFacts, ...] = ()
        self._kinds: dict[tuple[int, ...], bool] | None = None
        """Which cards are integrated; None until the machine told."""
        self._payloads: dict[str, bytes] = {}
        self._tool_cards: tuple[AmdFacts, ...] = ()
        self._facts: tuple[AmdFacts, ...] = ()
        self._cards: tuple[GpuCard, ...] = ()
        self._tool_problem: GpuProblem | None = None
        self._problem: GpuProblem | None = None
        self._busy_since: dict[Maybe[str], float] = {}
        self._notes: tuple[str, ...] = ()
        self._asked_at: dict[str, float] = {}
        self._first_index = 0
        """Behind the highest number that another vendor's tool ever printed, so that numbers never move."""
        self._joined: tuple[object, object, GpuReading] | None = None

    # -- what is asked ------------------------------------------------------------------------------

    def begin_connection(self) -> None:
        """Look for AMD cards and tools again."""
        self._is_absent = False
        self._asked_at.clear()

    def restart(self) -> None:
        """The clock jumped: what has a period is due."""
        for name in ("amd-metric", "amd-process"):
            self._asked_at.pop(name, None)

    def due(self, now: float, wants_processes: bool) -> tuple[str, ...]:
        """Sections for the next question; none at all on a machine without AMD cards."""
        if self._is_absent:
            return ()
        if not self._sysfs:
            return ("amd",)
        return ("amd", *self.tool_due(now, wants_processes))

    def tool_due(self, now: float, wants_processes: bool) -> tuple[str, ...]:
        """Sections of the tool that are due now that sysfs has shown cards."""
        if self._is_absent or not self._sysfs:
            return ()
        sections: tuple[str, ...] = ()
        if "amd-kind" not in self._asked_at:
            sections += ("amd-kind",)
        if "amd-static" not in self._asked_at:
            sections += ("amd-static", "amd-list")
        if not self.has_tool and "amd-static" in self._asked_at:
            return sections
        if needs_metric(self._sysfs) and self._is_due("amd-metric", now):
            sections += ("amd-metric",)
        if wants_processes and self._is_due("amd-process", now):
            sections += ("amd-process", "amd-ps")
        return sections

    def _is_due(self, section: str, now: float) -> bool:
        asked_at = self._asked_at.get(section)
        return asked_at is None or now - asked_at >= TOOL_PERIOD_S - 0.5

    def ask(self, sections: tuple[str, ...], now: float) -> None:
        """These sections were asked."""
        if self._is_absent:
            return
        for section in sections:
            if section.startswith("amd"):
                self._asked_at[section] = now
        if "amd" in sections:
            self.sources["amd"].ask(now)
        if "amd-process" in sections:
            self.sources["amd processes"].ask(now)

    # -- what came ----------------------------------------------------------------------------------

    @property
    def has_tool(self) -> bool:
        """amd-smi or rocm-smi is on the machine, as far as it was asked."""
        return any(split_tool(payload)[0] for payload in self._payloads.values())

    @property
    def has_cards(self) -> bool:
        """Cards were seen on this connection."""
        return bool(self._cards)

    @property
    def has_unified_cards(self) -> bool:
        """Cards whose memory is the machine's."""
        return any(card.is_unified for card in self._cards)

    @property
    def awaits_more(self) -> bool:
        """Cards are there, and what they are and what they are called was not heard yet."""
        is_known = self._kinds is not None and "amd-static" in self._payloads
        return bool(self._sysfs) and not self._is_absent and not is_known

    def take(self, frame: Frame, now: float, machine: Machine, other: GpuReading | None) -> None:
        """Read a frame; `other`: the reading of the other vendor's tool."""
        sections = frame.sections
        if not any(name.startswith("amd") for name in sections):
            return
        if "amd-kind" in sections:
            self._kinds = {**(self._kinds or {}), **parse_kinds(sections["amd-kind"].payload)}
        tool = {name: sections[name] for name in TOOL_SECTIONS if name in sections}
        if tool:
            self._take_tool(tool)
            if "amd-static" in self._payloads and not self.has_tool:
                self.sources["amd processes"].drop("neither amd-smi nor rocm-smi found", now)
        if "amd" in sections:
            self._take_sysfs(sections["amd"], now, machine, other)
        if self._sysfs and self._kinds is not None:
            before = self._cards
            self._make_cards(now, machine, other)
            self._cards = count_busy(self._cards, before, is_sample="amd" in sections)
        if "amd-process" in sections:
            self._take_processes(sections["amd-process"], sections.get("amd-ps"), now)

    def end(self, text: str, now: float) -> None:
        """The loop itself ended while the connection stands."""
        if self._cards:
            for source in self.sources.values():
                source.fail(text, now)

    def _take_sysfs(self, section: Section, now: float, machine: Machine, other: GpuReading | None) -> None:
        source = self.sources["amd"]
        cards = parse_sysfs(section.payload)
        if not cards:
            self._is_absent = True  # as it stands until the next connection or request
            self._sysfs, self._cards = (), ()
            self._problem = _why_none(section, machine, other)
            if self._problem is not None:
                source.fail(self._problem.text, now)
            else:
                source.forget_question()
            return
        known = {facts.bus_id: facts for facts in self._sysfs}
        self._sysfs = tuple(
            replace(known[facts.bus_id], is_asleep=True)
            if facts.is_asleep and facts.bus_id in known
            else facts
            for facts in cards
        )
        self._problem = None
        source.succeed(now)

    def _take_tool(self, sections: dict[str, Section]) -> None:
        for name, section in sections.items():
            tool, text = split_tool(section.payload)
            document, lines = read_document(text)
            if document is not None or name not in self._payloads:
                self._payloads[name] = section.payload
            if document is None and tool and name != "amd-list":
                self._tool_problem = read_amd_problem(tool, lines, section.exit_code)
            elif document is not None:
                self._tool_problem = None
        static, listed, metric = (split_tool(self._payloads.get(name, b""))[1] for name in TOOL_SECTIONS)
        self._tool_cards = parse_tool(static, listed, metric)

    def _make_cards(self, now: float, machine: Machine, other: GpuReading | None) -> None:
        """Cards from all that is known; where only an unused integrated part is left, there are none."""
        has_others = other is not None and bool(other.cards or other.faults)
        facts = with_kinds(merge(self._sysfs, self._tool_cards), self._kinds or {})
        is_real = any(item.is_integrated is not True for item in facts)
        self._facts = tuple(
            item
            for item in facts
            if counts_as_card(
                item,
                has_other_cards=has_others or is_real,
                has_tool=self.has_tool,
                is_declared=machine.declares_gpus,
                is_cpu_only=machine.is_cpu_only,
            )
        )
        if not self._facts and not (self.awaits_more and not has_others):
            self._is_absent, self._cards = True, ()
            return
        if has_others and other is not None:
            highest = max((card.index for card in other.cards), default=-1)
            self._first_index = max(self._first_index, highest + 1)
        trusted = tuple(self._distrust_constant_busy(item, now) for item in self._facts)
        self._cards = make_cards(trusted, self._first_index)
        self._notes = self._find_notes(trusted)

    def _distrust_constant_busy(self, facts: AmdFacts, now: float) -> AmdFacts:
        if facts.utilisation_percent != 100:
            self._busy_since.pop(facts.bus_id, None)
            return facts
        since = self._busy_since.setdefault(facts.bus_id, now)
        power, limit = facts.power_w, facts.power_limit_w
        is_known = not isinstance(power, Unknown) and not isinstance(limit, Unknown)
        if now - since < LONG_BUSY_S or (is_known and power > limit * LOW_POWER_SHARE):  # type: ignore[operator]
            return facts
        return replace(facts, utilisation_percent=CONSTANT_BUSY)

    def _find_notes(self, facts: tuple[AmdFacts, ...]) -> tuple[str, ...]:
        notes = []
        for card in self._cards:
            if card.utilisation_percent == CONSTANT_BUSY:
                draw = "" if isinstance(card.power_w, Unknown) else f" and draws {card.power_w:.0f} W"
                notes.append(
                    f"GPU {card.index} reports 100 % busy all the time{draw}: amdgpu does that while a "
                    "server is resident; not trusted"
                )
        asleep = sum(item.is_asleep for item in facts)
        if asleep:
            notes.append(f"{asleep} AMD GPU{'s' * (asleep > 1)} asleep; amd-smi would wake what sleeps")
        elif self._tool_problem is not None:
            notes.append(f"AMD: {self._tool_problem.text}; figures come from sysfs, processes are not listed")
        elif not self.has_tool and "amd-static" in self._payloads:
            notes.append(
                "neither amd-smi nor rocm-smi found: AMD GPU (memory only), processes are not listed"
            )
        return tuple(notes)

    def _take_processes(self, section: Section, ps: Section | None, now: float) -> None:
        source = self.sources["amd processes"]
        uuids: dict[int, Maybe[str]] = {}
        by_bus = {card.bus_id: card.uuid for card in self._cards}
        for facts in self._facts:
            if not isinstance(facts.tool_index, Unknown):
                uuids[facts.tool_index] = by_bus.get(facts.bus_id, Unknown("no such card"))
        reading = parse_amd_processes(section.payload, section.exit_code, uuids)
        if isinstance(reading, Unknown):
            if section.exit_code == 127 and not section.payload:
                source.drop("neither amd-smi nor rocm-smi found", now)
            else:
                source.fail(reading.reason, now)
            return
        self.processes = with_owners(reading, parse_owners(ps.payload)) if ps is not None else reading
        source.succeed(now)

    # -- out ----------------------------------------------------------------------------------------

    def join(self, other: GpuReading | None) -> GpuReading | None:
        """The reading of all vendors; without AMD cards that of the other one as it is."""
        if not self._cards and self._problem is None:
            return other
        known = self._joined
        if known is not None and known[0] is other and known[1] == (self._cards, self._problem, self._notes):
            return known[2]
        if other is None or self.is_alone(other):
            reading = GpuReading(self._cards, problem=self._problem, notes=self._notes)
        else:
            reading = replace(
                other,
                cards=other.cards + self._cards,
                notes=other.notes + self._notes,
                amd_problem=self._problem,
            )
        self._joined = (other, (self._cards, self._problem, self._notes), reading)
        return reading

    def join_processes(self, other: ProcessesReading | None) -> ProcessesReading | None:
        """Processes on the cards of all vendors."""
        if other is None or self.processes is None:
            return other if self.processes is None else self.processes
        return ProcessesReading(other.processes + self.processes.processes)

    def is_alone(self, other: GpuReading | None) -> bool:
        """No other vendor's cards are there: what AMD says is what the machine's GPUs say."""
        if not self._cards and self._problem is None:
            return False
        if other is None:
            return True
        has_none = not other.cards and not other.faults
        return has_none and (other.problem is None or other.problem.code in _NO_NVIDIA)

    def join_statuses(
        self, statuses: dict[str, SourceStatus], other: GpuReading | None
    ) -> dict[str, SourceStatus]:
        """States of the sources: AMD's are those of the GPUs where it is alone, else stand beside them."""
        amd, processes = statuses.pop("amd"), statuses.pop("amd processes")
        if not self._cards and self._problem is None:
            return statuses
        if self.is_alone(other):
            statuses["gpu"], statuses["processes"] = amd, processes
        else:
            statuses["amd"] = amd
        return statuses


def _why_none(section: Section, machine: Machine, other: GpuReading | None) -> GpuProblem | None:
    """Why there is no AMD card, where one is to be expected: the file declares more cards than the other
    vendor has, or a tool of AMD is installed and there is no other card.

    Elsewhere a card without a driver is one that nobody wants: the graphics of a processor, as a rule.
    """
    count = len(other.cards) + len(other.faults) if other is not None else 0
    tool = parse_tool_name(section.payload)
    is_missing = machine.declares_gpus and count < len(machine.gpus or ())
    if machine.is_cpu_only or not (is_missing or (tool and not count)):
        return None
    unbound = parse_unbound(section.payload)
    if section.exit_code == UNBOUND_EXIT and unbound:
        return GpuProblem("driver_not_running", NOT_LOADED, ", ".join(unbound))
    if tool and is_missing and not count:
        return GpuProblem("no_devices", f"{tool} is there, and the kernel shows no AMD card")
    return None
