"""Optimal plans: copies are kept in the order of the queue as long as all that are kept have a place.

A copy of one GPU is kept by an augmenting path (matching.py). Copies of several GPUs, and what moves for
their sake, are searched (exact.py) up to MAX_SEARCHED of them; beyond that the plan is labelled a heuristic.
"""

from __future__ import annotations

from fleettui.decide.placement.board import EPSILON, Board, Ranks
from fleettui.decide.placement.bounds import failing
from fleettui.decide.placement.exact import Search, Wish, sharing_ranks
from fleettui.decide.placement.greedy import fill
from fleettui.decide.placement.matching import Copy, Matching
from fleettui.decide.placement.plan import assemble
from fleettui.decide.placement.pool import Pool, build_pool
from fleettui.decide.placement.queue import Queue, build_queue
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.placement import PlacementPlan, PlanNode, PlanRole
from fleettui.model.placement_answers import PlanComparison

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_SEARCHED = 12
"""Copies of several GPUs that are searched."""
MAX_WORK = 40_000
"""Of all searches for one plan, in Search's measure: half a second."""


def plan_optimal(
    nodes: Iterable[PlanNode],
    roles: Iterable[PlanRole],
    catalog: Catalog = EMPTY_CATALOG,
    *,
    include_unavailable: bool = False,
) -> PlacementPlan:
    """The plan in which no copy could be added without losing one that is before it in the queue."""
    return _assemble_optimal(build_pool(nodes, include_unavailable), build_queue(roles), catalog)


def _assemble_optimal(pool: Pool, queue: Queue, catalog: Catalog) -> PlacementPlan:
    board, is_exact = fill_optimal(pool, queue, catalog)
    return assemble(board, queue, "optimal" if is_exact else "heuristic")


def compare(
    nodes: Iterable[PlanNode],
    roles: Iterable[PlanRole],
    catalog: Catalog = EMPTY_CATALOG,
    *,
    include_unavailable: bool = False,
) -> PlanComparison:
    """Greedy and optimal side by side."""
    pool = build_pool(nodes, include_unavailable)
    queue = build_queue(roles)
    greedy = assemble(fill(Board(pool, catalog), queue), queue)
    optimal = _assemble_optimal(pool, queue, catalog)
    return PlanComparison(greedy, optimal, on_gpus(greedy), on_gpus(optimal))


def on_gpus(plan: PlacementPlan) -> int:
    """Copies that have a GPU."""
    return sum(bool(item.gpus) for item in plan.assignments)


def fill_optimal(pool: Pool, queue: Queue, catalog: Catalog) -> tuple[Board, bool]:
    """A filled board, and whether all was searched."""
    keeper = _Keeper(pool, queue, catalog)
    keeper.keep_all()
    board = Board(pool, catalog)

    def choose(board: Board, role: PlanRole) -> None:
        for copy in range(role.count):
            ranks = keeper.ranks_of((role.name, copy))
            if ranks:
                board.take(role, copy, ranks)

    return fill(board, queue, choose, refused=keeper.refused), keeper.is_exact


class _Keeper:
    """Decides which copies are kept, and where."""

    __slots__ = (
        "_board",
        "_failed",
        "_groups",
        "_matching",
        "_queue",
        "_sets",
        "_work_left",
        "is_exact",
        "refused",
    )

    def __init__(self, pool: Pool, queue: Queue, catalog: Catalog) -> None:
        self._board = Board(pool, catalog)
        """Stays empty: it answers what suits."""
        self._queue = queue
        self._matching = Matching(pool)
        self._sets: dict[Copy, Ranks] = {}
        """GPUs of copies of several."""
        self._groups: dict[Copy, tuple[PlanRole, ...]] = {}
        """The role of a copy, then those that share its GPUs."""
        self._failed: list[frozenset[int]] = []
        """Kinds of single GPUs that could not be given once more."""
        self.refused: set[Copy] = set()
        """Shares for which there is no room."""
        self._work_left = MAX_WORK
        self.is_exact = True

    def ranks_of(self, copy: Copy) -> Ranks:
        """Its GPUs; empty: it is not kept."""
        rank = self._matching.rank_of.get(copy)
        return self._sets.get(copy, ()) if rank is None else (rank,)

    def keep_all(self) -> None:
        """One role after another; again where a search was cut short: moves may have made room."""
        for role in self._queue.roles:
            self._keep_role(role)
        if not self.is_exact:
            self._failed.clear()
            for role in self._queue.roles:
                self._keep_role(role)

    def _keep_role(self, role: PlanRole) -> None:
        if not role.gpu:
            return
        if role.share_with is not None:
            self._keep_shares(role, self._queue.roots[role.name])
            return
        keep = self._keep_single if role.gpus == 1 else self._keep_set
        for copy in range(role.count):
            if self.ranks_of((role.name, copy)):
                continue
            self._groups[role.name, copy] = (role,)
            if not keep((role.name, copy), role):
                del self._groups[role.name, copy]
                return  # the next copy of it asks for the same

    def _keep_shares(self, role: PlanRole, root: str) -> None:
        for copy in range(role.count):
            target = (root, copy)
            if not self.ranks_of(target) or role in self._groups[target]:
                continue
            if self._share(target, role):
                self.refused.discard((role.name, copy))
            else:
                self.refused.add((role.name, copy))

    def _keep_single(self, copy: Copy, role: PlanRole) -> bool:
        kinds = self._kinds((role,))
        if not kinds or any(failed.issuperset(kinds) for failed in self._failed):
            return False
        if self._matching.add(copy, kinds, self._best_free(kinds, role)):
            return True
        if self._sets and self._search(Wish(copy, kinds=tuple(kinds))):
            return True
        self._failed.append(frozenset(kinds))
        return False

    def _keep_set(self, copy: Copy, role: PlanRole) -> bool:
        return self._search(Wish(copy, group=(role,)))

    def _share(self, root: Copy, role: PlanRole) -> bool:
        group = (*self._groups[root], role)
        if root in self._sets:
            kept = sharing_ranks(self._board, group, self._sets[root]) is not None or self._search(
                Wish(root, group=group)
            )
        else:
            kinds = self._kinds(group) if role.gpus == 1 else []
            kept = bool(kinds) and (
                self._matching.narrow(root, kinds)
                or (bool(self._sets) and self._search(Wish(root, kinds=tuple(kinds))))
            )
        if kept:
            self._groups[root] = group
        return kept

    def _kinds(self, group: tuple[PlanRole, ...]) -> list[int]:
        """Kinds of GPUs on which all of a group fit, as its first role prefers them."""
        board, kinds = self._board, self._board.pool.kinds
        needed = sum(role.min_vram_gb for role in group)
        found = [
            kind
            for kind in board.suits(group[0])
            if len(group) == 1
            or (
                kinds[kind][0] + EPSILON >= needed
                and not any(failing(board.bounds_of(role), *kinds[kind]) for role in group)
            )
        ]
        sign = -1 if group[0].prefer == "largest" else 1
        return sorted(found, key=lambda kind: (sign * kinds[kind][0], kind))

    def _best_free(self, kinds: list[int], role: PlanRole) -> int | None:
        """The free GPU that the greedy plan would take."""
        memory = self._board.pool.kinds
        heads = [
            (memory[kind][0], self._matching.free[kind][0]) for kind in kinds if self._matching.free[kind]
        ]
        sign = -1 if role.prefer == "largest" else 1
        return min(heads, key=lambda head: (sign * head[0], head[1]))[1] if heads else None

    def _search(self, wish: Wish) -> bool:
        sets = {copy: self._groups[copy] for copy in self._sets}
        singles = {copy: tuple(kinds) for copy, kinds in self._matching.kinds_of.items()}
        if wish.group:
            sets[wish.copy] = wish.group
        else:
            singles[wish.copy] = wish.kinds
        is_searched = len(sets) <= MAX_SEARCHED
        search = Search(self._board, sets, singles, most_work=self._work_left if is_searched else 0)
        found = search.run(self._sets, wish.copy)
        self._work_left = max(0, self._work_left - search.work)
        if found is None:
            self.is_exact = self.is_exact and search.was_whole
            return False
        self._sets, self._matching = found
        return True
