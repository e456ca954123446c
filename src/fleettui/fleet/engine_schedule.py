"""Which questions to one engine are due: each by its own period and condition."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.readings import EngineReading
from fleettui.model.unknown import Unknown
from fleettui.probes.engines import EngineProbe, Question
from fleettui.probes.engines.probe import always

NEVER = float("-inf")
EARLY_S = 0.5
"""A tick comes a little early or late: that must not postpone a question by a whole interval."""


class EngineSchedule:
    """When each question of a probe was last asked on this connection."""

    def __init__(self, probe: EngineProbe) -> None:
        self._questions = probe.questions
        self._each = tuple(question for question in probe.questions if not question.every_s)
        self._rare = tuple(question for question in probe.questions if question.every_s)
        self._vital = tuple(question for question in self._each if question.is_vital)
        self._has_conditions = any(question.may_ask is not always for question in self._each)
        self._has_rare_list = any(question.lists_copies for question in self._rare)
        self._asked_at: dict[str, float] = {}
        self._next_at = NEVER
        """Before that nothing rare is due."""
        self._is_first = True

    def begin(self) -> None:
        """A new connection: everything is asked anew."""
        self._is_first = True
        self.ask_rare_again()

    def ask_rare_again(self) -> None:
        """What is asked now and then is due at the next poll."""
        self._asked_at.clear()
        self._next_at = NEVER

    def due(self, reading: EngineReading | None, now: float) -> Sequence[Question]:
        """What to ask now; noted as asked. Of an engine that is down only whether it is back."""
        if reading is not None and reading.state == "down" and not self._is_first:
            return self._vital
        each: Sequence[Question] = self._each
        if self._has_conditions:
            each = [question for question in each if question.may_ask(reading)]
        lacks_copies = self._has_rare_list and _lacks_copies(reading)
        if now < self._next_at and not lacks_copies:
            return each
        self._is_first = False
        rare = [
            question
            for question in self._rare
            if (lacks_copies and question.lists_copies) or self._is_due(question, now)
            if question.may_ask(reading)
        ]
        for question in rare:
            self._asked_at[question.path] = now
        self._next_at = min((self._due_at(question) for question in self._rare), default=float("inf"))
        return [*each, *rare]

    def allowed(self, reading: EngineReading | None, asked: set[str]) -> list[Question]:
        """What may be asked of it now that first answers are there and was not `asked` yet."""
        found = [
            question
            for question in self._questions
            if question.path not in asked and question.may_ask(reading)
        ]
        return [] if reading is not None and reading.state == "down" else found

    def _is_due(self, question: Question, now: float) -> bool:
        return now >= self._due_at(question)

    def _due_at(self, question: Question) -> float:
        asked_at = self._asked_at.get(question.path)
        return NEVER if asked_at is None else asked_at + question.every_s - EARLY_S


def _lacks_copies(reading: EngineReading | None) -> bool:
    """The engine is well, and what it holds is not known: it has just started."""
    return reading is not None and reading.state == "ok" and isinstance(reading.loaded, Unknown)
