"""What an engine's file declares: which questions it is asked and when, and how its answers are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from fleettui.model.machine import EngineKind
from fleettui.model.readings import EngineReading
from fleettui.model.record import dataclass
from fleettui.probes.engines.answers import Answer

AskedBy = Literal["tunnel", "direct", "remote"]

EACH_POLL = 0.0
OFTEN_S = 10.0
"""For what is too dear at each poll and too old after a minute: metrics of 56 KB, whether a server sleeps."""
RARELY_S = 60.0

Condition = Callable[[EngineReading | None], bool]
"""Of the reading so far; None: nothing is known yet."""


def always(reading: EngineReading | None) -> bool:
    """No condition."""
    return True


def unless_refused(path: str) -> Condition:
    """Not after the engine said that it has no such path; asked again once it was away."""

    def may_ask(reading: EngineReading | None) -> bool:
        return reading is None or reading.traits is None or path not in reading.traits.refused

    return may_ask


@dataclass(frozen=True, slots=True)
class Question:
    """One GET. Whoever polls asks it when it is due and `may_ask` allows it, never twice at a time."""

    path: str
    every_s: float = EACH_POLL
    """0: at every poll."""
    is_vital: bool = False
    """Without an answer the engine is down; the others cost their own part alone."""
    counts_load: bool = False
    """It tells of requests in work, so that without an answer nothing is known of them."""
    lists_copies: bool = False
    """It tells what is loaded: asked at once while the engine is well and that is unknown."""
    may_ask: Condition = always
    line_starts: tuple[str, ...] = ()
    """What the lines begin with that are read; the machine's own tools may leave out the others."""


def no_paths(reading: EngineReading) -> tuple[str, ...]:
    """Nothing more to ask."""
    return ()


class AnswerReader(Protocol):
    """Turns the answers that came in (by path) into a reading; the rest stays as in `previous`."""

    def __call__(
        self, port: int, answers: Mapping[str, Answer], previous: EngineReading | None = None,
        path: AskedBy = "tunnel",
    ) -> EngineReading: ...  # fmt: skip


class FailureReader(Protocol):
    """The reading when no answer to a vital question came; `text` in the operator's words."""

    def __call__(
        self, port: int, text: str, previous: EngineReading | None = None, path: AskedBy = "tunnel"
    ) -> EngineReading: ...


class Recogniser(Protocol):
    """Whose answer this is: True, this engine's; False, surely another's; None, it may be anybody's.

    By what the answer says, never by its status code alone.
    """

    def __call__(self, path: str, answer: Answer) -> bool | None: ...


@dataclass(frozen=True, slots=True)
class EngineProbe:
    """How one kind of engine is asked. GETs only, and none that loads or wakes a model."""

    kind: EngineKind
    label: str
    """Its name as people write it."""
    default_port: int
    questions: tuple[Question, ...]
    """Those while watching, the dearest last."""
    read_answers: AnswerReader
    read_failure: FailureReader
    recognise: Recogniser
    sign_paths: tuple[str, ...]
    """Asked of an unknown port, in this order, to find out whether this engine listens there."""
    busy_paths: Callable[[EngineReading], tuple[str, ...]] = no_paths
    """Paths, not among the questions, that tell who is busy at a price (they reset idle timers): asked only
    while somebody drains or routes around busy copies, and of nothing that sleeps or is not loaded. Whoever
    stops asking makes the reading one `without_load`."""

    @property
    def vital_paths(self) -> tuple[str, ...]:
        """Those without an answer to which it is down; the first is the cheapest sign that it lives."""
        return tuple(question.path for question in self.questions if question.is_vital)
