"""From what is loaded now to a plan, worked out anew only when either changed."""

from __future__ import annotations

from collections.abc import Mapping

from fleettui.decide.placement.diff import Loading, diff_loaded
from fleettui.decide.plan_nodes import loaded_now
from fleettui.model.placement import PlacementPlan
from fleettui.model.placement_answers import LoadedCopy, PlanDiff
from fleettui.model.snapshot import FleetSnapshot

NOTHING_MEASURED: Mapping[str, float] = {}


class NowChanges:
    """The last answer and what it was made of."""

    def __init__(self) -> None:
        self._seq = -1
        self._loaded: tuple[LoadedCopy, ...] = ()
        self._made_for: tuple[object, ...] = ()
        self._diff = PlanDiff()

    def from_now(
        self, fleet: FleetSnapshot, plan: PlacementPlan, rates: Mapping[str, float] = NOTHING_MEASURED
    ) -> PlanDiff:
        """What would be loaded, moved and taken away. `plan`: with the likely models; `rates`: bytes a second
        of the last loads of machines."""
        catalog = fleet.catalog
        before = self._made_for
        if fleet.seq != self._seq or not before or before[0] is not plan:
            self._seq = fleet.seq
            self._loaded = loaded_now(fleet.machines, plan, catalog)
        if (
            not before
            or before[0] is not plan
            or before[1] is not catalog
            or before[2:] != (self._loaded, rates)
        ):
            self._made_for = (plan, catalog, self._loaded, rates)
            loading = Loading(catalog, rates=rates)
            self._diff = diff_loaded(self._loaded, plan, loading)
        return self._diff
