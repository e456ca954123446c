"""What is asked of a machine on a tick: the sections that are due on its two loops."""

from __future__ import annotations

from collections.abc import Collection

from fleettui.fleet.facts_questions import FactsQuestions
from fleettui.fleet.gpu_condition_record import GpuConditionRecord
from fleettui.fleet.needs import CONDITION_PERIOD_S, PROCESSES_PERIOD_S, Needs
from fleettui.model.machine import NvidiaSmi
from fleettui.probes.nvidia import gpu_section
from fleettui.probes.nvidia_condition import condition_section

_AS_USUAL = NvidiaSmi()


class Questions:
    """When each section was last asked, and what this machine has taught us not to ask."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self.facts = FactsQuestions(needs)
        self._asked_at: dict[str, float] = {}
        self._has_no_gpu_tool = False
        self._looks_for_tool = False
        self._usual: tuple[str, ...] | None = None
        self._usual_for: tuple[Collection[str], NvidiaSmi] | None = None

    def begin_connection(self) -> None:
        """A new connection: look for everything again; what the driver refused stays refused."""
        self._asked_at.clear()
        self.facts.begin()
        self._has_no_gpu_tool = False

    def ask_all_again(self) -> None:
        """The operator wants everything fresh, tools that were absent included."""
        self._asked_at.clear()
        self.facts.begin()
        self._looks_for_tool = self._has_no_gpu_tool
        self._has_no_gpu_tool = False

    def restart(self) -> None:
        """The clock jumped: whatever has a period is due, without looking for absent tools again."""
        self._asked_at.clear()
        self.facts.restart()

    def facts_due(self, now: float) -> tuple[str, ...]:
        """Sections for the facts loop."""
        return self.facts.due(now)

    def gpu_due(
        self, now: float, refused_fields: Collection[str], tool: NvidiaSmi = _AS_USUAL
    ) -> tuple[str, ...]:
        """Sections for the GPU loop, without query fields this driver refused; none where no tool exists."""
        if self._has_no_gpu_tool:
            return ()
        usual = self._usual_gpu(refused_fields, tool)
        has_processes = self._needs.processes and self._is_due("apps", PROCESSES_PERIOD_S, now)
        if not self._looks_for_tool and not has_processes:
            return usual
        return (
            *(("find",) if self._looks_for_tool else ()),
            *usual,
            *(("apps", "ps") if has_processes else ()),
        )

    def _usual_gpu(self, refused_fields: Collection[str], tool: NvidiaSmi) -> tuple[str, ...]:
        """What is asked on each tick; the same object each time, so that bookkeeping is cheap."""
        if self._usual is not None and (refused_fields, tool) == self._usual_for:
            return self._usual
        sections = []
        if tool.path is not None:
            sections.append(f"tool:{tool.path}")
        if tool.wakes:
            sections.append("wake")
        sections.append(gpu_section(refused_fields))
        self._usual, self._usual_for = tuple(sections), (refused_fields, tool)
        return self._usual

    def condition_due(self, now: float, known: GpuConditionRecord) -> tuple[str, ...]:
        """Slow sections of the GPU loop that are due now that cards have answered.

        On a machine whose nvidia-smi is slow one call at a time, so that cards are asked in between.
        """
        calls: list[tuple[str, ...]] = []
        if known.has_mig and self._is_due("xml", CONDITION_PERIOD_S, now):
            calls.append(("list", "xml"))
        if self._needs.condition:
            if known.must_ask_again or self._is_due("condition", CONDITION_PERIOD_S, now):
                calls.append((condition_section(known.refused_fields),))
            if not known.knows_version and self._is_due("version", CONDITION_PERIOD_S, now):
                calls.append(("version",))
            if self._is_due("xid", CONDITION_PERIOD_S, now):
                calls.append(("xid",))
        if known.is_slow:
            del calls[1:]
        return tuple(name for call in calls for name in call)

    def note_asked(self, sections: tuple[str, ...], now: float) -> None:
        """The question went out."""
        if sections is self._usual or self.facts.note_asked(sections, now):
            return
        for section in sections:
            self._asked_at[section.partition(":")[0]] = now
        if "find" in sections:
            self._looks_for_tool = False

    def give_up_gpu_tool(self) -> None:
        """No GPU tool anywhere: not looked for again before the next connection or request."""
        self._has_no_gpu_tool = True

    def _is_due(self, section: str, period_s: float, now: float) -> bool:
        asked_at = self._asked_at.get(section)
        # A tick comes a little early or late: half a second must not postpone a section by a whole interval.
        return asked_at is None or now - asked_at >= period_s - 0.5
