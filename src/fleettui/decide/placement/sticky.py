"""A plan that leaves copies where a previous plan has them."""

from __future__ import annotations

from fleettui.decide.placement.board import Board, Ranks
from fleettui.decide.placement.greedy import best_set, fill
from fleettui.decide.placement.plan import assemble
from fleettui.decide.placement.pool import Pool, build_pool
from fleettui.decide.placement.queue import Queue, build_queue
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.placement import PlacementPlan, PlanNode, PlanRole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Copy = tuple[str, int]


def plan_keeping(
    previous: PlacementPlan,
    nodes: Iterable[PlanNode],
    roles: Iterable[PlanRole],
    catalog: Catalog = EMPTY_CATALOG,
    *,
    include_unavailable: bool = False,
) -> PlacementPlan:
    """The greedy plan, but that a copy stays where it was if that still suits it.

    Others go round it: a copy takes the place of one that is later in the queue only where it has no other.
    """
    pool = build_pool(nodes, include_unavailable)
    queue = build_queue(roles)
    homes = _Homes(previous, pool, queue)
    board = fill(Board(pool, catalog), queue, homes.choose, homes=homes.on_cpus)
    return assemble(board, queue)


class _Homes:
    """Where copies stood before, as far as those places are still there."""

    __slots__ = ("_claims", "_on_gpus", "_turns", "on_cpus")

    def __init__(self, previous: PlacementPlan, pool: Pool, queue: Queue) -> None:
        ranks = {pool.place(rank): rank for rank in range(len(pool.gpus))}
        nodes = {node.name: place for place, node in enumerate(pool.nodes)}
        roles = {role.name: role for role in queue.roles}
        self._turns = {role.name: turn for turn, role in enumerate(queue.roles)}
        self._on_gpus: dict[Copy, Ranks] = {}
        self.on_cpus: dict[Copy, int] = {}
        self._claims: dict[int, int] = {}
        """Rank -> turn of the role that had it."""
        for item in previous.assignments:
            role = roles.get(item.role)
            if role is None or item.copy >= role.count or item.node not in nodes:
                continue
            if not item.gpus:
                self.on_cpus[item.role, item.copy] = nodes[item.node]
            elif role.gpu and role.share_with is None and len(item.gpus) == role.gpus:
                home = tuple(sorted(ranks.get((item.node, index), -1) for index in item.gpus))
                if home[0] >= 0 and self._claims.keys().isdisjoint(home):
                    self._on_gpus[item.role, item.copy] = home
                    self._claims |= dict.fromkeys(home, self._turns[item.role])

    def choose(self, board: Board, role: PlanRole) -> None:
        """Homes first, then GPUs that nobody had, then those of roles later in the queue, last first."""
        suits = set(board.suits(role))
        for copy in board.unplaced(role):
            home = self._on_gpus.get((role.name, copy), ())
            if home and all(
                rank not in board.holder and board.pool.gpus[rank].kind in suits for rank in home
            ):
                board.take(role, copy, home)
        turn = self._turns[role.name]
        self._claims = {rank: other for rank, other in self._claims.items() if other > turn}
        for copy in board.unplaced(role):
            ranks = self._go_round(board, role)
            if ranks is None:
                return
            board.take(role, copy, ranks)

    def _go_round(self, board: Board, role: PlanRole) -> Ranks | None:
        candidates = list(board.candidates(role))
        turns = sorted({self._claims[rank] for rank in candidates if rank in self._claims}, reverse=True)
        for least in (len(self._turns), *turns):
            ranks = best_set(
                board, role, [rank for rank in candidates if self._claims.get(rank, least) >= least]
            )
            if ranks is not None:
                return ranks
        return None
