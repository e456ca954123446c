"""Why a copy has no CPU to run on."""

from __future__ import annotations

from fleettui.decide.placement.board import Board
from fleettui.decide.placement.words import number, plural
from fleettui.model.placement import GpuMiss, PlacementCode, PlanRole
from fleettui.model.unknown import Unknown


def cpu_summary(board: Board, role: PlanRole) -> str:
    """`4 nodes: 1 takes no CPU roles, 2 with less than 64 GB RAM left, 1 runs a copy already`."""
    if not board.pool.nodes:
        return "no node in the inventory"
    counts: dict[str, int] = {}
    used = _used(board, role)
    for node in range(len(board.pool.nodes)):
        kind = _kind(board, role, node, used)[0]
        counts[kind] = counts.get(kind, 0) + 1
    words = {
        "off": "with cpu_roles: false",
        "used": "with a copy of it already",
        "ram": f"with less than {number(role.min_ram_gb)} GB RAM left",
        "free": "not of the role it shares with",
    }
    parts = [f"{counts[kind]} {text}" for kind, text in words.items() if kind in counts]
    return f"{plural(len(board.pool.nodes), 'node')}: {', '.join(parts)}"


def cpu_misses(board: Board, role: PlanRole, code: PlacementCode) -> tuple[GpuMiss, ...]:
    """An entry for each GPU of the inventory; it tells of the node, since the role runs on CPUs."""
    places = {node.name: place for place, node in enumerate(board.pool.nodes)}
    codes: dict[str, PlacementCode] = {"off": "no_cpu_node", "used": "no_cpu_node", "ram": "ram"}
    found = []
    used = _used(board, role)
    for item in board.pool.inventory:
        name, index = item.node.name, item.gpu.index
        if item.standing == "excluded":
            text = f"{name} is not planned: {item.node.unavailable}"
            found.append(GpuMiss(name, index, ("excluded",), text))
            continue
        kind, text = _kind(board, role, places[name], used)
        found.append(GpuMiss(name, index, (codes.get(kind, code),), text))
    return tuple(found)


def _used(board: Board, role: PlanRole) -> set[int]:
    """Nodes that run a copy of it on their CPU."""
    spots = (board.spots.get((role.name, copy)) for copy in range(role.count))
    return {spot.node for spot in spots if spot is not None and not spot.gpus}


def _kind(board: Board, role: PlanRole, node: int, used: set[int]) -> tuple[str, str]:
    """(what stands in the way on a node, in words)."""
    found = board.pool.nodes[node]
    if not found.cpu_roles:
        return "off", f"{found.name} has cpu_roles: false"
    if node in used:
        return "used", f"{found.name} has a copy of {role.name} already"
    if not board.has_ram(node, role.min_ram_gb):
        if isinstance(found.memory_gb, Unknown):
            return "ram", f"the RAM of {found.name} is not known"
        left, wanted = number(board.ram_left[node]), number(role.min_ram_gb)
        return "ram", f"{found.name} has {left} of its {found.memory_gb} GB RAM left, {wanted} GB are needed"
    return "free", f"{found.name} is not a node of {role.share_with}"
