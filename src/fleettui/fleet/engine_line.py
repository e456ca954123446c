"""One engine of a machine, called the way its polls go: through SSH, or straight to its address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from fleettui.decide.candidates import engine_address
from fleettui.fleet.engine_key import NO_KEY, EngineKey, read_key
from fleettui.fleet.poller import MachinePoller
from fleettui.model.machine import EngineEndpoint, EngineKind
from fleettui.model.readings import EngineReading
from fleettui.model.record import dataclass
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.direct_http import get_direct, post_direct
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer, Link


class LineFleet(Protocol):
    """What is needed of a running service."""

    @property
    def snapshot(self) -> FleetSnapshot:
        """The newest."""

    @property
    def pollers(self) -> tuple[MachinePoller, ...]:
        """Those of all machines."""


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Which engine of which machine."""

    machine: str
    kind: EngineKind
    port: int
    url: str = ""
    """Base URL under which callers reach it; empty: by its port, as its reading has it."""

    @property
    def shown(self) -> str:
        """`bora:11434`, for the record of what was called."""
        return f"{self.machine}:{self.port}"


def address_of(candidate: RouteCandidate) -> EngineAddress:
    """The engine of a candidate."""
    return EngineAddress(candidate.machine, candidate.engine, candidate.port, candidate.url)


def find_link(fleet: LineFleet, machine: str) -> Link | None:
    """The open connection to a machine; None where there is none."""
    for poller in fleet.pollers:
        if poller.record.machine.name == machine and poller.open_link is not None:
            return poller.open_link
    return None


class EngineLine:
    """A way to one engine. Its key goes along, and is taken out of what comes back."""

    def __init__(self, fleet: LineFleet, address: EngineAddress) -> None:
        self._fleet = fleet
        self.address = address

    async def post(self, path: str, document: Mapping[str, object], *, timeout_s: float) -> HttpAnswer:
        """Send a JSON document once. Raises HttpFailure."""
        url, key, body = self._direct_url(), self._key(), json.dumps(document).encode()
        if url is not None:
            answer = await post_direct(url + path, body, headers=key.headers, timeout_s=timeout_s)
        else:
            port, headers = self._port(), key.headers
            answer = await self._link().post(port, path, body, headers=headers, timeout_s=timeout_s)
        return key.strip(answer)

    async def get(self, path: str, *, timeout_s: float) -> HttpAnswer:
        """Fetch a path. Raises HttpFailure."""
        url, key = self._direct_url(), self._key()
        if url is not None:
            answer = await get_direct(url + path, headers=key.headers, timeout_s=timeout_s)
        else:
            answer = await self._link().get(self._port(), path, headers=key.headers, timeout_s=timeout_s)
        return key.strip(answer)

    def _link(self) -> Link:
        link = find_link(self._fleet, self.address.machine)
        if link is None:
            raise HttpFailure("lost", f"{self.address.machine} is not connected")
        return link

    def _endpoint(self) -> EngineEndpoint | None:
        """What the machine file declares of this very engine: another may have its port at another URL."""
        wanted, port = self.address, self._port()
        snapshot = self._fleet.snapshot.find(wanted.machine)
        declared = () if snapshot is None else snapshot.machine.engines
        same = [item for item in declared if item.kind == wanted.kind and item.port == port]
        if not wanted.url:
            return next(iter(same), None)
        by_url = [item for item in same if item.url and item.url.rstrip("/") == wanted.url.rstrip("/")]
        return next(iter(by_url or [item for item in same if not item.url]), None)

    def _key(self) -> EngineKey:
        snapshot, endpoint = self._fleet.snapshot.find(self.address.machine), self._endpoint()
        if snapshot is None or endpoint is None:
            return NO_KEY
        return read_key(endpoint, snapshot.machine.engines, snapshot.machine.config_file)

    def _engine(self) -> EngineReading | None:
        """By its URL the address may have another port than the engine; without one no other will do."""
        snapshot, wanted = self._fleet.snapshot.find(self.address.machine), self.address
        engines = [] if snapshot is None else [one for one in snapshot.engines if one.kind == wanted.kind]
        same = [engine for engine in engines if engine.port == wanted.port]
        return next(iter(same or (engines if wanted.url else ())), None)

    def _port(self) -> int:
        engine = self._engine()
        return self.address.port if engine is None else engine.port

    def _direct_url(self) -> str | None:
        """Where polls go straight to it; None: through SSH."""
        engine, endpoint = self._engine(), self._endpoint()
        has_url = endpoint is not None and endpoint.url is not None
        is_direct = engine is not None and engine.path != "tunnel"
        if not (has_url or is_direct):
            return None
        snapshot = self._fleet.snapshot.find(self.address.machine)
        if not self.address.url and snapshot is not None and engine is not None:
            return engine_address(snapshot.machine, engine)[2]
        return self.address.url.rstrip("/") or None
