"""What routing knows beyond the snapshot of every copy that is loaded anywhere."""

from __future__ import annotations

from fleettui.decide.knowledge import RouteKnowledge
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.leases import load_leases
from fleettui.store.load_rates import load_load_rates
from fleettui.store.measured_needs import load_measured
from fleettui.store.model_shapes import load_shapes


def load_all_knowledge(store: Store, machines_dir: str, fleet: FleetSnapshot, now: float) -> RouteKnowledge:
    """Leases, shapes, measured figures and load rates, of the digests that are loaded. Raises StoreError."""
    digests = {
        copy.digest: None
        for machine in fleet.machines
        for copy in machine.loaded
        if not isinstance(copy.digest, Unknown)
    }
    return RouteKnowledge(
        leases=load_leases(store, machines_dir, now),
        catalog=fleet.catalog,
        shapes=load_shapes(store, digests),
        measured=load_measured(store, machines_dir, digests),
        load_rates=load_load_rates(store, machines_dir),
    )
