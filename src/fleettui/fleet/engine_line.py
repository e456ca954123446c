"""One engine of a machine, called the way its polls go: through SSH, or straight to its address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from fleettui.fleet.engine_key import NO_KEY, EngineKey, read_key
from fleettui.fleet.poller import MachinePoller
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

    def _key(self) -> EngineKey:
        snapshot, port = self._fleet.snapshot.find(self._candidate.machine), self._port()
        if snapshot is None:
            return NO_KEY
        machine = snapshot.machine
        endpoint = next((item for item in machine.engines if item.port == port), None)
        return NO_KEY if endpoint is None else read_key(endpoint, machine.engines, machine.config_file)

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
        snapshot, engine, port = (
            self._fleet.snapshot.find(self._candidate.machine),
            self._engine(),
            self._port(),
        )
        declared = () if snapshot is None else snapshot.machine.engines
        has_url = any(item.port == port and item.url for item in declared)
        is_direct = engine is not None and engine.path != "tunnel"
        return self._candidate.url.rstrip("/") if has_url or is_direct else None
