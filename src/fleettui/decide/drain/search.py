"""Every packing of a few copies, as far as it may be better than the best so far."""

from __future__ import annotations

from fleettui.decide.drain.packing import Assignment, Packer, Score


class Search:
    """Branch and bound over all packings, in the order of the loads."""

    def __init__(self, packer: Packer, score: Score, most_steps: int) -> None:
        self._packer, self._score, self._most_steps = packer, score, most_steps
        self.best: Assignment | None = None
        items = packer.items
        self._kinds: list[list[int]] = []
        """For each item and target: alike numbers take all items from there on alike."""
        for at in range(len(items)):
            numbers: dict[tuple[int, ...], int] = {}
            self._kinds.append([
                numbers.setdefault(tuple([id(item.loads.get(target)) for item in items[at:]]), len(numbers))
                for target in range(len(packer.start))
            ])  # fmt: skip

    def run(self) -> bool:
        """False: it was given up, and a better packing may exist."""
        packer = self._packer
        return self._go(0, list(packer.start), packer.pool(packer.start), (0, 0, 0, 0), [])

    def _go(self, at: int, state: list[int], pool: int, so_far: Score, chosen: list[int | None]) -> bool:
        packer = self._packer
        if at == len(packer.items):
            if so_far < self._score:
                self._score, self.best = so_far, tuple(chosen)
            return True
        choices = self._choices(at, state)
        if packer.steps > self._most_steps:
            return False
        for key, target, after in choices:
            score = so_far[0], so_far[1] + key[0], so_far[2] + key[1], so_far[3] + key[2]
            before = state[target]
            room = pool - packer.sums[before] + packer.sums[after]
            if packer.least(at + 1, room, score) >= self._score:
                continue
            state[target] = after
            chosen.append(target)
            is_done = self._go(at + 1, state, room, score, chosen)
            chosen.pop()
            state[target] = before
            if not is_done:
                return False
        score = so_far[0] + 1, so_far[1], so_far[2], so_far[3]
        if packer.least(at + 1, pool, score) < self._score:
            chosen.append(None)
            is_done = self._go(at + 1, state, pool, score, chosen)
            chosen.pop()
            return is_done
        return True

    def _choices(self, at: int, state: list[int]) -> list[tuple[tuple[int, int, int], int, int]]:
        """(quality, target, its bay then), the best first; of targets that are alike only the first."""
        packer, kinds = self._packer, self._kinds[at]
        found: list[tuple[tuple[int, int, int], int, int, int]] = []
        seen: set[tuple[int, int]] = set()
        for target, load in packer.items[at].loads.items():
            like = state[target], kinds[target]
            if like in seen:
                continue
            seen.add(like)
            packer.steps += 1
            placed = packer.put(state[target], load)
            if placed is not None:
                found.append((placed[0].quality, packer.sums[placed[1]], target, placed[1]))
        found.sort()
        return [(quality, target, after) for quality, _, target, after in found]
