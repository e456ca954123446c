"""One engine of a machine, called the way its polls go: through SSH, or straight to its address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from fleettui.fleet.engine_key import NO_KEY, EngineKey, read_key
from fleettui.fleet.poller import MachinePoller
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineReading
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


class EngineLine:
    """The engine of a candidate. Its key goes along, and is taken out of what comes back."""

    def __init__(self, fleet: LineFleet, candidate: RouteCandidate) -> None:
        self._fleet = fleet
        self._candidate = candidate

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
        for poller in self._fleet.pollers:
            if poller.record.machine.name == self._candidate.machine and poller.open_link is not None:
                return poller.open_link
        raise HttpFailure("lost", f"{self._candidate.machine} is not connected")

    def _endpoint(self) -> EngineEndpoint | None:
        """What the machine file declares of this very engine: another may have its port at another URL."""
        wanted, port = self._candidate, self._port()
        snapshot = self._fleet.snapshot.find(wanted.machine)
        declared = () if snapshot is None else snapshot.machine.engines
        same = [item for item in declared if item.kind == wanted.engine and item.port == port]
        by_url = [item for item in same if item.url and item.url.rstrip("/") == wanted.url.rstrip("/")]
        return next(iter(by_url or [item for item in same if not item.url]), None)

    def _key(self) -> EngineKey:
        snapshot, endpoint = self._fleet.snapshot.find(self._candidate.machine), self._endpoint()
        if snapshot is None or endpoint is None:
            return NO_KEY
        return read_key(endpoint, snapshot.machine.engines, snapshot.machine.config_file)

    def _engine(self) -> EngineReading | None:
        """By its URL the candidate's port may be another one than the engine's."""
        snapshot, wanted = self._fleet.snapshot.find(self._candidate.machine), self._candidate
        engines = [] if snapshot is None else [one for one in snapshot.engines if one.kind == wanted.engine]
        same = [engine for engine in engines if engine.port == wanted.port]
        return next(iter(same or engines), None)

    def _port(self) -> int:
        engine = self._engine()
        return self._candidate.port if engine is None else engine.port

    def _direct_url(self) -> str | None:
        """Where polls go straight to it; None: through SSH."""
        engine, endpoint = self._engine(), self._endpoint()
        has_url = endpoint is not None and endpoint.url is not None
        is_direct = engine is not None and engine.path != "tunnel"
        return self._candidate.url.rstrip("/") if has_url or is_direct else None
