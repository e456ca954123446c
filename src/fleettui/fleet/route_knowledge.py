"""What routing knows beyond the snapshot, from the state database: a few indexed looks, no heavy import."""

from __future__ import annotations

from fleettui.decide.knowledge import RouteKnowledge
from fleettui.store.load_rates import load_load_rates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from fleettui.decide.model_need import SeenCopy
    from fleettui.model.lease import Lease
    from fleettui.model.model_shape import ModelShape
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.store.database import Store


def load_knowledge(
    store: Store,
    machines_dir: str,
    fleet: FleetSnapshot,
    model: str,
    leases: tuple[Lease, ...] = (),
) -> RouteKnowledge:
    """All that is stored and may count for this model. `leases` are handed in: whoever takes one reads them
    in the same transaction. Raises StoreError."""
    shapes: Mapping[str, ModelShape] = {}
    measured: Mapping[str, tuple[SeenCopy, ...]] = {}
    if _has_rows(store, ("model_shapes", "measured_needs")):
        from fleettui.store.measured_needs import load_measured
        from fleettui.store.model_shapes import load_shapes

        digests = digests_of(fleet, model)
        shapes = load_shapes(store, digests)
        measured = load_measured(store, machines_dir, digests)
    return RouteKnowledge(
        leases=leases,
        catalog=fleet.catalog,
        shapes=shapes,
        measured=measured,
        load_rates=load_load_rates(store, machines_dir),
    )


def digests_of(fleet: FleetSnapshot, model: str) -> Collection[str]:
    """Digests of the asked model, by all names that the catalog gives it, on every machine."""
    from fleettui.decide.matching import Asked, find_on_engine
    from fleettui.model.unknown import Unknown

    asked = Asked(model, fleet.catalog)
    found: dict[str, None] = {}
    for snapshot in fleet.machines:
        for engine in snapshot.engines:
            match = find_on_engine(engine, asked)
            for source in () if match is None else (match.copy, match.installed):
                if source is not None and not isinstance(source.digest, Unknown):
                    found[source.digest] = None
    return found


def _has_rows(store: Store, tables: tuple[str, ...]) -> bool:
    """Whether any holds anything: most fleets were never measured, and reading shapes costs imports."""
    with store.transaction("DEFERRED") as connection:
        return any(
            store.has_table(table)
            and connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608 - ours
            for table in tables
        )
