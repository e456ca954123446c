"""What would give a missing copy a place: moves of others, a GPU put back, a smaller need, one more GPU."""

from __future__ import annotations

from fleettui.decide.placement.board import EPSILON, Board, Spot
from fleettui.decide.placement.bounds import failing
from fleettui.decide.placement.gpu_misses import Tally
from fleettui.decide.placement.words import capability, number
from fleettui.model.placement import PlanRole
from fleettui.model.record import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


_NEARLY = 0.75
"""Share of a need from which on a smaller card is worth a word."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a GPU of one kind would come free."""

    rank: int
    """The GPU."""
    next_kind: int
    """Kind of GPU that its holder would go to; -1: it is free."""
    distance: int
    """Moves."""


Openings = dict[int, Opening]
"""By kind; the way with the fewest moves for each."""


def find_openings(board: Board, roles: Mapping[str, PlanRole]) -> Openings:
    """For each kind of GPU the shortest chain of moves that ends on a free GPU."""
    found: Openings = {}
    for kind, free in enumerate(board.free):
        if free:
            found[kind] = Opening(free[0], -1, 0)
    movable = [
        (rank, allowed_kinds(board, rank, spot, roles))
        for rank, spot in sorted(board.holder.items())
        if len(spot.gpus) == 1
    ]
    distance, frontier = 0, list(found)
    while frontier:
        distance += 1
        opened = set(frontier)
        frontier = []
        for rank, kinds in movable:
            kind = board.pool.gpus[rank].kind
            if kind in found:
                continue
            target = next((other for other in kinds if other in opened), None)
            if target is not None:
                found[kind] = Opening(rank, target, distance)
                frontier.append(kind)
    return found


def allowed_kinds(board: Board, rank: int, spot: Spot, roles: Mapping[str, PlanRole]) -> list[int]:
    """Kinds of GPUs to which the holder of a GPU could move with all that shares it, as it prefers them."""
    holder = roles[spot.role]
    tenants = [roles[name] for name, _ in board.tenants[rank]]
    needed = board.used_gb(rank)
    kinds = [
        place
        for place in board.suits(holder)
        if board.pool.kinds[place][0] + EPSILON >= needed
        and not any(failing(board.bounds_of(role), *board.pool.kinds[place]) for role in tenants)
    ]
    sign = -1 if holder.prefer == "largest" else 1
    return sorted(kinds, key=lambda place: (sign * board.pool.kinds[place][0], place))


def find_fixes(
    board: Board, role: PlanRole, tally: Tally, openings: Openings, missing: int
) -> tuple[str, ...]:
    """Least trouble first; each is the rest of `would fit …`."""
    found = []
    if role.gpus == 1:
        moves = _moves(board, role, openings)
        found += [f"if {moves}"] if moves else []
        alone = [
            (item, miss)
            for item, miss in ((board.pool.inventory[place], tally.misses[place]) for place in tally.told)
            if len(miss.codes) == 1
        ]
        off = [miss for item, miss in alone if miss.codes[0] == "disabled"]
        found += [f"if {off[0].node}/{off[0].gpu_index} were enabled"] if off else []
        away = [(item, miss) for item, miss in alone if miss.codes[0] == "excluded"]
        found += [f"if {away[0][1].node} were available ({away[0][0].node.unavailable})"] if away else []
        small = [
            (item, miss)
            for item, miss in alone
            if miss.codes[0] == "vram" and item.rank >= 0 and item.gpu.memory_gb >= role.min_vram_gb * _NEARLY
        ]
        if small:
            item, miss = max(small, key=lambda pair: pair[0].gpu.memory_gb)
            found.append(f"with min_vram_gb {item.gpu.memory_gb} ({miss.node}/{miss.gpu_index} is free)")
    return (*found, _more_gpus(board, role, missing))


def _moves(board: Board, role: PlanRole, openings: Openings) -> str:
    """`llm-small/0 moved to pve46/0`; several joined by `and`."""
    ways = [openings[kind] for kind in board.suits(role) if kind in openings]
    way = min(ways, key=lambda item: (item.distance, item.rank), default=None)
    if way is None or way.distance == 0:
        return ""
    moves = []
    while way.next_kind >= 0:
        target = openings[way.next_kind]
        spot = board.holder[way.rank]
        moves.append(f"{spot.role}/{spot.copy} moved to {board.pool.label(target.rank)}")
        way = target
    return " and ".join(reversed(moves))


def _more_gpus(board: Board, role: PlanRole, missing: int) -> str:
    bounds = board.bounds_of(role)
    need = [f"{number(role.min_vram_gb)} GB"] if role.min_vram_gb > 0 else []
    if bounds.floor > (0, 0) and bounds.floor != bounds.max_cc:
        need.append(f"cc {capability(bounds.floor)}")
    asked = f" of {' and '.join(need)} or more" if need else ""
    if bounds.max_cc is not None:
        ceiling = capability(bounds.max_cc)
        asked += f" with cc {ceiling}" if bounds.floor == bounds.max_cc else f" up to cc {ceiling}"
    if role.gpus > 1:
        nodes = "one more node" if missing == 1 else f"{missing} more nodes"
        return f"with {nodes} of {role.gpus} GPUs{asked}"
    return f"with {'one more GPU' if missing == 1 else f'{missing} more GPUs'}{asked}"
