"""Ends leases whose effect the polls show; with none in the state database it costs one indexed look."""

from __future__ import annotations

from fleettui.decide.lease_effect import shown_leases
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.database import Store
from fleettui.store.leases import drop_leases, load_leases


class LeaseWatch:
    """Compares each snapshot that is stored with the one before it."""

    def __init__(self) -> None:
        self._before: FleetSnapshot | None = None

    def look_at(self, store: Store, fleet: FleetSnapshot) -> None:
        """End what this snapshot shows the effect of. Raises StoreError."""
        before, self._before = self._before, fleet
        leases = load_leases(store, fleet.machines_dir, fleet.taken_at)
        if leases:
            shown = shown_leases(leases, before, fleet)
            if shown:
                drop_leases(store, fleet.machines_dir, shown)
