"""Why copies have no place: a reason for each GPU, a summary, the nearest miss, what would help."""

from __future__ import annotations

from fleettui.decide.placement.board import Board
from fleettui.decide.placement.bounds import Bounds
from fleettui.decide.placement.explain_cpu import cpu_misses, cpu_summary
from fleettui.decide.placement.fixes import Openings, find_fixes, find_openings
from fleettui.decide.placement.gpu_misses import GpuMisses, Tally
from fleettui.decide.placement.queue import Queue
from fleettui.decide.placement.words import number, plural, summary_part, with_counts
from fleettui.model.placement import PLACEMENT_CODES, PlacementCode, PlanRole, UnplacedRole
from fleettui.model.unknown import Maybe, Unknown

_ORDER = {code: place for place, code in enumerate(PLACEMENT_CODES)}
_WEIGHTS: dict[PlacementCode, float] = {"all_taken": 0.0, "share_full": 0.1, "disabled": 0.2, "excluded": 0.3}
"""How far off a GPU is that fails by this alone; bounds weigh 1 and more."""


def explain(board: Board, queue: Queue) -> tuple[UnplacedRole, ...]:
    """An entry for each role with a missing copy."""
    if not board.misses:
        return ()
    by_name = {role.name: role for role in queue.roles}
    openings, gpus = find_openings(board, by_name), GpuMisses(board)
    return tuple(
        _explain_role(board, role, by_name.get(queue.roots.get(role.name, "")), openings, gpus)
        for role in queue.roles
        if role.name in board.misses
    )


def _explain_role(
    board: Board, role: PlanRole, root: PlanRole | None, openings: Openings, gpus: GpuMisses
) -> UnplacedRole:
    missed = board.misses[role.name]
    code = missed[0][1]
    fixes: tuple[str, ...]
    if not role.gpu:
        misses = cpu_misses(board, role, code)
        reason = _share_reason(role, root, missed) if role.share_with else cpu_summary(board, role)
        fixes = ()
        if code == "ram" and not role.share_with:
            fixes = (f"with one more node of {number(role.min_ram_gb)} GB RAM or more",)
        return UnplacedRole(role.name, len(missed), code, reason, misses, "", fixes)
    bounds = board.bounds_of(role)
    if role.share_with:
        tally = gpus.of_share(role, [copy for copy, _ in missed])
        reason, fixes = _share_reason(role, root, missed), ()
    else:
        tally = gpus.of_single(bounds) if role.gpus == 1 else gpus.of_several(role, bounds)
        reason = summarize(bounds, tally)
        fixes = find_fixes(board, role, tally, openings, len(missed))
    if role.cpu_fallback:
        reason = f"{reason}; on CPUs: {cpu_summary(board, role)}"
    elif not role.share_with:
        code = main_code(tally)
    nearest = _nearest(role, bounds, board, tally)
    return UnplacedRole(role.name, len(missed), code, reason, tally.misses, nearest, fixes)


def main_code(tally: Tally) -> PlacementCode:
    """`all_taken` where a GPU would do and is taken; else what most GPUs of the pool fail by."""
    inside = tally.inside
    if not inside:
        return "no_gpu"
    if "all_taken" in inside:
        return "all_taken"
    return min(inside, key=lambda code: (-inside[code], _ORDER[code]))


def _share_reason(role: PlanRole, root: PlanRole | None, missed: list[tuple[int, PlacementCode]]) -> str:
    """Each cause with its copies: `shares with chat: 1 does not fit beside it, 2 more than chat has`."""
    if root is None:
        return f"shares with {role.share_with}, of which there is no copy to share with"
    parts: dict[str, int] = {}
    for copy, code in missed:
        if copy >= root.count:
            text = f"more than the {root.count} of {root.name}"
        elif code == "share_unplaced":
            text = (
                f"whose copy of {root.name} has no GPU"
                if role.gpu
                else f"whose copy of {root.name} has no place"
            )
        elif code in ("vram", "share_full"):
            text = f"without room beside {root.name}"
        elif code == "ram":
            text = f"without RAM on the node of {root.name}"
        else:
            text = f"which the place of {root.name} does not suit ({code})"
        parts[text] = parts.get(text, 0) + 1
    told = ", ".join(f"{count} {text}" for text, count in parts.items())
    return f"shares with {root.name}: {told}"


def summarize(bounds: Bounds, tally: Tally) -> str:
    """`12 GPUs: 5 too small, 3 below cc 7.5, 4 taken by llm-main x2, llm-small x2`."""
    if not tally.misses:
        return "no GPU in the inventory"
    parts = []
    for code in sorted(tally.counts, key=lambda code: _ORDER[code]):
        count = tally.counts[code]
        if code == "all_taken":
            taken = sum(tally.takers.values())
            parts += [f"{taken} taken by {with_counts(tally.takers)}"] if taken else []
            parts += [f"{count - taken} beside taken ones"] if count > taken else []
        elif code == "excluded":
            parts.append(f"{count} excluded ({with_counts(tally.away)})")
        else:
            parts.append(summary_part(code, count, bounds))
    return f"{plural(len(tally.misses), 'GPU')}: {', '.join(parts)}"


def _nearest(role: PlanRole, bounds: Bounds, board: Board, tally: Tally) -> str:
    """The GPU that fails by the fewest codes, then by the least."""
    best: tuple[float, int] | None = None
    for place in tally.told:
        miss, item = tally.misses[place], board.pool.inventory[place]
        if role.share_with and miss.codes[0] == "share_unplaced":
            continue
        weight = sum(_weight(code, bounds, item.gpu.memory_gb, item.gpu.cc) for code in miss.codes)
        weight += 10 * (len(miss.codes) - 1)
        holder = board.holder.get(item.rank)
        weight += 5 if holder is not None and holder.role == role.name else 0  # its own other copy
        if best is None or weight < best[0]:
            best = weight, place
    if best is None:
        return ""
    miss, item = tally.misses[best[1]], board.pool.inventory[best[1]]
    name = f" ({item.gpu.name})" if item.gpu.name else ""
    return f"{miss.node}/{miss.gpu_index}{name}: {miss.reason}"


def _weight(code: PlacementCode, bounds: Bounds, memory_gb: int, cc: Maybe[tuple[int, int]]) -> float:
    if code in _WEIGHTS:
        return _WEIGHTS[code]
    if code == "vram":
        return 1 + (bounds.min_vram_gb - memory_gb) / bounds.min_vram_gb
    if isinstance(cc, Unknown):
        return 1
    wanted = bounds.max_cc if code == "cc_high" and bounds.max_cc else bounds.floor
    return 1 + min(0.99, abs((wanted[0] - cc[0]) + (wanted[1] - cc[1]) / 100) / 10)
