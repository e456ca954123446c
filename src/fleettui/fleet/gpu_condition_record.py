"""What the slow sections of the GPU channel said: condition of the cards, MIG instances, Xid, CUDA."""

from __future__ import annotations

from collections.abc import Mapping

from fleettui.model.gpu import CardCondition, GpuCondition, GpuReading, MigInstance, XidEvent
from fleettui.model.record import replace
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.probes.frames import Section
from fleettui.probes.nvidia_condition import parse_condition
from fleettui.probes.nvidia_lists import parse_version, read_instances
from fleettui.probes.nvidia_xid import parse_xids

_SLOW_SECTIONS = frozenset({"condition", "list", "xml", "xid", "version"})
SLOW_CALL_S = 2.0
"""From this duration of a call on, calls are kept apart and the operator is told."""


class GpuConditionRecord:
    """Latest slow facts about the cards of one machine."""

    def __init__(self) -> None:
        self.refused_fields: frozenset[str] = frozenset()
        """Fields of the condition that the present driver refused."""
        self.must_ask_again = False
        """A field was refused just now."""
        self.knows_version = False
        """`--version` was asked of this driver; one that does not know the option is not asked twice."""
        self.has_mig = False
        self.has_instances = False
        """The MIG instances of every card that has some were read."""
        self._cards: tuple[CardCondition, ...] = ()
        self._last_condition: tuple[Section, tuple[str, ...]] | None = None
        """The last good answer and what it was asked for."""
        self._xids: Maybe[tuple[XidEvent, ...]] = NOT_READ
        self._cuda: Maybe[str] = NOT_READ
        self._call_s: Maybe[float] = NOT_READ
        self._instances: dict[str, tuple[MigInstance, ...]] = {}
        self._frozen: GpuCondition | None = None

    @property
    def is_slow(self) -> bool:
        """The last call took long."""
        return not isinstance(self._call_s, Unknown) and self._call_s >= SLOW_CALL_S

    def begin_driver(self) -> None:
        """The driver changed: what the last one refused may be known now."""
        self.refused_fields = frozenset()
        self._last_condition = None
        self.must_ask_again = True
        self.knows_version = False

    def take(self, sections: Mapping[str, Section], now: float, fields: tuple[str, ...]) -> bool:
        """Read the slow sections of a frame; True when something changed. `fields`: of its `condition`."""
        before, instances = self._frozen, self._instances
        if "took" in sections:
            self._call_s = _read_duration(sections["took"].payload)
        elif "gpu" in sections and self.is_slow:
            self._call_s = Unknown("the last call was quick")
        elif _SLOW_SECTIONS.isdisjoint(sections):
            return False
        if "condition" in sections:
            self._take_condition(sections["condition"], fields)
        if "xml" in sections or "list" in sections:
            self._take_instances(sections.get("list"), sections.get("xml"))
        if "xid" in sections:
            self._take_xids(sections["xid"], now)
        if "version" in sections:
            self.knows_version = True
            self._cuda = parse_version(sections["version"].payload)[1]
        self._freeze()
        return self._frozen is not before or self._instances is not instances

    def _freeze(self) -> None:
        """The same object while nothing changed; None before anything was read."""
        condition = GpuCondition(self._cards, self._xids, self._cuda, self._call_s)
        if condition != (self._frozen or GpuCondition()):
            self._frozen = condition

    def _take_condition(self, section: Section, fields: tuple[str, ...]) -> None:
        if (section, fields) == self._last_condition:
            self.must_ask_again = False
            return
        answer = parse_condition(section.payload, section.exit_code, fields)
        if answer.refused is not None:
            # It was asked, so there is one less to ask now: this ends.
            self.refused_fields |= {answer.refused}
            self.must_ask_again = True
            return
        self.must_ask_again = False
        if answer.cards:
            self._cards, self._last_condition = answer.cards, (section, fields)

    def _take_instances(self, listed: Section | None, xml: Section | None) -> None:
        found = read_instances(
            b"" if listed is None or listed.exit_code else listed.payload,
            b"" if xml is None or xml.exit_code else xml.payload,
        )
        self.has_instances = True
        if found and found != self._instances:
            self._instances = found

    def _take_xids(self, section: Section, now: float) -> None:
        answer = parse_xids(section.payload, section.exit_code)
        if isinstance(answer, Unknown):
            self._xids = answer
            return
        uptime_s, events = answer
        known = {} if isinstance(self._xids, Unknown) else {_identity(event): event for event in self._xids}
        # The moment of an event already seen stays: clocks of two machines never agree to the last digit.
        self._xids = tuple(
            known.get(_identity(event))
            or replace(event, at=float(round(now - uptime_s + event.after_boot_s)))
            for event in events
        )

    def join(self, reading: GpuReading) -> GpuReading:
        """The reading with MIG instances under their cards and the condition beside them."""
        cards = reading.cards
        self.has_mig = False
        for card in cards:
            if card.is_mig:
                self.has_mig = True
        if self.has_mig:
            cards = tuple(
                replace(card, mig=self._instances[card.uuid])
                if card.is_mig and not isinstance(card.uuid, Unknown) and card.uuid in self._instances
                else card
                for card in cards
            )
        elif self._instances:
            self._instances, self.has_instances = {}, False
        if self._frozen is None and not self.has_mig:
            return reading
        return GpuReading(
            cards,
            reading.faults,
            reading.warnings,
            reading.problem,
            reading.unsupported_fields,
            reading.is_stale,
            self._frozen,
        )


def _identity(event: XidEvent) -> tuple[object, ...]:
    return event.code, event.bus_id, event.after_boot_s, event.text


def _read_duration(payload: bytes) -> Maybe[float]:
    """Seconds of a `took` section, which counts 1/100 s."""
    text = payload.strip()
    return int(text) / 100 if text.isdigit() and len(text) <= 7 else Unknown("unreadable duration")
