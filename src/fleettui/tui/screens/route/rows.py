"""All rows of an answer, from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.route import RouteDecision
from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.screens.route.ranking import Ranked
from fleettui.view.route_names import KnownModel, model_rows
from fleettui.view.route_rows import RouteLayout, RouteRow, RouteRows, rejected_heading


class RankingRows:
    """Rows of each machine are kept until something they depend on changes."""

    def __init__(self) -> None:
        self.kept = RouteRows()

    def of_decision(
        self,
        decision: RouteDecision,
        shown: Sequence[Ranked],
        fleet: FleetSnapshot,
        layout: RouteLayout,
        nearest: Sequence[KnownModel],
        marked: str | None,
    ) -> list[RouteRow]:
        """Names nearest to an unknown one, those that can serve the model, the others with all reasons."""
        machines = {item.name: item for item in fleet.machines}
        rows: list[RouteRow] = model_rows(nearest, layout)
        for rank, candidate in shown:
            name = candidate.machine
            rows += self.kept.of_candidate(
                candidate, rank, machines.get(name), layout, is_marked=name == marked
            )
        if decision.rejected:
            rows.append(rejected_heading(len(decision.rejected), layout))
        for rejected in decision.rejected:
            rows += self.kept.of_rejected(rejected, layout, is_marked=rejected.machine == marked)
        self.kept.keep_only(machines)
        return rows
