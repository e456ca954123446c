"""Places for copies of several GPUs, searched together with the single GPUs that others need."""

from __future__ import annotations

from itertools import combinations_with_replacement

from fleettui.decide.placement.board import EPSILON, Board, Ranks
from fleettui.decide.placement.bounds import failing
from fleettui.decide.placement.matching import Copy, Matching
from fleettui.model.placement import PlanRole
from fleettui.model.record import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Group = tuple[PlanRole, ...]
Found = tuple[dict[Copy, Ranks], Matching]

FIRST_WORK = 4_000
"""For trying one more copy where all others of several GPUs stand."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A copy that is to be kept too, or kept with more asked of it: its kinds or its group."""

    copy: Copy
    kinds: tuple[int, ...] = ()
    group: Group = ()


def sharing_ranks(board: Board, group: Group, ranks: Ranks) -> dict[str, Ranks] | None:
    """Where those of a group that share stand among the GPUs of its first role; None: one does not fit."""
    pool = board.pool
    used = dict.fromkeys(ranks, group[0].min_vram_gb)
    found = {}
    for role in group[1:]:
        bounds = board.bounds_of(role)
        fitting = []
        for rank in ranks:
            memory, cc = pool.kinds[pool.gpus[rank].kind]
            if not failing(bounds, memory, cc) and used[rank] + role.min_vram_gb <= memory + EPSILON:
                fitting.append(rank)
        if len(fitting) < role.gpus:
            return None
        found[role.name] = tuple(fitting[: role.gpus])
        for rank in fitting[: role.gpus]:
            used[rank] += role.min_vram_gb
    return found


class Search:
    """Finds places for all at once: depth first over the copies of several GPUs, a matching for the rest."""

    __slots__ = (
        "_board",
        "_dead",
        "_limit",
        "_most_work",
        "_ranks_of",
        "_sets",
        "_singles",
        "was_whole",
        "work",
    )

    def __init__(
        self,
        board: Board,
        sets: Mapping[Copy, Group],
        singles: Mapping[Copy, tuple[int, ...]],
        *,
        most_work: int,
    ) -> None:
        """`most_work`: steps times the copies and GPUs looked at, some microseconds each."""
        self._board = board
        self._sets = sets
        self._singles = singles
        self._most_work = most_work
        self._limit = 0
        self.work = 0
        """Done so far."""
        self._dead: set[tuple[object, ...]] = set()
        """States from which there is no way."""
        self._ranks_of: list[dict[int, list[int]]] = [{} for _ in board.pool.nodes]
        for rank, item in enumerate(board.pool.gpus):
            self._ranks_of[item.node].setdefault(item.kind, []).append(rank)
        self.was_whole = True
        """Nothing was left out."""

    def run(self, now: Mapping[Copy, Ranks], wished: Copy) -> Found | None:
        """Places for all; first with all the other copies of several GPUs where they stand `now`."""
        if self._match(set(), list(self._sets)) is None:
            return None  # there are too few GPUs, wherever they are
        if wished in self._sets:
            self._limit = self.work + FIRST_WORK
            fixed = {copy: ranks for copy, ranks in now.items() if copy != wished}
            found = self._descend(fixed, [wished])
            if found is not None:
                return found
            self._dead.clear()
        self._limit = self.work + self._most_work
        self.was_whole = True
        return self._descend({}, list(self._sets))

    def _descend(self, fixed: dict[Copy, Ranks], left: list[Copy]) -> Found | None:
        taken = {rank for ranks in fixed.values() for rank in ranks}
        state = (len(left), *sorted(self._free_in(node, taken) for node in range(len(self._ranks_of))))
        if state in self._dead:
            return None
        if self.work >= self._limit:
            self.was_whole = False
            return None
        matching = self._match(taken, left) if self._may_fit(left, taken) else None
        if matching is not None:
            if not left:
                return fixed, matching
            for ranks in self._options(self._sets[left[0]], taken):
                found = self._descend({**fixed, left[0]: ranks}, left[1:])
                if found is not None:
                    return found
        self._dead.add(state)
        return None

    def _may_fit(self, left: list[Copy], taken: set[int]) -> bool:
        """Enough is free in number, for all and for each role by itself."""
        free = len(self._board.pool.gpus) - len(taken)
        if sum(self._sets[copy][0].gpus for copy in left) + len(self._singles) > free:
            return False
        wanted: dict[str, int] = {}
        for name, _ in left:
            wanted[name] = wanted.get(name, 0) + 1
        return all(
            self._room(self._sets[copy][0], taken) >= wanted.pop(copy[0])
            for copy in left
            if copy[0] in wanted
        )

    def _room(self, role: PlanRole, taken: set[int]) -> int:
        """How many copies of one role would fit if there were no other."""
        suits = set(self._board.suits(role))
        return sum(
            sum(rank not in taken for kind, ranks in by_kind.items() if kind in suits for rank in ranks)
            // role.gpus
            for by_kind in self._ranks_of
        )

    def _match(self, taken: set[int], left: list[Copy]) -> Matching | None:
        """The copies of one GPU; GPUs of the `left` ones of several may be anywhere."""
        self.work += len(self._singles) + len(left) + len(self._board.pool.gpus) // 4
        matching = Matching(self._board.pool, taken)
        for copy, kinds in self._singles.items():
            best = next((matching.free[kind][0] for kind in kinds if matching.free[kind]), None)
            if not matching.add(copy, kinds, best):
                return None
        for name, number in left:
            role = self._sets[name, number][0]
            kinds = tuple(self._board.suits(role))
            if not all(matching.add((f"{name} {number}", part), kinds) for part in range(role.gpus)):
                return None
        return matching

    def _free_in(self, node: int, taken: set[int]) -> tuple[tuple[int, int], ...]:
        """(kind, how many are free) of a node: nodes alike in this are alike to everyone."""
        return tuple(
            (kind, sum(rank not in taken for rank in ranks))
            for kind, ranks in sorted(self._ranks_of[node].items())
        )

    def _options(self, group: Group, taken: set[int]) -> Iterator[Ranks]:
        """Sets of GPUs for a copy, as it prefers them; one of those that are alike."""
        role, pool = group[0], self._board.pool
        suits = set(self._board.suits(role))
        found: list[tuple[int, int, Ranks]] = []
        seen: set[object] = set()
        for node, by_kind in enumerate(self._ranks_of):
            free = {
                kind: [rank for rank in ranks if rank not in taken]
                for kind, ranks in by_kind.items()
                if kind in suits
            }
            alike = self._free_in(node, taken)
            for kinds in combinations_with_replacement(sorted(free), role.gpus):
                counts = {kind: kinds.count(kind) for kind in kinds}
                if (alike, kinds) in seen or any(len(free[kind]) < counts[kind] for kind in counts):
                    continue
                ranks = tuple(sorted(rank for kind in counts for rank in free[kind][: counts[kind]]))
                if sharing_ranks(self._board, group, ranks) is None:
                    continue
                seen.add((alike, kinds))
                found.append((sum(pool.kinds[kind][0] for kind in kinds), node, ranks))
        sign = -1 if role.prefer == "largest" else 1
        found.sort(key=lambda item: (sign * item[0], item[1], item[2]))
        yield from (ranks for _, _, ranks in found)
