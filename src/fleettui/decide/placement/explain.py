"""Why copies have no place: a reason for each GPU, a summary, the nearest miss, what would help."""

from __future__ import annotations

from fleettui.decide.placement.board import Board
from fleettui.decide.placement.bounds import Bounds, failing
from fleettui.decide.placement.explain_cpu import cpu_misses, cpu_summary
from fleettui.decide.placement.fixes import Openings, find_fixes, find_openings
from fleettui.decide.placement.greedy import share_codes
from fleettui.decide.placement.pool import InventoryGpu
from fleettui.decide.placement.queue import Queue
from fleettui.decide.placement.words import miss_text, number, owners, plural, summary_part
from fleettui.model.placement import PLACEMENT_CODES, GpuMiss, PlacementCode, PlanRole, UnplacedRole
from fleettui.model.unknown import Maybe, Unknown

_ORDER = {code: place for place, code in enumerate(PLACEMENT_CODES)}
_OUT: tuple[PlacementCode, ...] = ("disabled", "excluded")
_WEIGHTS: dict[PlacementCode, float] = {"all_taken": 0.0, "share_full": 0.1, "disabled": 0.2, "excluded": 0.3}
"""How far off a GPU is that fails by this alone; bounds weigh 1 and more."""


def explain(board: Board, queue: Queue) -> tuple[UnplacedRole, ...]:
    """An entry for each role with a missing copy."""
    found = []
    openings: Openings | None = None
    by_name = {role.name: role for role in queue.roles}
    for role in queue.roles:
        if role.name not in board.misses:
            continue
        if openings is None:
            openings = find_openings(board, by_name)
        found.append(_explain_role(board, role, by_name.get(queue.roots.get(role.name, "")), openings))
    return tuple(found)


def _explain_role(board: Board, role: PlanRole, root: PlanRole | None, openings: Openings) -> UnplacedRole:
    missed = board.misses[role.name]
    code = missed[0][1]
    if not role.gpu:
        misses = cpu_misses(board, role, code)
        reason = _share_reason(role, root, missed) if role.share_with else cpu_summary(board, role)
        fixes: tuple[str, ...] = ()
        if code == "ram" and not role.share_with:
            fixes = (f"with one more node of {number(role.min_ram_gb)} GB RAM or more",)
        return UnplacedRole(role.name, len(missed), code, reason, misses, "", fixes)
    bounds = board.bounds_of(role)
    misses = (
        _share_misses(board, role, [copy for copy, _ in missed])
        if role.share_with
        else _gpu_misses(board, role, bounds)
    )
    reason = _share_reason(role, root, missed) if role.share_with else summarize(board, bounds, misses)
    if role.cpu_fallback:
        reason = f"{reason}; on CPUs: {cpu_summary(board, role)}"
    elif not role.share_with:
        code = main_code(board, misses)
    nearest = _nearest(role, bounds, board, misses)
    fixes = find_fixes(board, role, misses, openings, len(missed)) if not role.share_with else ()
    return UnplacedRole(role.name, len(missed), code, reason, misses, nearest, fixes)


def main_code(board: Board, misses: tuple[GpuMiss, ...]) -> PlacementCode:
    """`all_taken` where a GPU would do and is taken; else what most GPUs of the pool fail by."""
    firsts = [miss.codes[0] for miss in misses if miss.codes[0] not in _OUT]
    inside = [miss.codes[0] for miss, gpu in zip(misses, board.pool.inventory, strict=True) if gpu.rank >= 0]
    if not inside:
        return "no_gpu"
    if "all_taken" in firsts:
        return "all_taken"
    counts = {code: inside.count(code) for code in dict.fromkeys(inside)}
    return min(counts, key=lambda code: (-counts[code], _ORDER[code]))


def _gpu_misses(board: Board, role: PlanRole, bounds: Bounds) -> tuple[GpuMiss, ...]:
    kinds: dict[object, tuple[tuple[PlacementCode, ...], str]] = {}
    suiting: dict[int, int] = {}
    if role.gpus > 1:
        suits = set(board.suits(role))
        for gpu in board.pool.gpus:
            suiting[gpu.node] = suiting.get(gpu.node, 0) + (gpu.kind in suits)
    found = []
    for item in board.pool.inventory:
        key = (item.gpu.memory_gb, item.gpu.cc)
        known = kinds.get(key)
        if known is None:
            codes = failing(bounds, *key)
            text = "; ".join(miss_text(code, bounds, *key) for code in codes)
            known = kinds[key] = (codes, text)
        codes, text = known
        more, words = _standing(board, role, item, suiting if not codes else {})
        if more:
            codes = (*codes, *more)
            text = f"{text}; {words}" if text else words
        found.append(GpuMiss(item.node.name, item.gpu.index, codes, text))
    return tuple(found)


def _standing(
    board: Board, role: PlanRole, item: InventoryGpu, suiting: dict[int, int]
) -> tuple[tuple[PlacementCode, ...], str]:
    """What keeps a GPU from a copy beside its bounds."""
    if item.standing == "disabled":
        return ("disabled",), "disabled"
    if item.standing == "excluded":
        return ("excluded",), f"{item.node.name} is not planned: {item.node.unavailable}"
    spot = board.holder.get(item.rank)
    taken = "" if spot is None else f"taken by {spot.role}/{spot.copy}"
    suits = suiting.get(board.pool.gpus[item.rank].node)
    if suits is not None and suits < role.gpus:
        words = f"{plural(suits, 'GPU')} of {item.node.name} would do, a copy takes {role.gpus}"
        return (("no_gpu", "all_taken"), f"{words}; {taken}") if taken else (("no_gpu",), words)
    if taken:
        return ("all_taken",), taken
    if suits is not None:
        return ("all_taken",), f"too few of the {suits} GPUs of {item.node.name} that would do are free"
    return (), ""


def _share_misses(board: Board, role: PlanRole, copies: list[int]) -> tuple[GpuMiss, ...]:
    """A role that shares may stand on the GPUs of its target alone."""
    root_copies: dict[int, int] = {}
    for rank, spot in board.holder.items():
        if spot.copy in copies and role.share_with and _is_target(board, role, rank):
            root_copies[rank] = spot.copy
    found = []
    for item in board.pool.inventory:
        bounds = board.bounds_of(role)
        key = (item.gpu.memory_gb, item.gpu.cc)
        if item.rank in root_copies:
            codes = share_codes(board, role, item.rank) or ("share_full",)
            used = number(board.used_gb(item.rank))
            room = f"{used} of {key[0]} GB are needed by {owners(n for n, _ in board.tenants[item.rank])}"
            words = [room if code == "share_full" else miss_text(code, bounds, *key) for code in codes]
            found.append(GpuMiss(item.node.name, item.gpu.index, codes, "; ".join(words)))
            continue
        more, words_more = _standing(board, role, item, {}) if item.rank < 0 else ((), "")
        text = f"not a GPU of {role.share_with} that lacks it" + (f"; {words_more}" if words_more else "")
        found.append(GpuMiss(item.node.name, item.gpu.index, ("share_unplaced", *more), text))
    return tuple(found)


def _is_target(board: Board, role: PlanRole, rank: int) -> bool:
    """The GPU is held by the role at the end of the chain."""
    return board.roots.get(role.name) == board.holder[rank].role


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


def summarize(board: Board, bounds: Bounds, misses: tuple[GpuMiss, ...]) -> str:
    """`12 GPUs: 5 too small, 3 below cc 7.5, 4 taken by llm-main x2, llm-small x2`."""
    if not misses:
        return "no GPU in the inventory"
    counts: dict[PlacementCode, int] = {}
    takers: list[str] = []
    away: list[str] = []
    for miss, item in zip(misses, board.pool.inventory, strict=True):
        first = miss.codes[0]
        counts[first] = counts.get(first, 0) + 1
        if first == "all_taken" and item.rank in board.holder:
            takers.append(board.holder[item.rank].role)
        elif first == "excluded":
            away.append(item.node.unavailable)
    parts = []
    for code in sorted(counts, key=lambda code: _ORDER[code]):
        if code == "all_taken":
            beside = counts[code] - len(takers)
            parts += [f"{len(takers)} taken by {owners(takers)}"] if takers else []
            parts += [f"{beside} beside taken ones"] if beside else []
        elif code == "excluded":
            parts.append(f"{counts[code]} on nodes in {owners(away)}")
        else:
            parts.append(summary_part(code, counts[code], bounds))
    return f"{plural(len(misses), 'GPU')}: {', '.join(parts)}"


def _nearest(role: PlanRole, bounds: Bounds, board: Board, misses: tuple[GpuMiss, ...]) -> str:
    """The GPU that fails by the fewest codes, then by the least."""
    best: tuple[float, int] | None = None
    for place, (miss, item) in enumerate(zip(misses, board.pool.inventory, strict=True)):
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
    miss, item = misses[best[1]], board.pool.inventory[best[1]]
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
