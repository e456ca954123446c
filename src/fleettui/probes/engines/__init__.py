"""Engines: one file each; here the registry of what is asked of which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from fleettui.model.machine import EngineKind
from fleettui.model.readings import EngineReading
from fleettui.model.record import dataclass
from fleettui.probes.engines import ollama
from fleettui.probes.engines.answers import Answer

AskedBy = Literal["tunnel", "direct", "remote"]


class AnswerReader(Protocol):
    """Turns the answers that came in (by path) into a reading; the rest stays as in `previous`."""

    def __call__(
        self, port: int, answers: Mapping[str, Answer], previous: EngineReading | None = None,
        path: AskedBy = "tunnel",
    ) -> EngineReading: ...  # fmt: skip


class FailureReader(Protocol):
    """The reading when no answer came; `text` in the operator's words."""

    def __call__(
        self, port: int, text: str, previous: EngineReading | None = None, path: AskedBy = "tunnel"
    ) -> EngineReading: ...


@dataclass(frozen=True, slots=True)
class EngineProbe:
    """How one kind of engine is asked. GETs only."""

    kind: EngineKind
    label: str
    """Its name as people write it."""
    tick_paths: tuple[str, ...]
    """Asked at every poll."""
    slow_paths: tuple[str, ...]
    """Asked rarely: lists and versions."""
    read_answers: AnswerReader
    read_failure: FailureReader


ENGINES: Mapping[EngineKind, EngineProbe] = {
    "ollama": EngineProbe(
        "ollama", "Ollama", ollama.TICK_PATHS, ollama.SLOW_PATHS, ollama.read_answers, ollama.read_failure
    ),
}
"""An engine that is not here yet is declared in machine files and not asked."""

REMOTE_PATHS: tuple[str, ...] = tuple(
    dict.fromkeys(path for probe in ENGINES.values() for path in (*probe.tick_paths, *probe.slow_paths))
)
"""All that the machine's own curl or wget may be asked for."""
