"""Takes what a machine answered into its record, and knows what is still awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fleettui.fleet.engine_record import path_name
from fleettui.fleet.facts_record import SOURCE_OF_SECTION
from fleettui.fleet.gpu_record import AskedFields
from fleettui.fleet.inbox import AnswerKind, Inbox
from fleettui.fleet.needs import Needs
from fleettui.fleet.record import MachineRecord
from fleettui.model.machine import EngineEndpoint
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines import AskedBy
from fleettui.probes.frames import Frame

_SAYS_NOTHING = ("timeout", "lost")
"""Failures of an engine that do not even show that the machine lives; a refused port does."""


class Asker(Protocol):
    """What an answer may make the poller ask next."""

    def ask_cards_again(self, with_processes: bool) -> None:
        """The driver refused a field: ask without it at once."""

    def ask_condition(self) -> None:
        """Cards answered: what is asked of them now and then may be due."""

    def ask_amd_tool(self) -> bool:
        """AMD cards answered: what their tool is asked now and then may be due. True if it was asked."""

    def stop_asking_cards(self) -> None:
        """The machine has no GPU tool."""

    def ask_second_sample(self) -> None:
        """Rates take two samples, and one is there."""

    def look_for_engines(self) -> None:
        """The machine told who listens there: among them may be engines that its file does not name."""

    def ask_memory(self) -> None:
        """Unified cards have the machine's memory, and nothing else asks for it."""

    def ask_installed_again(self, endpoint: EngineEndpoint) -> None:
        """A resident model is not in the engine's list of installed ones, or the engine is back."""

    def ask_engine_more(self, endpoint: EngineEndpoint) -> tuple[str, ...]:
        """Ask at once what the first answers of an engine allow to be asked; the paths."""


class Answers:
    """Answers of one machine, from their arrival to the record."""

    def __init__(self, record: MachineRecord, needs: Needs, asker: Asker, clock: Callable[[], float]) -> None:
        self._record = record
        self._needs = needs
        self._asker = asker
        self._clock = clock
        self._inbox = Inbox()
        self.has_no_facts = False
        """The machine has no fact channel: what else answers shows that it is there."""
        engines = record.engines.values() if needs.engines else ()
        self._awaited = needs.awaited(engine.path_names for engine in engines)

    @property
    def are_complete(self) -> bool:
        """Every needed source answered once."""
        return not self._awaited

    def give_up(self, *names: str) -> None:
        """These will not answer on this connection."""
        self._awaited.difference_update(names)

    def keep_facts(self, frame: Frame) -> None:
        """A frame of the fact channel arrived."""
        now = self._clock()
        self._record.last_seen = now
        self._inbox.keep("facts", lambda: self._take_facts(frame, now))

    def keep_gpu(self, frame: Frame) -> None:
        """A frame of the GPU channel arrived."""
        now = self._clock()
        self._hear(now)
        asked = self._record.gpu.asked  # the next question may go out before this is read
        self._inbox.keep("gpu", lambda: self._take_gpu(frame, now, asked))

    def keep_engine(
        self, endpoint: EngineEndpoint, path: str, answer: HttpAnswer | HttpFailure, way: AskedBy
    ) -> None:
        """An engine answered, or could not be asked."""
        now = self._clock()
        if way != "direct" and not (isinstance(answer, HttpFailure) and answer.kind in _SAYS_NOTHING):
            self._hear(now)
        self._inbox.keep("engines", lambda: self._take_engine(endpoint, path, answer, way, now))

    def _hear(self, now: float) -> None:
        """Something other than the fact channel answered: it counts where nothing asks that one."""
        if not self._needs.facts or self.has_no_facts:
            self._record.last_seen = now

    def read(self, kind: AnswerKind) -> None:
        """Read the answers of one kind that have arrived since the last call."""
        self._inbox.read(kind)

    def _take_facts(self, frame: Frame, now: float) -> None:
        self._record.take_facts(frame, now)
        if self._awaited:
            self._awaited.difference_update(SOURCE_OF_SECTION.get(name, "") for name in frame.sections)
        if self._record.facts.has_rates:
            self._awaited.discard("rates")
        elif self._needs.rates:
            self._asker.ask_second_sample()
        if "sockets" in frame.sections and self._needs.discovery:
            self._asker.look_for_engines()

    def _take_gpu(self, frame: Frame, now: float, asked: AskedFields) -> None:
        if not self._record.take_gpu(frame, now, asked):
            self._asker.ask_cards_again("apps" in frame.sections)
            return
        if self._record.gpu.has_no_tool:
            self._asker.stop_asking_cards()
        gpu, amd = self._record.gpu, self._record.amd
        if amd.awaits_more and self._asker.ask_amd_tool():
            return
        if gpu.has_cards:
            self._asker.ask_condition()
        if not gpu.has_cards or ("condition" in frame.sections and not gpu.condition.must_ask_again):
            self._awaited.discard("condition")
        if not gpu.condition.has_mig or gpu.condition.has_instances or not gpu.has_cards:
            self._awaited.difference_update(("gpu", "processes"))
        is_unified = gpu.has_unified_cards or amd.has_unified_cards
        if is_unified and not self._needs.facts and "memory" not in self._awaited:
            self._awaited.add("memory")
            self._asker.ask_memory()

    def _take_engine(
        self,
        endpoint: EngineEndpoint,
        path: str,
        answer: HttpAnswer | HttpFailure,
        way: AskedBy,
        now: float,
    ) -> None:
        engine = self._record.engines.get(endpoint)
        if engine is None:  # found once, and gone meanwhile
            return
        if not engine.take(path, answer, way, now):
            self._asker.ask_installed_again(endpoint)
        if self._awaited:
            self._awaited.discard(path_name(endpoint, path))
            more = self._asker.ask_engine_more(endpoint)
            self._awaited.update(path_name(endpoint, allowed) for allowed in more)
