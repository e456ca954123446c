"""What one engine of a machine said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleettui.decide.copy_uses import note_uses
from fleettui.decide.longest_context import fill_longest_contexts
from fleettui.decide.stall import note_stall
from fleettui.fleet.engine_key import NO_KEY, EngineKey
from fleettui.fleet.source_record import SourceRecord
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineReading
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines import PROBES, AskedBy
from fleettui.probes.engines.draft import without_load

TIMEOUTS_TO_DOWN = 3
"""In a row: an engine under load answers late, which its source says meanwhile."""

NO_ANSWER = 0
"""In place of a status: none came."""


def path_name(endpoint: EngineEndpoint, path: str) -> str:
    """`ollama:11434/api/ps`: one question to one engine of a machine."""
    return f"{endpoint.kind}:{endpoint.port}{path}"


class EngineRecord:
    """Latest reading of one engine and the state of its source."""

    def __init__(
        self, endpoint: EngineEndpoint, siblings: Sequence[EngineEndpoint], key: EngineKey = NO_KEY
    ) -> None:
        first = next(other for other in siblings if other.kind == endpoint.kind)
        self.endpoint = endpoint
        self.name = endpoint.kind if first == endpoint else f"{endpoint.kind}:{endpoint.port}"
        """Of the source."""
        self.probe = PROBES[endpoint.kind]
        self.key = key
        self.source = SourceRecord()
        self.reading: EngineReading | None = None
        self.longest_contexts: Mapping[str, int] = {}
        """Of models, by digest: tokens that they were made for."""
        self._vital = frozenset(self.probe.vital_paths)
        self._each = frozenset(question.path for question in self.probe.questions if not question.every_s)
        self._load = frozenset(question.path for question in self.probe.questions if question.counts_load)
        self._last: dict[str, tuple[int, bytes, EngineReading]] = {}
        """The last answer to each question of every poll, and the reading after it."""
        self._timeouts = 0
        """Vital questions without an answer, in a row."""
        self._busy: dict[str, HttpAnswer | None] = {}
        """Answers to the `busy_paths` asked last, None until they come: they are read together."""
        self._knows_busy = False
        """Part of the reading stems from `busy_paths`."""

    @property
    def path_names(self) -> tuple[str, ...]:
        """What is asked of this engine at first, each path by a name of its own on the machine."""
        return tuple(
            path_name(self.endpoint, question.path)
            for question in self.probe.questions
            if question.may_ask(None)
        )

    def take(self, path: str, answer: HttpAnswer | HttpFailure, way: AskedBy, now: float) -> bool:
        """Read an answer; False when what is asked now and then must be asked anew.

        So it is where a resident model is not in the installed list, and where the engine is back.
        """
        if isinstance(answer, HttpFailure):
            self._fail(path, answer, way, now)
            return True
        if self.key is not NO_KEY:
            answer = self.key.strip(answer)
        if path in self._busy:
            self._take_busy(path, answer, way)
            return True
        before = self.reading
        is_vital = path in self._vital
        last = self._last.get(path)
        if (
            last is not None
            and last[2] is before
            and last[0] == answer.status
            and last[1] == answer.body
            and _holds_still(before, way, now)
        ):
            if is_vital:
                self._timeouts = 0
                self.source.succeed(now)
            return True
        reading = self.probe.read_answers(self.endpoint.port, {path: answer}, before, way)
        if self.key is not NO_KEY:
            reading = self._name_key(reading)
        reading = note_uses(reading, before, now, self.source.read_at)
        reading = note_stall(reading, before, now)
        reading = fill_longest_contexts(reading, self.longest_contexts)
        if reading == before:
            reading = before
        self.reading = reading
        if path in self._each:
            self._last[path] = (answer.status, answer.body, reading)
        if not is_vital:
            return True
        self._timeouts = 0
        if not reading.is_answering:
            self.source.fail(reading.error or "no usable answer", now)
            return True
        self.source.succeed(now)
        return not (before is not None and before.state == "down") and _knows_all_loaded(reading)

    @property
    def is_answering(self) -> bool:
        """Its last answer was one of its kind."""
        return self.reading is not None and self.reading.is_answering

    @property
    def has_answered(self) -> bool:
        """It was there once."""
        return self.source.read_at is not None

    @property
    def busy_paths(self) -> tuple[str, ...]:
        """What tells who is busy at a price, and may be asked now."""
        reading = self.reading
        return () if reading is None or reading.state == "down" else self.probe.busy_paths(reading)

    def note_longest_contexts(self, known: Mapping[str, int]) -> None:
        """More models are known by now; `known` may still grow."""
        self.longest_contexts = known
        if self.reading is not None:
            self.reading = fill_longest_contexts(self.reading, known)

    def begin_busy(self, paths: Sequence[str]) -> None:
        """These `busy_paths` are asked now."""
        self._busy = dict.fromkeys(paths)
        self._knows_busy = self._knows_busy or bool(paths)

    @property
    def is_busy_awaited(self) -> bool:
        """Some of the `busy_paths` asked last are not answered."""
        return None in self._busy.values()

    def forget_busy(self) -> None:
        """Nobody asks the `busy_paths` any more: what they told is not known from now on."""
        self._busy = {}
        if self._knows_busy and self.reading is not None:
            self.reading = without_load(self.reading, "asked only while somebody wants it")
        self._knows_busy = False

    def _take_busy(self, path: str, answer: HttpAnswer, way: AskedBy) -> None:
        self._busy[path] = answer
        found = {asked: taken for asked, taken in self._busy.items() if taken is not None}
        if len(found) < len(self._busy) or self.reading is None:
            return
        self._busy = {}
        if any(taken.status == NO_ANSWER for taken in found.values()):
            self.reading = without_load(self.reading, "not every model answered")
        else:
            self.reading = self.probe.read_answers(self.endpoint.port, found, self.reading, way)

    def _fail(self, path: str, failure: HttpFailure, way: AskedBy, now: float) -> None:
        """No answer at all: a vital question takes the engine down, another costs its own part."""
        if path not in self._vital:
            if path in self._busy:
                self._take_busy(path, HttpAnswer(NO_ANSWER, (), b"", now), way)
            elif path in self._load and self.reading is not None:
                self.reading = without_load(self.reading, failure.text)
            return
        is_up = self.reading is not None and self.reading.is_answering
        self._timeouts = self._timeouts + 1 if failure.kind == "timeout" else TIMEOUTS_TO_DOWN
        if is_up and self._timeouts < TIMEOUTS_TO_DOWN:
            return
        self._last.clear()
        reading = self.probe.read_failure(self.endpoint.port, failure.text, self.reading, way)
        self.reading = note_uses(reading, self.reading, now)
        self.source.fail(failure.text, now)

    def _name_key(self, reading: EngineReading) -> EngineReading:
        """The reading with what is wrong about the key, where something is."""
        if reading.state == "unauthorized":
            refused = f"the API key in {self.key.variable} is refused (engines[].api_key_env)"
            return replace(reading, error=self.key.problem or refused)
        if reading.state == "ok" and reading.error is None and self.key.problem is not None:
            return replace(reading, error=self.key.problem)
        return reading


def _holds_still(reading: EngineReading | None, way: AskedBy, now: float) -> bool:
    """The same bytes still mean the same: no copy's time has run out meanwhile."""
    if reading is None or reading.state != "ok" or reading.path != way or isinstance(reading.loaded, Unknown):
        return False
    return all(
        copy.is_pinned or isinstance(copy.expires_at, Unknown) or copy.expires_at > now
        for copy in reading.loaded
    )


def _knows_all_loaded(reading: EngineReading) -> bool:
    if isinstance(reading.loaded, Unknown) or isinstance(reading.installed, Unknown):
        return True
    installed = {model.name for model in reading.installed}
    return all(copy.name in installed for copy in reading.loaded)
