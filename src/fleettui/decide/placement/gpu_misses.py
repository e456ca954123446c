"""A reason for each GPU of the inventory why a copy is not on it, and how they add up."""

from __future__ import annotations

from fleettui.decide.placement.board import Board
from fleettui.decide.placement.bounds import Bounds, failing
from fleettui.decide.placement.greedy import share_codes
from fleettui.decide.placement.pool import InventoryGpu, Kind
from fleettui.decide.placement.words import miss_text, number, owners, plural
from fleettui.model.placement import GpuMiss, PlacementCode, PlanRole
from fleettui.model.record import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Codes = tuple[PlacementCode, ...]
_NOT_FOUND = "free, and not found within the limits of the search"
"""Of heuristic plans alone: all others take a GPU that is free and suits."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The misses of one role, and what they come to."""

    misses: tuple[GpuMiss, ...]
    counts: dict[PlacementCode, int]
    """By the first code of each GPU."""
    inside: dict[PlacementCode, int]
    """The same of the GPUs that may be taken."""
    takers: dict[str, int]
    """Role -> GPUs that would do and that it has taken."""
    away: dict[str, int]
    """Why nodes are not planned -> GPUs that would do."""
    told: tuple[int, ...]
    """Places in the inventory, at least one of all that miss alike."""


@dataclass(frozen=True, slots=True)
class _Alike:
    """GPUs of one kind that stand alike."""

    kind: Kind
    codes: Codes
    """Beside its bounds."""
    size: int
    takers: dict[str, int]
    away: dict[str, int]
    told: tuple[int, ...]
    """The first place, and the first one that another role has taken."""


class GpuMisses:
    """Answers for one filled board. What does not depend on the role is made once."""

    __slots__ = ("_alike", "_alike_of", "_board", "_known", "_ready", "_words")

    def __init__(self, board: Board) -> None:
        self._board = board
        self._known: dict[Bounds, Tally] = {}
        """Of copies that take one GPU: roles of equal bounds miss alike."""
        self._words: list[str] = []
        """What keeps each GPU from a copy beside its bounds."""
        self._ready: list[GpuMiss] = []
        """The miss of each GPU for whom it suits."""
        self._alike_of: list[int] = []
        places: dict[tuple[Kind, Codes], list[int]] = {}
        for place, item in enumerate(board.pool.inventory):
            codes, words = _standing(board, item)
            self._words.append(words)
            self._ready.append(
                GpuMiss(item.node.name, item.gpu.index, codes or ("all_taken",), words or _NOT_FOUND)
            )
            places.setdefault(((item.gpu.memory_gb, item.gpu.cc), codes), []).append(place)
        order = {key: number for number, key in enumerate(places)}
        self._alike_of = [0] * len(self._words)
        for key, members in places.items():
            for place in members:
                self._alike_of[place] = order[key]
        self._alike = [self._join(kind, codes, members) for (kind, codes), members in places.items()]

    def _join(self, kind: Kind, codes: Codes, members: list[int]) -> _Alike:
        inventory = self._board.pool.inventory
        takers: dict[str, int] = {}
        away: dict[str, int] = {}
        told: dict[str, int] = {}
        for place in members:
            item = inventory[place]
            holder = self._board.holder.get(item.rank)
            name = holder.role if holder is not None else ""
            told.setdefault(name, place)
            if holder is not None:
                takers[name] = takers.get(name, 0) + 1
            elif codes == ("excluded",):
                away[item.node.unavailable] = away.get(item.node.unavailable, 0) + 1
        return _Alike(kind, codes, len(members), takers, away, tuple(told.values())[:2])

    def of_single(self, bounds: Bounds) -> Tally:
        """For a copy that takes one GPU."""
        found = self._known.get(bounds)
        if found is None:
            found = self._known[bounds] = self._of_single(bounds)
        return found

    def _of_single(self, bounds: Bounds) -> Tally:
        counts: dict[PlacementCode, int] = {}
        inside: dict[PlacementCode, int] = {}
        takers: dict[str, int] = {}
        away: dict[str, int] = {}
        told: list[int] = []
        failed: list[tuple[Codes, str]] = []
        for group in self._alike:
            codes = failing(bounds, *group.kind)
            text = _text(bounds, group.kind, codes)
            failed.append((codes + group.codes if codes else (), text))
            first = (*codes, *group.codes, "all_taken")[0]
            counts[first] = counts.get(first, 0) + group.size
            if group.codes not in (("disabled",), ("excluded",)):
                inside[first] = inside.get(first, 0) + group.size
            if not codes:
                _add(takers, group.takers)
                _add(away, group.away)
            told += group.told
        misses = tuple(
            [
                GpuMiss(ready.node, ready.gpu_index, codes, f"{text}; {words}" if words else text)
                if codes
                else ready
                for ready, words, (codes, text) in zip(
                    self._ready, self._words, [failed[alike] for alike in self._alike_of], strict=True
                )
            ]
        )
        return Tally(misses, counts, inside, takers, away, tuple(sorted(told)))

    def of_several(self, role: PlanRole, bounds: Bounds) -> Tally:
        """For a copy that takes several GPUs of one node."""
        board = self._board
        suits = set(board.suits(role))
        suiting: dict[int, int] = {}
        for gpu in board.pool.gpus:
            suiting[gpu.node] = suiting.get(gpu.node, 0) + (gpu.kind in suits)
        misses = []
        for place, item in enumerate(board.pool.inventory):
            kind = (item.gpu.memory_gb, item.gpu.cc)
            codes, ready = failing(bounds, *kind), self._ready[place]
            if codes or item.standing:
                words = [_text(bounds, kind, codes), self._words[place]]
                codes = (*codes, *(ready.codes if self._words[place] else ()))
                misses.append(GpuMiss(ready.node, ready.gpu_index, codes, "; ".join(filter(None, words))))
                continue
            node = item.node.name
            count = suiting[board.pool.gpus[item.rank].node]
            found: Codes = ("no_gpu",) if count < role.gpus else ()
            words = [f"{plural(count, 'GPU')} of {node} would do, a copy takes {role.gpus}"] if found else []
            if item.rank in board.holder:
                found, words = (*found, "all_taken"), [*words, self._words[place]]
            elif not found:
                found = ("all_taken",)
                words = [f"too few of the {count} GPUs of {node} that would do are free"]
            misses.append(GpuMiss(node, item.gpu.index, found, "; ".join(words)))
        return self.tally(tuple(misses))

    def of_share(self, role: PlanRole, copies: Iterable[int]) -> Tally:
        """For copies that share: only the GPUs of their targets count."""
        board, bounds = self._board, self._board.bounds_of(role)
        missing, root = set(copies), board.roots.get(role.name)
        misses = []
        for place, item in enumerate(board.pool.inventory):
            holder = board.holder.get(item.rank)
            if holder is not None and holder.role == root and holder.copy in missing:
                codes = share_codes(board, role, item.rank) or ("share_full",)
                kind = (item.gpu.memory_gb, item.gpu.cc)
                tenants = owners(name for name, _ in board.tenants[item.rank])
                room = f"{number(board.used_gb(item.rank))} of {kind[0]} GB are needed by {tenants}"
                words = [room if code == "share_full" else miss_text(code, bounds, *kind) for code in codes]
                misses.append(GpuMiss(item.node.name, item.gpu.index, codes, "; ".join(words)))
                continue
            out: Codes = (item.standing,) if item.standing else ()
            text = f"not a GPU of {role.share_with} that lacks it"
            text += f"; {self._words[place]}" if out else ""
            misses.append(GpuMiss(item.node.name, item.gpu.index, ("share_unplaced", *out), text))
        return self.tally(tuple(misses))

    def tally(self, misses: tuple[GpuMiss, ...]) -> Tally:
        """Add up misses one by one."""
        counts: dict[PlacementCode, int] = {}
        inside: dict[PlacementCode, int] = {}
        takers: dict[str, int] = {}
        away: dict[str, int] = {}
        for miss, item in zip(misses, self._board.pool.inventory, strict=True):
            first = miss.codes[0]
            _add(counts, {first: 1})
            if item.rank >= 0:
                _add(inside, {first: 1})
            if first == "all_taken" and item.rank in self._board.holder:
                _add(takers, {self._board.holder[item.rank].role: 1})
            elif first == "excluded":
                _add(away, {item.node.unavailable: 1})
        return Tally(misses, counts, inside, takers, away, tuple(range(len(misses))))


def _standing(board: Board, item: InventoryGpu) -> tuple[Codes, str]:
    """What keeps a GPU from any copy."""
    if item.standing == "disabled":
        return ("disabled",), "disabled"
    if item.standing == "excluded":
        return ("excluded",), f"{item.node.name} is not planned: {item.node.unavailable}"
    spot = board.holder.get(item.rank)
    return ((), "") if spot is None else (("all_taken",), f"taken by {spot.role}/{spot.copy}")


def _text(bounds: Bounds, kind: Kind, codes: Codes) -> str:
    return "; ".join(miss_text(code, bounds, *kind) for code in codes)


def _add(sums: dict[str, int] | dict[PlacementCode, int], more: dict[str, int]) -> None:
    for key, count in more.items():
        sums[key] = sums.get(key, 0) + count  # type: ignore[index, call-overload]
