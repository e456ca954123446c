"""Keys, known_hosts, ssh_config and the agent: when they change, what was refused for good is tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fleettui.fleet.poller import MachinePoller
from fleettui.net.connector import Connector

ACCESS_PERIOD_S = 30.0
"""How often keys and configuration are looked at while no machine waits for a change of them."""


class AccessWatch:
    """Compares the state of what logins are made with."""

    def __init__(self, connector: Connector, clock: Callable[[], float]) -> None:
        self._connector = connector
        self._clock = clock
        self._stamp: object = None
        """State when it was last looked at."""
        self._noted_at = 0.0

    async def note(self) -> bool:
        """Remember keys and configuration as they are now; True if they changed since the last time."""
        before, self._stamp = self._stamp, await self._connector.read_stamp()
        self._noted_at = self._clock()
        return before is not None and before != self._stamp

    async def retry_refused(self, pollers: Iterable[MachinePoller]) -> None:
        """Poke those that wait for the operator, where something changed."""
        refused = [poller for poller in pollers if poller.record.waits_for_operator]
        if not refused and self._clock() - self._noted_at < ACCESS_PERIOD_S:
            return
        if await self.note():
            for poller in refused:
                poller.poke()
