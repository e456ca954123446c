"""Which copy goes to which target, so that as few as possible find none: both orders, then every packing.

What counts, in this order: copies without a target, copies that are less than at the source, bytes evicted,
bytes fetched. Of equal packings the first that prefers room to spare stays.
"""

from __future__ import annotations

from bisect import bisect_right

from fleettui.decide.drain.bay import Bay, Load, Placed, place
from fleettui.model.record import dataclass
from fleettui.model.route import Rejection

MOST_EXACT = 40
"""Copies up to which every packing is tried; up to a dozen that nearly always comes to its end."""
MOST_STEPS = 25_000
"""Placements that are tried at most while searching; the best so far stays."""
Score = tuple[int, int, int, int]
Assignment = tuple[int | None, ...]
"""Target of each item; None: none."""


@dataclass(frozen=True, slots=True)
class Item:
    """A copy to move. Items stand in the order in which they will be loaded."""

    loads: dict[int, Load]
    """By target; those that take it at all."""
    size_bytes: int
    """By which copies are sorted."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The best that was found."""

    targets: Assignment
    placed: tuple[Placed | None, ...]
    """As each is loaded, one after the other."""
    bays: tuple[Bay, ...]
    """What is left of each target."""
    score: Score
    is_exact: bool


def pack(items: tuple[Item, ...], bays: tuple[Bay, ...], *, takes_degraded: bool) -> Packing:
    """The best packing. `takes_degraded`: rather less than at the source than no target."""
    packer = Packer(items, bays, takes_degraded)
    return packer.solve()


class Packer:
    """One packing problem; what a load does to a bay is found once."""

    def __init__(
        self, items: tuple[Item, ...], bays: tuple[Bay, ...], takes_degraded: bool, base: Packer | None = None
    ) -> None:
        self.items, self.takes_degraded = items, takes_degraded
        self._numbers: dict[Bay, int] = {} if base is None else base._numbers
        self._bays: list[Bay] = [] if base is None else base._bays
        self.sums: list[int] = [] if base is None else base.sums
        self._known: dict[tuple[int, int], tuple[Placed, int] | None] = {} if base is None else base._known
        self._suffix_list: list[tuple[int, int, list[int]]] = []
        self.start = [self._number(bay) for bay in bays]
        self.steps = 0
        """Placements tried by a search."""

    def part(self, items: list[int], targets: tuple[int, ...]) -> Packer:
        """The problem of some items, in that order, and some targets."""
        chosen = [
            Item(
                {at: loads[target] for at, target in enumerate(targets) if target in loads},
                self.items[item].size_bytes,
            )
            for item in items
            for loads in (self.items[item].loads,)
        ]
        bays = tuple([self._bays[self.start[target]] for target in targets])
        return Packer(tuple(chosen), bays, self.takes_degraded, self)

    def _number(self, bay: Bay) -> int:
        """Equal bays have one number."""
        number = self._numbers.get(bay)
        if number is None:
            number = self._numbers[bay] = len(self._bays)
            self._bays.append(bay)
            idle = [copy.vram_bytes for engine in bay.engines for _, copy in engine.idle]
            self.sums.append(bay.free_bytes + sum(idle))
        return number

    def put(self, number: int, load: Load) -> tuple[Placed, int] | None:
        """(how it lies, number of the bay then); None where it does not, or only as less than it was."""
        key = number, id(load)
        if key in self._known:
            return self._known[key]
        found = place(self._bays[number], load)
        usable = not isinstance(found, Rejection) and (self.takes_degraded or not found.is_degraded)
        result = (found, self._number(found.bay)) if usable and not isinstance(found, Rejection) else None
        self._known[key] = result
        return result

    def solve(self) -> Packing:
        """Greedy packings first; a search where they leave anything to be wished for."""
        count = len(self.items)
        by_size = sorted(range(count), key=lambda at: (-self.items[at].size_bytes, at))
        best: Assignment = (None,) * count
        score = self.score(best)
        for order in (by_size, by_size[::-1]):
            for is_tight in (False, True):
                found = self._greedy(order, is_tight)
                if (rated := self.score(found)) < score:
                    best, score = found, rated
        is_exact = score[:3] <= self.least(0, self.pool(self.start), (0, 0, 0, 0))[:3]
        if not is_exact and count <= MOST_EXACT:
            from fleettui.decide.drain.search import Search

            search = Search(self, score, MOST_STEPS)
            is_exact = search.run()
            best = best if search.best is None else search.best
        if not is_exact:
            from fleettui.decide.drain.repair import improve

            best = improve(self, best)
        return self._carry_out(best, is_exact)

    def _greedy(self, order: list[int], is_tight: bool) -> Assignment:
        """One copy after the other, each where it does least harm. `is_tight`: where least room is left then,
        which leaves room for large ones; else where most is."""
        state, targets = list(self.start), [None] * len(self.items)  # type: list[int], list[int | None]
        for at in order:
            best_key, best, after = None, None, 0
            for target, load in self.items[at].loads.items():
                found = self.put(state[target], load)
                if found is None:
                    continue
                left = self.sums[found[1]] if is_tight else -found[0].bay.free_bytes
                key = (found[0].quality, left, load.need is None or load.own is not None, target)
                if best_key is None or key < best_key:
                    best_key, best, after = key, target, found[1]
            if best is not None:
                state[best], targets[at] = after, best
        return tuple(targets)

    def score(self, targets: Assignment) -> Score:
        """Of loads in the order in which they will be; one that then finds no room has none."""
        return self._carry_out(targets, False).score

    def _carry_out(self, targets: Assignment, is_exact: bool) -> Packing:
        state = list(self.start)
        placed: list[Placed | None] = []
        kept: list[int | None] = []
        missing = degraded = evicted = fetched = 0
        for item, target in zip(self.items, targets, strict=True):
            found = None if target is None else self.put(state[target], item.loads[target])
            if found is None or target is None:
                missing += 1
                placed.append(None)
                kept.append(None)
                continue
            state[target] = found[1]
            degraded, evicted, fetched = (
                degraded + found[0].quality[0], evicted + found[0].quality[1], fetched + found[0].quality[2]
            )  # fmt: skip
            placed.append(found[0])
            kept.append(target)
        bays = tuple([self._bays[number] for number in state])
        return Packing(tuple(kept), tuple(placed), bays, (missing, degraded, evicted, fetched), is_exact)

    def room_left(self, targets: Assignment) -> list[int]:
        """Bytes of each target that may still be used."""
        return [self.sums[self._number(bay)] for bay in self._carry_out(targets, False).bays]

    def pool(self, state: list[int]) -> int:
        return sum([self.sums[number] for number in state])

    def least(self, at: int, pool: int, so_far: Score) -> Score:
        """No packing of the items from `at` on is better than that."""
        hopeless, degraded, prefix = self._suffixes()[at]
        left = len(self.items) - at
        beyond = left - (bisect_right(prefix, pool) - 1)
        if self.takes_degraded:
            missing = hopeless
            lesser = max(degraded, beyond - hopeless)
        else:
            missing, lesser = max(hopeless, beyond), 0
        return so_far[0] + missing, so_far[1] + lesser, so_far[2], so_far[3]

    def _suffixes(self) -> list[tuple[int, int, list[int]]]:
        """For the items from each place on: how many find no target even alone, how many are degraded
        everywhere, and the least VRAM that the smallest 0, 1, 2, … of them need."""
        if self._suffix_list:
            return self._suffix_list
        alone: list[tuple[bool, bool, int]] = []
        for item in self.items:
            found = [self.put(self.start[target], load) for target, load in item.loads.items()]
            good = [one[0] for one in found if one is not None]
            least = min([load.least_bytes for load in item.loads.values()], default=0)
            alone.append((not good, bool(good) and all(one.is_degraded for one in good), least))
        for at in range(len(self.items) + 1):
            sums = [0]
            for least in sorted([one[2] for one in alone[at:] if not one[0]]):
                sums.append(sums[-1] + least)
            hopeless = sum([one[0] for one in alone[at:]])
            sums += [1 << 62] * hopeless  # behind all others, so that they are counted once
            self._suffix_list.append((hopeless, sum([one[1] for one in alone[at:]]), sums))
        return self._suffix_list
