"""Roles that are planned on one machine."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.placement import PlacementPlan, PlanRole
from fleettui.view.cells import Cell
from fleettui.view.plan_rows import need_text
from fleettui.view.tables import Line, table
from fleettui.view.text import clean

_MODELS = 3
"""Models that are named of those that fit."""


def planned_lines(
    name: str, plan: PlacementPlan | None, roles: Sequence[PlanRole], width: int | None = None
) -> list[Line]:
    """A line for each copy, or why there is none; nothing where nothing is to be planned."""
    if plan is None:
        return []
    excluded = next((item for item in plan.excluded_nodes if item.node == name), None)
    if excluded is not None:
        return [(Cell(f"nothing is planned here: {clean(excluded.reason)}", "dim"),)]
    needs = {role.name: role.min_vram_gb for role in roles}
    rows = []
    for item in sorted(plan.assignments, key=lambda item: item.gpus or (1 << 30,)):
        if item.node != name:
            continue
        need = need_text(needs.get(item.role, 0)) if item.gpus else ""
        said = [f"shares with {item.shared_with}"] if item.shared_with else []
        said += ["no GPU was left"] if item.fallback else []
        models = ", ".join(item.models_fitting[:_MODELS]) or "no model of the catalog"
        rows.append(
            (
                (Cell(f"GPU {'+'.join(map(str, item.gpus))}" if item.gpus else "CPU", "dim"),),
                (Cell(clean(item.label)),),
                (Cell(f"{need} GiB" if need else ""),),
                (Cell(clean(", ".join(said)), "dim"),),
                (Cell(f"fits {clean(models)}", "dim"),),
            )
        )
    return table((), rows, frozenset({2}), width) or [(Cell("nothing is planned here", "dim"),)]
