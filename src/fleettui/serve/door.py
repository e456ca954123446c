"""What every address of the API works with: the running service, its folders, streams, this machine."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING

from fleettui.serve.answers import encode_document
from fleettui.serve.audit import Audit
from fleettui.serve.metrics.exposition import Exposition
from fleettui.serve.permission import Access
from fleettui.serve.rates import Rate
from fleettui.view.document import infrastructure_document

if TYPE_CHECKING:
    from fleettui.fleet.own_machine import OwnMachine
    from fleettui.fleet.service import FleetService
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.serve.stream_hub import StreamHub

KEPT_S = 0.25
"""An encoded document of one snapshot is that old at most: its ages are told to a tenth of a second."""

ACTIONS_PER_S, ACTIONS_AT_ONCE = 20.0, 100
"""Of one caller."""


class Door:
    """Shared by all requests, in one event loop."""

    def __init__(
        self,
        service: FleetService,
        state_dir: str,
        machines_dir: str,
        own: OwnMachine,
        hub: StreamHub,
        access: Access | None = None,
    ) -> None:
        self.service = service
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.own = own
        self.hub = hub
        self.access = Access() if access is None else access
        """Who may read and act; without one whoever reaches it reads, and nobody acts."""
        self.audit = Audit(service.events.add)
        self.action_rate = Rate(ACTIONS_PER_S, ACTIONS_AT_ONCE)
        self.started_at = time.time()
        self.planning = asyncio.Semaphore(1)
        """A plan of a large fleet takes a core for a while; one at a time."""
        self.decisions: Counter[int] = Counter()
        """Of routing, by the exit code of the command line."""
        self.exposition = Exposition(self)
        self._encoding: asyncio.Task[bytes] | None = None
        self._encoded: tuple[FleetSnapshot, float] | None = None

    async def fleet(self) -> FleetSnapshot:
        """The latest snapshot; a file written before this call is in it."""
        await self.service.fresh.look()
        return self.service.snapshot

    @property
    def is_ready(self) -> bool:
        """Every machine has answered once since the start, failed, or had its time."""
        return self.service.first_round.is_over

    async def wait_until_ready(self) -> None:
        """At most 10 s after the start: before, nobody could be chosen."""
        while not self.is_ready:  # noqa: ASYNC110 - the time that is over is no event
            await asyncio.sleep(0.05)

    async def infrastructure(self) -> bytes:
        """The whole fleet as JSON; made once for all who ask in the same moment, beside the event loop."""
        fleet, now = await self.fleet(), time.monotonic()
        made = self._encoded
        if self._encoding is None or made is None or made[0] is not fleet or now - made[1] > KEPT_S:
            self._encoded = (fleet, now)
            self._encoding = asyncio.create_task(asyncio.to_thread(_encode, fleet, time.time()))
        return await asyncio.shield(self._encoding)


def _encode(fleet: FleetSnapshot, now: float) -> bytes:
    return encode_document(infrastructure_document(fleet, now)) + b"\n"
