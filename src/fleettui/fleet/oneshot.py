"""Poll the fleet once, for a command that prints and ends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings

MORE_S = 3.0

AskMore = Callable[[FleetService], Awaitable[None]]

IsEnough = Callable[[FleetSnapshot], bool]
"""True when the caller needs no further machine."""


def poll_fleet_once(
    settings: FleetSettings,
    deadline_s: float,
    connector_settings: ConnectorSettings | None = None,
    is_enough: IsEnough | None = None,
    then: AskMore | None = None,
) -> FleetSnapshot:
    """Connect to every machine, ask each needed source once, close. Machines that have not answered by
    `deadline_s` are in the snapshot as they are then. `then`: asked before the connections close, for no
    longer than is left of that time, or `MORE_S` where less is left."""
    return asyncio.run(_poll(settings, deadline_s, connector_settings, is_enough, then))


async def _poll(
    settings: FleetSettings,
    deadline_s: float,
    connector_settings: ConnectorSettings | None,
    is_enough: IsEnough | None,
    then: AskMore | None,
) -> FleetSnapshot:
    started_at = time.monotonic()
    service = FleetService(settings, Connector(connector_settings))
    settled = asyncio.Event()

    def look(snapshot: FleetSnapshot) -> None:
        if all(poller.is_settled for poller in service.pollers) or (is_enough and is_enough(snapshot)):
            settled.set()

    service.subscribe(look)
    await service.start()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(settled.wait(), deadline_s)
    snapshot = service.final_snapshot()
    if then is not None:
        left_s = deadline_s - (time.monotonic() - started_at)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(then(service), max(left_s, MORE_S))
    await service.stop()
    return snapshot
