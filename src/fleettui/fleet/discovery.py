"""Looks for engines that a machine's file does not name, by harmless GETs through the connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from fleettui.decide.discovery import MOST_PORTS, Suspect, find_suspects
from fleettui.fleet.engine_feeds import EngineFeeds
from fleettui.fleet.record import MachineRecord
from fleettui.model.engines import declares_engines
from fleettui.model.machine import EngineEndpoint, EngineKind
from fleettui.model.sockets import FoundEngine
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines import PROBES

AGAIN_S = 600.0
"""A port that was no engine is asked again after this, and once it was closed in between."""
TIMEOUT_S = 3.0
MOST_PATHS = 6
"""GETs to one port."""

_USUAL = tuple((probe.kind, probe.default_port) for probe in PROBES.values())
_COMMON_PATHS = tuple(dict.fromkeys(path for probe in PROBES.values() for path in probe.sign_paths))


class EngineDiscovery:
    """What was found on one machine, and which ports were asked when."""

    def __init__(self, record: MachineRecord, feeds: EngineFeeds | None, clock: Callable[[], float]) -> None:
        self._record = record
        self._feeds = feeds
        self._clock = clock
        self._asked_at: dict[int, float] = {}
        self._found: dict[int, EngineKind] = {}
        self._is_looking = False
        self._settled: tuple[object, ...] | None = None
        """What there was when nothing was left to ask."""

    def is_due(self) -> bool:
        """Something is to be asked, or what was found is gone. What is gone is forgotten now."""
        sockets, servers = self._record.facts.sockets, self._record.facts.servers
        if sockets is None or self._is_looking:
            return False
        now = self._clock()
        ports = [(item.port, item.is_loopback) for item in sockets.listening]
        seen = (ports, sockets.is_cut, servers, _states(self._record))
        if seen == self._settled and all(0 <= now - at < AGAIN_S for at in self._asked_at.values()):
            return False
        listening = {item.port for item in sockets.listening}
        if not sockets.is_cut:
            for port in [port for port in self._asked_at if port not in listening]:
                del self._asked_at[port]
            for port in [port for port in self._found if port not in listening]:
                self._release(EngineEndpoint(self._found.pop(port), port))
        self._tell()
        is_due = bool(self._suspects(None))
        self._settled = None if is_due else seen
        return is_due

    async def look(self, link: Link) -> None:
        """Ask what is due, one port after the other. Never raises but for the end of the connection."""
        self._is_looking = True
        try:
            for suspect in self._suspects(link.address):
                self._asked_at[suspect.port] = self._clock()
                kind = await _find_kind(link, suspect)
                if kind is not None:
                    self._found[suspect.port] = kind
                    self._tell()
        except HttpFailure:
            return  # this connection forwards to no such port
        finally:
            self._is_looking = False

    def _suspects(self, address: str | None) -> Sequence[Suspect]:
        record, now = self._record, self._clock()
        if record.facts.sockets is None:
            return ()
        known = {*self._found, *_declared_ports(record), _port_of(address)}
        explained = {item.endpoint.kind for item in record.engines.values() if item.is_answering}
        suspects = find_suspects(
            record.facts.sockets,
            record.facts.servers,
            _USUAL,
            known,
            explained | set(self._found.values()),
            _strange_ports(record),
        )
        recent = {port for port, at in self._asked_at.items() if 0 <= now - at < AGAIN_S}
        room = MOST_PORTS - len(recent)
        return [item for item in suspects if item.port not in recent][: max(0, room)]

    def _adopt(self, endpoint: EngineEndpoint) -> None:
        engine = self._record.adopt(endpoint)
        if self._feeds is not None:
            self._feeds.add(engine)

    def _release(self, endpoint: EngineEndpoint) -> None:
        if endpoint in self._record.engines and endpoint not in self._record.machine.engines:
            if self._feeds is not None:
                self._feeds.drop(endpoint)
            self._record.release(endpoint)

    def _tell(self) -> None:
        """Put what was found into the record; engines of a file that names none are polled."""
        record, sockets = self._record, self._record.facts.sockets
        if not declares_engines(record.machine) and not _has_declared_answer(record):
            for port, kind in self._found.items():
                if all(endpoint.port != port or endpoint.kind != kind for endpoint in record.engines):
                    self._adopt(EngineEndpoint(kind, port))
        found = []
        for port, kind in sorted(self._found.items()):
            listened = None if sockets is None else sockets.find(port)
            is_loopback = listened is not None and listened.is_loopback
            found.append(FoundEngine(kind, port, is_loopback, EngineEndpoint(kind, port) in record.engines))
        if record.found != tuple(found):
            record.found = tuple(found)


def _states(record: MachineRecord) -> list[object]:
    """How its engines are, as far as that decides what is looked for."""
    return [(item.reading and item.reading.state, item.has_answered) for item in record.engines.values()]


def _declared_ports(record: MachineRecord) -> set[int]:
    """Ports that are asked for what the file says."""
    ports = {endpoint.port for endpoint in record.machine.engines if endpoint.url is None}
    return ports - _strange_ports(record)


def _strange_ports(record: MachineRecord) -> set[int]:
    """Of a file without `engines:`, the port that it stands for, where something else answers there."""
    if declares_engines(record.machine):
        return set()
    readings = [record.engines[endpoint].reading for endpoint in record.machine.engines]
    return {item.port for item in readings if item is not None and item.state == "not_an_engine"}


def _has_declared_answer(record: MachineRecord) -> bool:
    """The engine that a file without `engines:` stands for answered once, or was not asked yet."""
    records = [record.engines[endpoint] for endpoint in record.machine.engines]
    return any(item.reading is None or item.has_answered for item in records)


def _port_of(address: str | None) -> int:
    """SSH's own; 0 where it is not known."""
    port = (address or "").rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


async def _find_kind(link: Link, suspect: Suspect) -> EngineKind | None:
    """Whose answers come from that port. Raises HttpFailure where SSH refuses to forward."""
    likely = chain.from_iterable(PROBES[kind].sign_paths for kind in suspect.kinds)
    for path in tuple(dict.fromkeys((*likely, *_COMMON_PATHS)))[:MOST_PATHS]:
        try:
            answer = await link.get(suspect.port, path, timeout_s=TIMEOUT_S)
        except HttpFailure as failure:
            if failure.kind == "forbidden":
                raise
            return None
        kind = _recognise(path, answer, suspect.kinds)
        if kind is not None:
            return kind
    return None


def _recognise(path: str, answer: HttpAnswer, likely: Sequence[EngineKind]) -> EngineKind | None:
    """By what the answer says, never by its status alone."""
    for kind in dict.fromkeys((*likely, *PROBES)):
        if PROBES[kind].recognise(path, answer):
            return kind
    return None
