"""A reading while answers are put into it: parts not asked now stay as they were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fleettui.model.machine import EngineKind
from fleettui.model.readings import (
    EngineLoad,
    EngineReading,
    EngineState,
    EngineTraits,
    LoadedModel,
    ModelState,
)
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines.answers import Answer, Verdict
from fleettui.probes.engines.probe import AskedBy, FailureReader

KEY_NEEDED = "API key needed"
_NO_TRAITS, _NO_LOAD = EngineTraits(), EngineLoad()


class Draft:
    """Collects changes; `finish` gives the old reading itself where nothing changed."""

    __slots__ = ("_changes", "base")

    def __init__(self, kind: EngineKind, port: int, previous: EngineReading | None, path: AskedBy) -> None:
        self.base = previous or EngineReading(kind, port, "ok")
        self._changes: dict[str, Any] = {"path": path}

    def set(self, **values: Any) -> None:
        """Fields of the reading."""
        self._changes |= values

    def get(self, field: str) -> Any:
        """A field as it will be."""
        return self._changes[field] if field in self._changes else getattr(self.base, field)

    @property
    def traits(self) -> EngineTraits:
        """As they will be."""
        traits: EngineTraits | None = self.get("traits")
        return traits or _NO_TRAITS

    def set_traits(self, **values: Any) -> None:
        """Fields of `traits`; nothing that was never different from the defaults is kept."""
        traits = replace(self.traits, **values)
        if traits != self.traits:
            self.set(traits=None if traits == _NO_TRAITS else traits)

    def set_load(self, **values: Any) -> None:
        """Fields of `load`."""
        load: EngineLoad | None = self.get("load")
        self.set(load=replace(load or _NO_LOAD, **values))

    def refuse(self, path: str) -> None:
        """The engine said that it has no such path."""
        if path not in self.traits.refused:
            self.set_traits(refused=tuple(sorted({*self.traits.refused, path})))

    def set_version(self, version: Maybe[str]) -> None:
        """Another version than before was started anew: what the old one refused is asked again."""
        before = self.get("version")
        if version != before and not isinstance(version, Unknown) and not isinstance(before, Unknown):
            self.set_traits(refused=())
        self.set(version=version)

    def fail(self, state: EngineState, error: str) -> None:
        """No usable answer to a vital question."""
        self.set(state=state, error=error, loaded=Unknown(error), is_sleeping=Unknown(error))
        self.forget_load(error)

    def fail_by(self, verdict: Verdict) -> None:
        """As the verdict on a vital answer has it."""
        if verdict.state == "unauthorized":  # it is up: what it counts may be open all the same
            self.set_traits(needs_key=True)
            self.set(state="unauthorized", error=KEY_NEEDED, loaded=Unknown(KEY_NEEDED))
            return
        self.fail(verdict.state, verdict.error or "no answer")

    def succeed(self, *, has_key: bool = False) -> None:
        """A vital answer was usable; `has_key`: it was one that a key guards where any is."""
        if has_key:
            self.set_traits(needs_key=False)
        if self.traits.needs_key:
            self.set(state="unauthorized", error=KEY_NEEDED)
        else:
            self.set(state="ok", error=None)

    def forget_load(self, reason: str) -> None:
        """What is counted of requests is no longer known."""
        missing = Unknown(reason)
        self.set(running=missing, waiting=missing, kv_percent=missing, load=None)

    def set_copies_state(self) -> None:
        """Copies of an engine that sleeps as a whole sleep."""
        loaded = self.get("loaded")
        if isinstance(loaded, Unknown):
            return
        copies: tuple[LoadedModel, ...] = loaded
        is_asleep = self.get("is_sleeping") is True
        states: dict[ModelState, ModelState] = {"loaded": "sleeping"} if is_asleep else {"sleeping": "loaded"}
        self.set(loaded=tuple(
            replace(copy, state=states[copy.state]) if copy.state in states else copy for copy in copies
        ))  # fmt: skip

    def finish(self) -> EngineReading:
        """The reading."""
        reading = replace(self.base, **self._changes)
        return self.base if reading == self.base else reading


Taker = Callable[[Draft, Answer], None]
"""Puts one answer into a draft."""


def take_answers(draft: Draft, answers: Mapping[str, Answer], takers: Mapping[str, Taker]) -> None:
    """Put what came in (by path) into the draft, in the order of the takers."""
    for path, take in takers.items():
        answer = answers.get(path)
        if answer is not None:
            take(draft, answer)


def without_load(reading: EngineReading, reason: str) -> EngineReading:
    """The reading with nothing known of requests: once nobody asks the `busy_paths` any more."""
    draft = Draft(reading.kind, reading.port, reading, reading.path)
    draft.forget_load(reason)
    return draft.finish()


def failure_of(kind: EngineKind) -> FailureReader:
    """Reads that no answer to a vital question came at all: what is installed stays, what the engine refused
    is asked again."""

    def read_failure(
        port: int, text: str, previous: EngineReading | None = None, path: AskedBy = "tunnel"
    ) -> EngineReading:
        draft = Draft(kind, port, previous, path)
        draft.fail("down", text)
        draft.set_traits(refused=(), counts_load=False)
        return draft.finish()

    return read_failure
