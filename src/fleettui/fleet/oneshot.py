"""Poll the fleet once, for a command that prints and ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings

IsEnough = Callable[[FleetSnapshot], bool]
"""True when the caller needs no further machine."""


def poll_fleet_once(
    settings: FleetSettings,
    deadline_s: float,
    connector_settings: ConnectorSettings | None = None,
    is_enough: IsEnough | None = None,
) -> FleetSnapshot:
    """Connect to every machine, ask each needed source once, close. Machines that have not answered by
    `deadline_s` are in the snapshot as they are then."""
    return asyncio.run(_poll(settings, deadline_s, connector_settings, is_enough))


async def _poll(
    settings: FleetSettings,
    deadline_s: float,
    connector_settings: ConnectorSettings | None,
    is_enough: IsEnough | None,
) -> FleetSnapshot:
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
    await service.stop()
    return snapshot
