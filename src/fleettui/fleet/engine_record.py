"""What one engine of a machine said."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.fleet.source_record import SourceRecord
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineReading
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines import ENGINES, AskedBy


def path_name(endpoint: EngineEndpoint, path: str) -> str:
    """`ollama:11434/api/ps`: one question to one engine of a machine."""
    return f"{endpoint.kind}:{endpoint.port}{path}"


class EngineRecord:
    """Latest reading of one engine and the state of its source."""

    def __init__(self, endpoint: EngineEndpoint, siblings: Sequence[EngineEndpoint]) -> None:
        first = next(other for other in siblings if other.kind == endpoint.kind)
        self.endpoint = endpoint
        self.name = endpoint.kind if first == endpoint else f"{endpoint.kind}:{endpoint.port}"
        """Of the source."""
        self.probe = ENGINES.get(endpoint.kind)
        self.source = SourceRecord()
        self.reading: EngineReading | None = None
        self._last: tuple[str, int, bytes] | None = None

    @property
    def path_names(self) -> tuple[str, ...]:
        """Everything that is asked of this engine, each path by a name of its own on the machine."""
        paths = () if self.probe is None else (*self.probe.tick_paths, *self.probe.slow_paths)
        return tuple(path_name(self.endpoint, path) for path in paths)

    def take(self, path: str, answer: HttpAnswer | HttpFailure, way: AskedBy, now: float) -> bool:
        """Read an answer; False when a resident model is not in the installed list, so that it is stale."""
        if self.probe is None:
            return True
        is_tick_path = path in self.probe.tick_paths
        if isinstance(answer, HttpFailure):
            if is_tick_path:
                self._last = None
                self.reading = self.probe.read_failure(self.endpoint.port, answer.text, self.reading, way)
                self.source.fail(answer.text, now)
            return True
        if is_tick_path and (path, answer.status, answer.body) == self._last and self._holds_still(way, now):
            self.source.succeed(now)
            return True
        self.reading = self.probe.read_answers(self.endpoint.port, {path: answer}, self.reading, way)
        if not is_tick_path:
            return True
        self._last = (path, answer.status, answer.body)
        if self.reading.is_answering:
            self.source.succeed(now)
        else:
            self.source.fail(self.reading.error or "no usable answer", now)
        return self._knows_all_loaded()

    def _holds_still(self, way: AskedBy, now: float) -> bool:
        """The same bytes still mean the same: no copy's time has run out meanwhile."""
        reading = self.reading
        if (
            reading is None
            or reading.state != "ok"
            or reading.path != way
            or isinstance(reading.loaded, Unknown)
        ):
            return False
        return all(
            copy.is_pinned or isinstance(copy.expires_at, Unknown) or copy.expires_at > now
            for copy in reading.loaded
        )

    def _knows_all_loaded(self) -> bool:
        reading = self.reading
        if reading is None or isinstance(reading.loaded, Unknown) or isinstance(reading.installed, Unknown):
            return True
        installed = {model.name for model in reading.installed}
        return all(copy.name in installed for copy in reading.loaded)
