"""Routing for a front end that stays: what is stored is read off the event loop, a pick takes a lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.fleet.leasing import lease_candidate
from fleettui.fleet.route_knowledge import load_knowledge
from fleettui.model.lease import Lease
from fleettui.model.record import replace
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.store.leases import load_leases

if TYPE_CHECKING:
    from fleettui.fleet.warm_up import WarmedUp, WarmFleet

LEASES_AGAIN_S = 1.0
"""Other askers' leases are seen that late."""
REST_AGAIN_S = 10.0
"""Shapes of models and measured figures change when somebody loads a model."""


class RouteDeskError(Exception):
    """Nothing was leased, or nothing was loaded. The text says what failed and why."""


class RouteDesk:
    """Routing over the fleet of one machines folder."""

    def __init__(
        self,
        fleet_of: Callable[[], FleetSnapshot],
        state_dir: str,
        machines_dir: str,
        clock: Callable[[], float] = time.time,
        service: WarmFleet | None = None,
    ) -> None:
        """`service`: loads models where that is asked for; None: nothing is loaded from here."""
        self._fleet_of = fleet_of
        self._service = service
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self._clock = clock
        self._model = ""
        self._knowledge = NOTHING_KNOWN
        self._leases_at = self._rest_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self.error: str | None = None
        """Why stored figures and leases are not known; None while all is well."""

    def knowledge_of(self, model: str) -> RouteKnowledge:
        """As read last, the same object while nothing changed; where it is old it is read anew meanwhile."""
        if model != self._model:
            self._model = model
            known = self._knowledge
            self._knowledge = replace(NOTHING_KNOWN, leases=known.leases, load_rates=known.load_rates)
            self._rest_at = float("-inf")
        now = time.monotonic()
        is_old = now - self._leases_at >= LEASES_AGAIN_S or now - self._rest_at >= REST_AGAIN_S
        if is_old and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().create_task(self._read_again(now))
        return self._knowledge

    @property
    def load_rates(self) -> Mapping[str, float]:
        """Bytes a second of the last loads of machines, by name; as read last, like all else here."""
        return self.knowledge_of(self._model).load_rates

    async def _read_again(self, now: float) -> None:
        model, is_rest_old = self._model, now - self._rest_at >= REST_AGAIN_S
        self._leases_at = now
        try:
            read = await asyncio.to_thread(self._read, model, self._fleet_of(), is_rest_old)
        except StoreError as error:
            self.error = str(error)
            return
        self.error = None
        if model != self._model:
            return
        if is_rest_old:
            self._rest_at = now
        else:
            read = replace(self._knowledge, leases=read.leases)
        if read != self._knowledge:
            self._knowledge = read

    def _read(self, model: str, fleet: FleetSnapshot, is_rest_old: bool) -> RouteKnowledge:
        store = Store.open_readonly(self.state_dir)
        if store is None:
            return NOTHING_KNOWN
        with store:
            leases = load_leases(store, self.machines_dir, self._clock())
            if not is_rest_old:
                return replace(NOTHING_KNOWN, leases=leases)
            return load_knowledge(store, self.machines_dir, fleet, model, leases)

    async def take_lease(self, candidate: RouteCandidate, canonical: str) -> Lease:
        """A lease on a candidate that the operator picked. Raises RouteDeskError."""
        try:
            lease = await asyncio.to_thread(
                lease_candidate, self.state_dir, self.machines_dir, candidate, canonical
            )
        except StoreError as error:
            raise RouteDeskError(str(error)) from error
        self._knowledge = replace(self._knowledge, leases=(*self._knowledge.leases, lease))
        return lease

    async def warm_up(
        self, candidate: RouteCandidate, context: int | None, note: Callable[[str], None]
    ) -> WarmedUp:
        """Have the model loaded there; `note` hears how far it is. Cancelled it leaves the load alone. Raises
        RouteDeskError."""
        from fleettui.fleet.warm_up import WarmUpError, keep_measured, warm_up

        def keep(warmed: WarmedUp) -> None:
            with Store.open(self.state_dir) as store:
                keep_measured(store, self.machines_dir, warmed, self._clock())

        if self._service is None:
            raise RouteDeskError("nothing is loaded from here")
        try:
            warmed = await warm_up(self._service, candidate, note, context=context)
        except WarmUpError as error:
            raise RouteDeskError(str(error)) from error
        try:
            await asyncio.to_thread(keep, warmed)
        except StoreError as error:
            self.error = str(error)  # it is loaded all the same
        self._rest_at = float("-inf")
        return warmed
