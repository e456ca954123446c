"""The state database as one `--route` uses it: the stored fleet, what is known of models, leases."""

from __future__ import annotations

import time
from contextlib import suppress

from fleettui.cli import diagnostics
from fleettui.cli.catalog import with_own_catalog
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.routing import decide_route, reject_unreachable
from fleettui.fleet.leasing import LeasedRoute, decide_with_lease
from fleettui.fleet.route_knowledge import knowledge_on_demand
from fleettui.model.record import replace
from fleettui.model.route import TIER_RESIDENT
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store, StoreError
from fleettui.store.leases import LOCK_WAIT_S, load_leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleettui.cli.folders import Folders
    from fleettui.model.lease import Lease
    from fleettui.model.route import RouteDecision, RouteQuery
    from fleettui.model.snapshot import FleetSnapshot


class RouteState:
    """Opened once for each call. With leases in use the file is opened for writing from the start: beside
    a second opening the first would have to be read again."""

    def __init__(self, folders: Folders, *, takes_lease: bool, hold_s: float | None = None) -> None:
        self.folders = folders
        self.lease_error: str | None = None
        """Why no lease was taken though one was wanted; None while all is well."""
        self._read_error: str | None = None
        self.hold_s = hold_s
        self.store: Store | None = None
        self.last_fleet: FleetSnapshot | None = None
        """What is stored, however old."""
        self._is_polled = True
        """What is decided on was asked for now; False: it is what was stored."""
        if takes_lease:
            try:
                self.store = Store.open(folders.state_dir, busy_timeout_s=LOCK_WAIT_S)
            except StoreError as error:
                self.lease_error = str(error)
        if self.store is None:
            try:
                self.store = Store.open_readonly(folders.state_dir)
            except StoreError as error:
                self._read_error = str(error)

    def close(self) -> None:
        """Close the file."""
        if self.store is not None:
            self.store.close()

    def load_fleet(self, max_age_s: float | None, now: float) -> FleetSnapshot | None:
        """What a running dashboard or `status --watch` stored, when it is fresh enough."""
        if self.store is None:
            if self._read_error is not None and max_age_s != 0:
                diagnostics.say_error("route", f"{self._read_error}; polling instead")
            return None
        from fleettui.store.flags import with_present_flags
        from fleettui.store.snapshots import load_for_routing

        folder = self.folders.machines_dir
        try:
            stored = load_for_routing(self.store, folder)
            if stored is None:
                return None
            self.last_fleet = stored.fleet
            if max_age_s == 0 or not stored.is_fresh(now, max_age_s):
                return None
            fleet = with_present_flags(self.store, folder, stored.fleet)
            self._is_polled = False
            return with_own_catalog(fleet, self.folders)
        except StoreError as error:
            diagnostics.say_error("route", f"{error}; polling instead")
            return None

    def decide(
        self, fleet: FleetSnapshot, query: RouteQuery, unreachable: Mapping[str, str] | None = None
    ) -> LeasedRoute:
        """The decision on this fleet with everything that is known, and a lease on it where one is wanted.

        `unreachable`: machines whose address takes no connection from here, with why.
        """
        store, fleet = self.store, self._with_last_settings(fleet)
        if store is not None and not store.is_readonly:
            known = self._known(fleet)  # ahead of the lock: the file is read for it, too
            try:
                return decide_with_lease(
                    store,
                    self.folders.machines_dir,
                    lambda leases, now: _decide(fleet, query, now, known, leases, unreachable),
                    self.hold_s,
                )
            except StoreError as error:
                self.lease_error = str(error)
        return LeasedRoute(self.preview(fleet, query, unreachable))

    def preview(
        self, fleet: FleetSnapshot, query: RouteQuery, unreachable: Mapping[str, str] | None = None
    ) -> RouteDecision:
        """The same decision, and no lease."""
        fleet = self._with_last_settings(fleet)
        return _decide(fleet, query, time.time(), self._known_now(fleet), (), unreachable)

    def is_enough(self, fleet: FleetSnapshot, query: RouteQuery) -> bool:
        """No machine that has not answered yet could be a better choice, by what is stored of it."""
        from fleettui.decide.early import cannot_be_beaten

        fleet = self._with_last_settings(fleet)
        known = self._known_now(fleet)
        decision = decide_route(fleet, query, time.time(), known)
        cards_read = {item.name for item in fleet.machines if item.gpu is not None}
        for candidate in decision.candidates:
            is_best = candidate.tier == TIER_RESIDENT
            if is_best and isinstance(candidate.free_mib, Unknown) and candidate.machine not in cards_read:
                return False  # once they are, it may be a better one
        return cannot_be_beaten(fleet, decision, self.last_fleet, known)

    def give_back(self, lease: Lease) -> None:
        """The choice came to nothing: nobody need go round it."""
        from fleettui.store.leases import release_lease

        if self.store is not None:
            with suppress(StoreError):
                release_lease(self.store, self.folders.machines_dir, lease.id)

    def _with_last_settings(self, fleet: FleetSnapshot) -> FleetSnapshot:
        """Who polls for one answer does not ask how an Ollama was set up: what was stored tells."""
        if not self._is_polled or self.last_fleet is None:
            return fleet
        from fleettui.decide.ollama_use import with_last_settings

        return with_last_settings(fleet, self.last_fleet)

    def _known(self, fleet: FleetSnapshot) -> RouteKnowledge:
        try:
            if self.store is not None:
                folders = self.folders
                return knowledge_on_demand(self.store, folders.state_dir, folders.machines_dir, fleet)
        except StoreError as error:
            diagnostics.say_error("route", f"{error}; needs and load rates are assumed")
        return RouteKnowledge(catalog=fleet.catalog)

    def _known_now(self, fleet: FleetSnapshot) -> RouteKnowledge:
        """That, and the leases of others as they stand."""
        leases = () if self.store is None else self._read_leases(self.store)
        return replace(self._known(fleet), leases=leases)

    def _read_leases(self, store: Store) -> tuple[Lease, ...]:
        try:
            return load_leases(store, self.folders.machines_dir, time.time())
        except StoreError as error:
            diagnostics.say_error("route", f"{error}; leases of others are not heeded")
            return ()


def _decide(
    fleet: FleetSnapshot,
    query: RouteQuery,
    now: float,
    known: RouteKnowledge,
    leases: tuple[Lease, ...],
    unreachable: Mapping[str, str] | None,
) -> RouteDecision:
    decision = decide_route(fleet, query, now, replace(known, leases=leases) if leases else known)
    return reject_unreachable(decision, unreachable) if unreachable else decision
