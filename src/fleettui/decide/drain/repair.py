"""A packing made better step by step, where there are too many copies to try everything.

A copy without a target gets one when others there move on, or when one changes places with a smaller one
elsewhere; else it takes the place of a larger one, which leaves more room for what is still without. At last
a few targets at a time are packed anew.
"""

from __future__ import annotations

from itertools import combinations

from fleettui.decide.drain.packing import MOST_STEPS, Assignment, Packer
from fleettui.decide.drain.search import Search

MOST_STEPS_OF_PART = 3_000
"""Placements that are tried at most while some targets are packed anew."""
MOST_GROUPS = 60
"""Sets of targets that are looked at until one is better."""
MOST_ROOMY = 6
"""Targets with most room left that are packed anew together with another."""
_Change = dict[int, int | None]
"""Item -> its new target; None: none."""


def improve(packer: Packer, best: Assignment) -> Assignment:
    """A packing that is no worse."""
    best = _climb(packer, best)
    steps, is_better = 0, True
    while is_better and None in best:
        is_better = False
        for targets in _groups(packer, best):
            if steps > MOST_STEPS:
                return best
            found, taken = _pack_some(packer, best, targets)
            steps += taken
            if found is not None:
                best, is_better = _climb(packer, found), True
                break
    return best


def _groups(packer: Packer, best: Assignment) -> list[tuple[int, ...]]:
    """Targets that may take one copy more together, few before many: those with most room left first."""
    left = packer.room_left(best)
    without = [item for item, target in zip(packer.items, best, strict=True) if target is None]
    wanted = sorted({target for item in without for target in item.loads})
    least = min([load.least_bytes for item in without for load in item.loads.values()], default=0)
    roomy = sorted(range(len(left)), key=lambda target: (-left[target], target))[:MOST_ROOMY]
    groups = set()
    for target in wanted:
        for size in (2, 3, 4):
            found = {tuple(sorted({target, *others})) for others in combinations(roomy, size)}
            enough = {group for group in found if sum([left[one] for one in group]) >= least}
            groups |= enough
            if enough:
                break
    ranked = sorted(groups, key=lambda group: (len(group), -sum([left[target] for target in group]), group))
    return ranked[:MOST_GROUPS]


def _climb(packer: Packer, best: Assignment) -> Assignment:
    repair = _Repair(packer, best)
    score = packer.score(best)
    while repair.place_one() or repair.shrink_one():
        found = tuple(repair.targets)
        if (rated := packer.score(found)) < score:
            best, score = found, rated
    return best


def _pack_some(packer: Packer, best: Assignment, targets: tuple[int, ...]) -> tuple[Assignment | None, int]:
    """These targets packed anew with what they have and what has no target; and how long it took."""
    items = [
        item
        for item, target in enumerate(best)
        if target in targets or (target is None and not packer.items[item].loads.keys().isdisjoint(targets))
    ]
    items.sort(key=lambda item: (-packer.items[item].size_bytes, item))
    part = packer.part(items, targets)
    places = {target: at for at, target in enumerate(targets)}
    score = part.score(tuple([None if (target := best[item]) is None else places[target] for item in items]))
    search = Search(part, score, MOST_STEPS_OF_PART)
    search.run()
    if search.best is None:
        return None, part.steps + len(items)
    found = list(best)
    for item, at in zip(items, search.best, strict=True):
        found[item] = None if at is None else targets[at]
    is_better = packer.score(tuple(found)) < packer.score(best)
    return tuple(found) if is_better else None, part.steps + len(items)


class _Repair:
    """The packing as it stands, target by target."""

    def __init__(self, packer: Packer, best: Assignment) -> None:
        self._packer, self.targets = packer, list(best)
        self._left = MOST_STEPS

    def place_one(self) -> bool:
        """One copy more has a target; False: none was found, or it took too long."""
        without = [at for at, target in enumerate(self.targets) if target is None]
        for at in without:
            loads = self._packer.items[at].loads
            if any(self._try({at: target}) or self._clear(at, target) for target in loads):
                return True
        return False

    def shrink_one(self) -> bool:
        """A copy without target takes the place of a larger one."""
        items = self._packer.items
        without = [at for at, target in enumerate(self.targets) if target is None]
        for at in sorted(without, key=lambda at: (items[at].size_bytes, at)):
            size = items[at].size_bytes
            larger = [
                (-items[item].size_bytes, item, there)
                for item, there in enumerate(self.targets)
                if there in items[at].loads and items[item].size_bytes > size
            ]
            if any(self._try({at: there, item: None}) for _, item, there in sorted(larger)):
                return True
        return False

    def _clear(self, at: int, target: int) -> bool:
        """Others move on from a target, small or large ones first, or change places, until that copy fits."""
        items, before = self._packer.items, self.targets
        there = sorted(
            [item for item, place in enumerate(before) if place == target],
            key=lambda item: (items[item].size_bytes, item),
        )
        for order in (there, there[::-1]):
            self.targets = list(before)
            self.targets[at] = target
            if self._move_on(order, target) or self._change_places(order, target):
                return True
        self.targets = before
        return False

    def _move_on(self, order: list[int], target: int) -> bool:
        """As many as have to find another target."""
        for item in order:
            for other in self._packer.items[item].loads:
                self.targets[item] = other
                if other != target and self._takes(other):
                    break
                self.targets[item] = target
            if self.targets[item] != target and self._takes(target):
                return True
        return False

    def _change_places(self, order: list[int], target: int) -> bool:
        """On each other target the one with which most room is won."""
        items = self._packer.items
        elsewhere: dict[int, list[int]] = {}
        for other, there in enumerate(self.targets):
            if there is not None and there != target and target in items[other].loads:
                elsewhere.setdefault(there, []).append(other)
        for place, outer in elsewhere.items():
            inner = [item for item in order if self.targets[item] == target and place in items[item].loads]
            won = [
                (items[other].size_bytes - items[item].size_bytes, item, other)
                for item in inner
                for other in outer
                if items[other].size_bytes < items[item].size_bytes
            ]
            for _, item, other in sorted(won):
                self.targets[item], self.targets[other] = place, target
                if self._takes(place):
                    if self._takes(target):
                        return True
                    break
                self.targets[item], self.targets[other] = target, place
        return False

    def _try(self, change: _Change) -> bool:
        """Make the change if every target that it touches takes all of its copies then."""
        before = self.targets
        self.targets = [change.get(item, there) for item, there in enumerate(before)]
        touched = {*change.values(), *(before[item] for item in change)}
        if all(self._takes(target) for target in touched if target is not None):
            return True
        self.targets = before
        return False

    def _takes(self, target: int) -> bool:
        """The target takes all copies that are meant for it, one after the other."""
        packer = self._packer
        number = packer.start[target]
        for item, there in enumerate(self.targets):
            if there != target:
                continue
            self._left -= 1
            found = packer.put(number, packer.items[item].loads[target])
            if found is None or self._left < 0:
                return False
            number = found[1]
        return True
