"""Nodes as they would be, and what the loss of each would cost."""

from __future__ import annotations

from fleettui.decide.natural import natural_key
from fleettui.decide.placement.board import Board, Spot
from fleettui.decide.placement.greedy import fill
from fleettui.decide.placement.optimal import fill_optimal
from fleettui.decide.placement.plan import list_assignments
from fleettui.decide.placement.pool import Pool, build_pool
from fleettui.decide.placement.queue import Queue, build_queue
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.placement import Assignment, PlanNode, PlanRole
from fleettui.model.placement_answers import NodeLoss, RoleLoss
from fleettui.model.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Nodes = tuple[PlanNode, ...]


def without_node(nodes: Iterable[PlanNode], name: str) -> Nodes:
    """All but one. Raises LookupError where there is none of that name."""
    given = tuple(nodes)
    _find(given, name)
    return tuple(node for node in given if node.name != name)


def disable_gpu(nodes: Iterable[PlanNode], name: str, index: int) -> Nodes:
    """The same with one GPU out of plans. Raises LookupError where there is no such GPU."""
    given = tuple(nodes)
    found = _find(given, name)
    if all(gpu.index != index for gpu in found.gpus):
        has = ", ".join(str(gpu.index) for gpu in found.gpus) or "none"
        raise LookupError(f"{name} has no GPU {index}; it has {has}")
    gpus = tuple(replace(gpu, disabled=True) if gpu.index == index else gpu for gpu in found.gpus)
    return tuple(replace(node, gpus=gpus) if node.name == name else node for node in given)


def without_parts(nodes: Iterable[PlanNode], gpus: Iterable[tuple[str, int]], names: Iterable[str]) -> Nodes:
    """Less these GPUs, by node and number, and these nodes. Raises LookupError for what is not there."""
    left = tuple(nodes)
    for name, index in gpus:
        left = disable_gpu(left, name, index)
    for name in names:
        left = without_node(left, name)
    return left


def with_nodes(nodes: Iterable[PlanNode], more: Iterable[PlanNode]) -> Nodes:
    """With others beside; one of a known name takes its place."""
    by_name = {node.name: node for node in nodes} | {node.name: node for node in more}
    return tuple(by_name.values())


def _find(nodes: Nodes, name: str) -> PlanNode:
    found = next((node for node in nodes if node.name == name), None)
    if found is None:
        names = ", ".join(sorted((node.name for node in nodes), key=natural_key))
        raise LookupError(f"no machine is called {name!r}; there are {names or 'none'}")
    return found


def lose_each_node(
    nodes: Iterable[PlanNode],
    roles: Iterable[PlanRole],
    catalog: Catalog = EMPTY_CATALOG,
    *,
    include_unavailable: bool = False,
    optimal: bool = False,
) -> tuple[NodeLoss, ...]:
    """The N-1 table: for each plannable node, the plan made anew without it. In natural order."""
    given = tuple(nodes)
    queue = build_queue(roles)
    pool = build_pool(given, include_unavailable)
    whole = _fill(pool, queue, catalog, optimal)
    assignments = list_assignments(whole, queue)
    losses = []
    for node in pool.nodes:
        lost = tuple(item for item in assignments if item.node == node.name)
        if not lost:
            losses.append(NodeLoss(node.name))  # what nobody uses changes nothing
            continue
        rest = build_pool((other for other in given if other.name != node.name), include_unavailable)
        losses.append(_compare(node.name, lost, whole, _fill(rest, queue, catalog, optimal), queue))
    return tuple(losses)


def _fill(pool: Pool, queue: Queue, catalog: Catalog, optimal: bool) -> Board:
    return fill_optimal(pool, queue, catalog)[0] if optimal else fill(Board(pool, catalog), queue)


def _compare(name: str, lost: tuple[Assignment, ...], whole: Board, rest: Board, queue: Queue) -> NodeLoss:
    losses = []
    for role in queue.roles:
        missing = len(rest.misses.get(role.name, ())) - len(whole.misses.get(role.name, ()))
        if missing > 0:
            losses.append(RoleLoss(role.name, missing))
    moved = 0
    for copy, spot in whole.spots.items():
        now = rest.spots.get(copy)
        if now is not None and whole.pool.nodes[spot.node].name != name:
            moved += _place(whole, spot) != _place(rest, now)
    return NodeLoss(name, lost, tuple(losses), moved)


def _place(board: Board, spot: Spot) -> tuple[str, tuple[tuple[str, int], ...]]:
    return board.pool.nodes[spot.node].name, tuple(board.pool.place(rank) for rank in spot.gpus)
