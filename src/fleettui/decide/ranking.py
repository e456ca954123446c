"""Order of the machines that may serve a model. The rules: docs/routing.md, "Order within a tier"."""

from __future__ import annotations

from fleettui.decide.natural import natural_key
from fleettui.model.route import TIER_BUSY, TIER_FITS, RouteCandidate, RouteQuery
from fleettui.model.unknown import Unknown
from fleettui.model.vram import gib_of_mib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LAST = float("inf")
"""Sorts an unknown figure after every real one."""
_MASK = (1 << 64) - 1


def rank(candidates: list[RouteCandidate], query: RouteQuery) -> list[RouteCandidate]:
    """Best first."""
    if query.is_strict:
        ranked = sorted(candidates, key=strict_key)
        best = len(ranked)
    else:
        ranked = _cross(sorted(candidates, key=order_key))
        best = sum(1 for candidate in ranked if candidate.tier == ranked[0].tier)
    if query.sticky is not None and best > 1:
        key = query.sticky
        ranked[:best] = sorted(ranked[:best], key=lambda item: (-_share(key, item.machine), item.machine))
    return ranked


def order_key(candidate: RouteCandidate) -> tuple[Any, ...]:
    """Tier; leases held; what evictions cost; most free VRAM; least used GPUs; fewest requests; name."""
    free, used = candidate.free_mib, candidate.utilisation_percent
    return (
        candidate.tier,
        candidate.leases,
        round(candidate.evict_cost_s),
        _LAST if type(free) is Unknown else -free,
        _LAST if type(used) is Unknown else used,
        candidate.in_flight,
        natural_key(candidate.machine),
    )


def strict_key(candidate: RouteCandidate) -> tuple[Any, ...]:
    """The strict rule: all resident copies alike, most free VRAM, then name.

    Compared in the one-decimal GiB of `GET /api/infrastructure`, so that a client who applies the same
    rule to that document picks the same machine.
    """
    free = gib_of_mib(candidate.free_mib)
    return (_LAST if free is None else -free, natural_key(candidate.machine))


def _cross(ranked: list[RouteCandidate]) -> list[RouteCandidate]:
    """A busy copy comes after idle machines that load the model before its queue, if known, would end."""
    loads = [
        item.eta_s
        for item in ranked
        if item.tier == TIER_FITS and not item.busy and not isinstance(item.eta_s, Unknown)
    ]
    if not loads:
        return ranked
    soonest = min(loads)
    slow = [
        item
        for item in ranked
        if item.tier == TIER_BUSY and not isinstance(item.eta_s, Unknown) and item.eta_s > soonest
    ]
    if not slow:
        return ranked
    others = [item for item in ranked if item not in slow]
    after = sum(1 for item in others if item.tier <= TIER_FITS)
    return [*others[:after], *slow, *others[after:]]


def _share(key: str, machine: str) -> int:
    """Rendezvous hashing: the machine with the largest share of a key has it, whoever else is there.

    FNV-1a, then the finalizer of MurmurHash3: without it names that differ in one digit share a winner.
    """
    value = 0xCBF29CE484222325
    for byte in f"{key}\0{machine}".encode(errors="surrogatepass"):
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = ((value ^ (value >> 33)) * factor) & _MASK
    return value ^ (value >> 33)
