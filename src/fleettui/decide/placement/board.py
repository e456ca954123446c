"""The state of a plan while it is made: what is taken, by whom, and what is left."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import merge

from fleettui.decide.placement.bounds import Bounds, bounds_of, failing
from fleettui.decide.placement.pool import Pool
from fleettui.model.catalog import Catalog
from fleettui.model.placement import PlacementCode, PlanRole
from fleettui.model.record import dataclass
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Ranks = tuple[int, ...]
EPSILON = 1e-9
"""GiB; sums of fractions are not exact."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a copy stands."""

    role: str
    copy: int
    node: int
    gpus: Ranks = ()
    """Empty: on the CPU."""
    shared_with: str | None = None
    fallback: bool = False


class Board:
    """Mutable, and never seen outside of this folder."""

    __slots__ = (
        "_suits",
        "bounds",
        "by_ram",
        "catalog",
        "free",
        "holder",
        "kept_gb",
        "misses",
        "pool",
        "ram_left",
        "roots",
        "spots",
        "tenants",
    )

    def __init__(self, pool: Pool, catalog: Catalog) -> None:
        self.pool = pool
        self.catalog = catalog
        self.free: list[list[int]] = [list(ranks) for ranks in pool.by_kind]
        """Ranks that nobody has taken, of each kind, ascending."""
        self.holder: dict[int, Spot] = {}
        """Who has taken a GPU."""
        self.tenants: dict[int, list[tuple[str, float]]] = {}
        """(role, its min_vram_gb) of each copy on a GPU, shares too."""
        self.kept_gb: list[dict[str, float]] = [{} for _ in pool.nodes]
        """RAM reserved on each node, by role."""
        self.ram_left: list[float] = [
            -1.0 if isinstance(node.memory_gb, Unknown) else float(node.memory_gb) for node in pool.nodes
        ]
        """-1: unknown, which fails any bound above 0 and comes last."""
        self.by_ram = sorted(
            (-self.ram_left[place], place) for place, node in enumerate(pool.nodes) if node.cpu_roles
        )
        """Nodes that run copies on their CPUs, those with the most RAM left first."""
        self.spots: dict[tuple[str, int], Spot] = {}
        """Of each (role, copy) that has a place."""
        self.misses: dict[str, list[tuple[int, PlacementCode]]] = {}
        """(copy, code) of each copy without a place, by role."""
        self.roots: Mapping[str, str] = {}
        """As in the queue that fills it."""
        self.bounds: dict[str, Bounds] = {}
        self._suits: dict[Bounds, list[int]] = {}

    def bounds_of(self, role: PlanRole) -> Bounds:
        """Remembered."""
        found = self.bounds.get(role.name)
        if found is None:
            found = self.bounds[role.name] = bounds_of(role, self.catalog)
        return found

    def suits(self, role: PlanRole) -> list[int]:
        """Kinds of GPUs that pass all bounds of a role."""
        bounds = self.bounds_of(role)
        found = self._suits.get(bounds)
        if found is None:
            found = self._suits[bounds] = self._find_suits(bounds)
        return found

    def _find_suits(self, bounds: Bounds) -> list[int]:
        return [place for place, kind in enumerate(self.pool.kinds) if not failing(bounds, *kind)]

    def candidates(self, role: PlanRole) -> Iterator[int]:
        """Ranks of free GPUs that suit, best first: by memory as preferred, then node and index."""
        by_memory: dict[int, list[list[int]]] = {}
        for kind in self.suits(role):
            if self.free[kind]:
                by_memory.setdefault(self.pool.kinds[kind][0], []).append(self.free[kind])
        for memory in sorted(by_memory, reverse=role.prefer == "largest"):
            lists = by_memory[memory]
            yield from lists[0] if len(lists) == 1 else merge(*lists)

    def take(self, role: PlanRole, copy: int, ranks: Ranks) -> None:
        """Give GPUs to a copy."""
        spot = Spot(role.name, copy, self.pool.gpus[ranks[0]].node, ranks)
        for rank in ranks:
            free = self.free[self.pool.gpus[rank].kind]
            del free[bisect_left(free, rank)]
            self.holder[rank] = spot
            self.tenants[rank] = [(role.name, role.min_vram_gb)]
        self.spots[role.name, copy] = spot

    def join(self, role: PlanRole, copy: int, ranks: Ranks, root: str) -> None:
        """Put a copy on GPUs that its target has taken."""
        for rank in ranks:
            self.tenants[rank].append((role.name, role.min_vram_gb))
        node = self.pool.gpus[ranks[0]].node
        self.spots[role.name, copy] = Spot(role.name, copy, node, ranks, root)

    def settle(self, role: PlanRole, copy: int, node: int, root: str | None = None) -> None:
        """Put a copy on a node's CPU; its RAM is reserved."""
        if role.min_ram_gb > 0:
            del self.by_ram[bisect_left(self.by_ram, (-self.ram_left[node], node))]
            self.ram_left[node] -= role.min_ram_gb
            insort(self.by_ram, (-self.ram_left[node], node))
            kept = self.kept_gb[node]
            kept[role.name] = kept.get(role.name, 0) + role.min_ram_gb
        self.spots[role.name, copy] = Spot(role.name, copy, node, (), root, fallback=role.gpu)

    def miss(self, role: PlanRole, copy: int, code: PlacementCode) -> None:
        """A copy has no place."""
        self.misses.setdefault(role.name, []).append((copy, code))

    def unplaced(self, role: PlanRole) -> list[int]:
        """Copies that have no place yet."""
        return [copy for copy in range(role.count) if (role.name, copy) not in self.spots]

    def has_ram(self, node: int, gb: float) -> bool:
        """So much RAM is left; unknown RAM has only nothing."""
        return gb <= 0 or self.ram_left[node] >= gb - EPSILON

    def used_gb(self, rank: int) -> float:
        """Sum of min_vram_gb on a GPU."""
        return sum(gb for _, gb in self.tenants.get(rank, ()))
