"""Every copy gets the best place that is free when its role's turn comes."""

from __future__ import annotations

from itertools import islice

from fleettui.decide.placement.board import EPSILON, Board, Ranks
from fleettui.decide.placement.bounds import failing
from fleettui.decide.placement.queue import Queue
from fleettui.model.placement import PlacementCode, PlanRole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    Choose = Callable[[Board, PlanRole], None]
    """Takes GPUs for the copies of a role that shares with none."""
    Copies = Container[tuple[str, int]]
    Homes = Mapping[tuple[str, int], int]
    """Node on which a (role, copy) ran on the CPU before."""

NO_HOMES: Homes = {}


def choose_greedy(board: Board, role: PlanRole) -> None:
    """The first free GPUs that suit, one copy after another."""
    wanted = board.unplaced(role)
    if role.gpus == 1:
        for copy, rank in zip(wanted, list(islice(board.candidates(role), len(wanted))), strict=False):
            board.take(role, copy, (rank,))
        return
    for copy in wanted:
        ranks = best_set(board, role, board.candidates(role))
        if ranks is None:
            return
        board.take(role, copy, ranks)


def best_set(board: Board, role: PlanRole, candidates: Iterable[int]) -> Ranks | None:
    """The GPUs of one node for a copy of several: as preferred by their memory in sum, then by node."""
    found = sets_by_node(board, role, candidates)
    return found[0] if found else None


def sets_by_node(board: Board, role: PlanRole, candidates: Iterable[int]) -> list[Ranks]:
    """One set for each node that has enough candidates, best first."""
    gpus = board.pool.gpus
    by_node: dict[int, list[int]] = {}
    for rank in candidates:
        ranks = by_node.setdefault(gpus[rank].node, [])
        if len(ranks) < role.gpus:
            ranks.append(rank)
    sign = -1 if role.prefer == "largest" else 1
    whole = [
        (sign * sum(gpus[rank].gpu.memory_gb for rank in ranks), node, tuple(sorted(ranks)))
        for node, ranks in by_node.items()
        if len(ranks) == role.gpus
    ]
    return [ranks for _, _, ranks in sorted(whole)]


def fill(
    board: Board,
    queue: Queue,
    choose: Choose = choose_greedy,
    *,
    homes: Homes = NO_HOMES,
    refused: Copies = (),
) -> Board:
    """Place every role. `homes` are preferred for CPUs; shares of `refused` are not tried."""
    by_name = {role.name: role for role in queue.roles}
    board.roots = queue.roots
    for role in queue.roles:
        codes: dict[int, PlacementCode] = {}
        if role.share_with is not None:
            root = by_name.get(queue.roots[role.name])
            for copy in range(role.count):
                code = "share_full" if (role.name, copy) in refused else share_copy(board, role, copy, root)
                if code is not None:
                    codes[copy] = code
        elif role.gpu:
            choose(board, role)
            codes = dict.fromkeys(board.unplaced(role), "all_taken")
        missing = board.unplaced(role)
        if missing and (role.cpu_fallback or not (role.gpu or role.share_with is not None)):
            codes = _place_on_cpus(board, role, missing, homes)
        for copy in board.unplaced(role):
            board.miss(role, copy, codes[copy])
    return board


def share_copy(board: Board, role: PlanRole, copy: int, root: PlanRole | None) -> PlacementCode | None:
    """Put a copy where the target's copy of the same number stands. Returns why not, or None."""
    spot = None if root is None else board.spots.get((root.name, copy))
    if root is None or spot is None:
        return "share_unplaced" if root is None or copy < root.count else "share_full"
    if not role.gpu:
        if not board.pool.nodes[spot.node].cpu_roles:
            return "no_cpu_node"
        if not board.has_ram(spot.node, role.min_ram_gb):
            return "ram"
        board.settle(role, copy, spot.node, root.name)
        return None
    if not spot.gpus:
        return "share_unplaced"
    codes = [share_codes(board, role, rank) for rank in spot.gpus]
    ranks = [rank for rank, failed in zip(spot.gpus, codes, strict=True) if not failed]
    if len(ranks) < role.gpus:
        return next((failed[0] for failed in codes if failed), "share_full")
    board.join(role, copy, tuple(ranks[: role.gpus]), root.name)
    return None


def share_codes(board: Board, role: PlanRole, rank: int) -> tuple[PlacementCode, ...]:
    """Why a copy cannot share a GPU that its target has taken."""
    memory, cc = board.pool.kinds[board.pool.gpus[rank].kind]
    codes = failing(board.bounds_of(role), memory, cc)
    if "vram" not in codes and board.used_gb(rank) + role.min_vram_gb > memory + EPSILON:
        codes = (*codes, "share_full")
    return codes


def _place_on_cpus(
    board: Board, role: PlanRole, missing: list[int], homes: Homes
) -> dict[int, PlacementCode]:
    """Distinct nodes, those with the most RAM left first. Returns why the rest has none."""
    used = {
        spot.node
        for copy in range(role.count)
        if (spot := board.spots.get((role.name, copy))) is not None and not spot.gpus
    }
    for copy in missing:
        home = homes.get((role.name, copy))
        if home is not None and home not in used and is_cpu_node(board, role, home):
            board.settle(role, copy, home)
            used.add(home)
    rest = board.unplaced(role)
    nodes = [node for _, node in board.by_ram if node not in used]
    fitting = [node for node in nodes if board.has_ram(node, role.min_ram_gb)][: len(rest)]
    for copy, node in zip(rest, fitting, strict=False):
        board.settle(role, copy, node)
    code: PlacementCode = "ram" if len(nodes) > len(fitting) else "no_cpu_node"
    return dict.fromkeys(rest[len(fitting) :], code)


def is_cpu_node(board: Board, role: PlanRole, node: int) -> bool:
    """A copy of the role may run on that CPU."""
    return board.pool.nodes[node].cpu_roles and board.has_ram(node, role.min_ram_gb)
