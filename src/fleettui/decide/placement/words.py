"""Numbers and codes of a plan in words."""

from __future__ import annotations

from fleettui.decide.natural import natural_key
from fleettui.decide.placement.bounds import Bounds
from fleettui.model.placement import Capability, PlacementCode
from fleettui.model.unknown import Maybe, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def number(value: float) -> str:
    """`20`, `19.4`."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def capability(cc: Maybe[Capability]) -> str:
    """`8.9`."""
    return "unknown" if isinstance(cc, Unknown) else f"{cc[0]}.{cc[1]}"


def plural(count: int, word: str) -> str:
    """`1 GPU`, `2 GPUs`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def owners(roles: Iterable[str]) -> str:
    """`llm-main x2, embed`."""
    counts: dict[str, int] = {}
    for role in roles:
        counts[role] = counts.get(role, 0) + 1
    return with_counts(counts)


def with_counts(counts: Mapping[str, int]) -> str:
    """`llm-main x2, embed`: most first, then in natural order."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], natural_key(item[0])))
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in ordered)


def miss_text(code: PlacementCode, bounds: Bounds, memory_gb: int, cc: Maybe[Capability]) -> str:
    """Why one GPU fails a bound."""
    if code == "vram":
        return f"{memory_gb} GB of the {number(bounds.min_vram_gb)} GB"
    side, bound = _cc_bound(code, bounds)
    return f"cc {capability(cc)} is {side} {bound}" if side else "its cc is not known"


def summary_part(code: PlacementCode, count: int, bounds: Bounds) -> str:
    """`5 too small`."""
    side, bound = _cc_bound(code, bounds)
    return f"{count} {side} cc {bound}" if side else f"{count} {_SUMMARIES.get(code, code)}"


_SUMMARIES: dict[PlacementCode, str] = {
    "vram": "too small",
    "cc_unknown": "of unknown cc",
    "no_gpu": "with too few beside",
    "disabled": "disabled",
    "share_full": "without room for a share",
    "share_unplaced": "not of the role it shares with",
}


def _cc_bound(code: PlacementCode, bounds: Bounds) -> tuple[str, str]:
    """(on which side of a bound of cc a GPU is, that bound); empty for what fails by another one."""
    if code == "cc_low":
        return "below", capability(bounds.role_cc)
    if code == "engine":
        return "below", f"{capability(bounds.engine_cc)} of {bounds.engine}"
    if code == "cc_high":
        return "above", capability(bounds.max_cc or (0, 0))
    return "", ""
