"""Copies matched with GPUs: single-GPU copies are a transversal matroid, kept one by one by augmenting paths.

Kuhn's method over kinds of GPUs: GPUs of one kind differ for nobody, so a path goes from kind to kind.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from fleettui.decide.placement.pool import Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Copy = tuple[str, int]
"""(role, number)."""


class Matching:
    """Which copy stands on which GPU; every copy that is in stays in, on one GPU or another."""

    __slots__ = ("_holders", "_kind_of", "_saturated", "free", "kinds_of", "rank_of")

    def __init__(self, pool: Pool, without: Iterable[int] = ()) -> None:
        out = set(without)
        self.free: list[list[int]] = [[r for r in ranks if r not in out] for ranks in pool.by_kind]
        self._kind_of = [gpu.kind for gpu in pool.gpus]
        self._holders: list[list[int]] = [[] for _ in pool.kinds]
        """Taken ranks of each kind, ascending."""
        self._saturated: set[int] = set()
        """Kinds from which no path leads to a free GPU, and never will."""
        self.rank_of: dict[Copy, int] = {}
        self.kinds_of: dict[Copy, Sequence[int]] = {}
        """Kinds each copy may stand on, as it prefers them."""

    def add(self, copy: Copy, kinds: Sequence[int], best: int | None = None) -> bool:
        """Give a copy a GPU, moving others where there is no other way. `best`: the free GPU it likes."""
        if best is not None:
            self.kinds_of[copy] = kinds
            self._put(copy, best)
            return True
        if self._saturated.issuperset(kinds):
            return False
        self.kinds_of[copy] = kinds
        if self._augment(copy, prune=True):
            return True
        del self.kinds_of[copy]
        return False

    def narrow(self, copy: Copy, kinds: Sequence[int]) -> bool:
        """Let a copy that is in stand on fewer kinds only, if all that are in can stay in."""
        rank, before = self.rank_of[copy], self.kinds_of[copy]
        self.kinds_of[copy] = kinds
        if self._kind_of[rank] in kinds:
            return True
        self._lift(copy)
        if self._augment(copy, prune=False):
            return True
        self.kinds_of[copy] = before
        self._put(copy, rank)
        return False

    def _put(self, copy: Copy, rank: int) -> None:
        kind = self._kind_of[rank]
        del self.free[kind][bisect_left(self.free[kind], rank)]
        insort(self._holders[kind], rank)
        self.rank_of[copy] = rank

    def _lift(self, copy: Copy) -> int:
        rank = self.rank_of.pop(copy)
        kind = self._kind_of[rank]
        del self._holders[kind][bisect_left(self._holders[kind], rank)]
        insort(self.free[kind], rank)
        return rank

    def _augment(self, copy: Copy, prune: bool) -> bool:
        """Breadth first, so that as few as possible move."""
        copy_on = {rank: who for who, rank in self.rank_of.items()}
        came: dict[int, Copy] = {}
        """Kind -> the copy that would go there."""
        layer: list[Copy] = [copy]
        while layer:
            following: list[Copy] = []
            for who in layer:
                for kind in self.kinds_of[who]:
                    if kind in came or (prune and kind in self._saturated):
                        continue
                    came[kind] = who
                    if self.free[kind]:
                        self._shift(copy, kind, came)
                        return True
                    following += [copy_on[rank] for rank in self._holders[kind]]
            layer = following
        if prune:
            self._saturated.update(came)
        return False

    def _shift(self, copy: Copy, kind: int, came: dict[int, Copy]) -> None:
        """Move everyone on the path one step on, the last one first."""
        target = self.free[kind][0]
        while True:
            who = came[kind]
            if who == copy:
                self._put(who, target)
                return
            freed = self._lift(who)
            self._put(who, target)
            kind, target = self._kind_of[freed], freed
