"""What routing knows beyond the snapshot, from the state database: a few indexed looks, no heavy import."""

from __future__ import annotations

from collections.abc import Mapping

from fleettui.decide.knowledge import RouteKnowledge
from fleettui.store.database import Store, StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from fleettui.decide.model_need import SeenCopy
    from fleettui.model.lease import Lease
    from fleettui.model.model_shape import ModelShape
    from fleettui.model.snapshot import FleetSnapshot


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
    if _filled(store, ("model_shapes", "measured_needs")):
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
        load_rates=_load_rates(store, machines_dir),
    )


def knowledge_on_demand(
    store: Store, state_dir: str, machines_dir: str, fleet: FleetSnapshot
) -> RouteKnowledge:
    """The same, with shapes and measured figures read when a cold copy is judged: most answers are resident
    copies, and reading them would cost a tenth of a warm `--route`. Raises StoreError."""
    filled = _filled(store, ("load_rates", "model_shapes", "measured_needs"))
    rates = _load_rates(store, machines_dir) if "load_rates" in filled else {}
    if not filled - {"load_rates"}:
        return RouteKnowledge(catalog=fleet.catalog, load_rates=rates)
    stored = _Stored(state_dir, machines_dir)
    return RouteKnowledge(
        catalog=fleet.catalog,
        shapes=_ByDigest(stored, 0),
        measured=_ByDigest(stored, 1),
        load_rates=rates,
    )


class _Stored:
    """Shape and measured figures of digests that somebody asked for."""

    def __init__(self, state_dir: str, machines_dir: str) -> None:
        self._state_dir = state_dir
        self._machines_dir = machines_dir
        self.found: dict[str, tuple[Any, Any]] = {}

    def read(self, digest: str) -> tuple[Any, Any]:
        """Both, None for each that is not known. A connection of its own: the other one may be within a
        transaction. What cannot be read is not known."""
        if digest not in self.found:
            self.found[digest] = self._read(digest)
        return self.found[digest]

    def _read(self, digest: str) -> tuple[Any, Any]:
        from fleettui.store.measured_needs import load_measured
        from fleettui.store.model_shapes import load_shapes

        try:
            store = Store.open_readonly(self._state_dir)
            if store is None:
                return None, None
            with store:
                shapes = load_shapes(store, (digest,))
                measured = load_measured(store, self._machines_dir, (digest,))
        except StoreError:
            return None, None
        return shapes.get(digest), measured.get(digest)


class _ByDigest(Mapping[str, "Any"]):
    """One of the two, as a mapping; it lists what was asked for."""

    __slots__ = ("_stored", "_which")

    def __init__(self, stored: _Stored, which: int) -> None:
        self._stored = stored
        self._which = which

    def __getitem__(self, digest: str) -> Any:
        value = self._stored.read(digest)[self._which]
        if value is None:
            raise KeyError(digest)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter([digest for digest, both in self._stored.found.items() if both[self._which] is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)


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


def _load_rates(store: Store, machines_dir: str) -> dict[str, float]:
    from fleettui.store.load_rates import load_load_rates

    return load_load_rates(store, machines_dir)


def _filled(store: Store, tables: tuple[str, ...]) -> set[str]:
    """Those that hold anything: most fleets were never measured, and reading costs imports."""
    with store.transaction("DEFERRED") as connection:
        return {
            table
            for table in tables
            if store.has_table(table)
            and connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608 - ours
        }
