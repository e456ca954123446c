"""From nodes, roles and catalog to the whole plan."""

from __future__ import annotations

from fleettui.decide.placement.board import Board
from fleettui.decide.placement.explain import explain
from fleettui.decide.placement.fitting import Fitting
from fleettui.decide.placement.greedy import fill
from fleettui.decide.placement.pool import Pool, build_pool
from fleettui.decide.placement.queue import Queue, build_queue
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.placement import (
    Assignment,
    PlacementPlan,
    PlanMethod,
    PlanNode,
    PlanRole,
    place_label,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_TOLD = 4
"""Places that a warning names."""


def plan(
    nodes: Iterable[PlanNode],
    roles: Iterable[PlanRole],
    catalog: Catalog = EMPTY_CATALOG,
    *,
    include_unavailable: bool = False,
) -> PlacementPlan:
    """The greedy plan: roles by priority, each copy on the first free place that suits."""
    pool = build_pool(nodes, include_unavailable)
    queue = build_queue(roles)
    return assemble(fill(Board(pool, catalog), queue), queue)


def assemble(board: Board, queue: Queue, method: PlanMethod = "greedy") -> PlacementPlan:
    """The plan that a filled board stands for."""
    assignments = list_assignments(board, queue)
    return PlacementPlan(
        assignments,
        explain(board, queue),
        board.pool.disabled,
        board.pool.excluded,
        (*_node_warnings(board.pool), *_model_warnings(assignments, board.catalog)),
        queue.switched_off,
        method,
    )


def list_assignments(board: Board, queue: Queue) -> tuple[Assignment, ...]:
    """Every copy that has a place, by queue and number."""
    fitting = Fitting(board.catalog)
    pool = board.pool
    found = []
    for role in queue.roles:
        for copy in range(role.count):
            spot = board.spots.get((role.name, copy))
            if spot is not None:
                found.append(
                    Assignment(
                        role.name,
                        copy,
                        pool.nodes[spot.node].name,
                        tuple(pool.gpus[rank].gpu.index for rank in spot.gpus),
                        spot.shared_with,
                        spot.fallback,
                        role.slots,
                        fitting.models(board, role, spot),
                    )
                )
    return tuple(found)


def _node_warnings(pool: Pool) -> list[str]:
    offline = [node.name for node in pool.nodes if node.is_offline]
    unavailable = [f"{node.name} ({node.unavailable})" for node in pool.nodes if node.unavailable]
    warnings = [f"{name} is offline: planned by its stored profile" for name in offline]
    return warnings + [f"{told}: planned because unavailable nodes were asked for" for told in unavailable]


def _model_warnings(assignments: tuple[Assignment, ...], catalog: Catalog) -> list[str]:
    if not catalog.models:
        return ["the catalog has no models, so none fits anywhere"] if assignments else []
    empty: dict[str, list[str]] = {}
    for item in assignments:
        if not item.models_fitting:
            empty.setdefault(item.role, []).append(place_label(item.node, item.gpus))
    return [f"{role}: no model of the catalog fits on {_some(places)}" for role, places in empty.items()]


def _some(places: list[str]) -> str:
    unique = list(dict.fromkeys(places))
    more = len(unique) - _TOLD
    return ", ".join(unique[:_TOLD]) + (f" and {more} more" if more > 0 else "")
