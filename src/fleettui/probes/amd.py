"""AMD cards: what sysfs, amd-smi and rocm-smi say of them, joined by bus id and never by position."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from fleettui.model.gpu import GpuCard
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.amd_sysfs import AmdFacts, bus_order

MEMORY_ONLY = "AMD GPU (memory only)"
"""The name of a card that only sysfs knows."""

SMALL_VRAM_MIB = 2048
"""Where the kernel does not tell what a part is: graphics memory of an integrated one."""

_HOTTEST_C = 150


_LIVE = (
    "total_mib", "used_mib", "gtt_total_mib", "gtt_used_mib", "utilisation_percent", "temperature_c",
    "power_w", "power_limit_w", "fan_percent",
)  # fmt: skip
_NAMES = ("tool_index", "uuid", "name", "driver")


def merge(sysfs: tuple[AmdFacts, ...], tool: tuple[AmdFacts, ...]) -> tuple[AmdFacts, ...]:
    """Each card once: live figures from sysfs where it has them, names and numbers from the tool.

    Cards are the same by bus id alone.
    """
    by_bus = {bus_order(facts): facts for facts in tool if not isinstance(facts.bus_id, Unknown)}
    merged = [_merge_one(facts, by_bus.pop(bus_order(facts), None)) for facts in sysfs]
    return tuple(merged) if sysfs else tool


def _merge_one(sysfs: AmdFacts, tool: AmdFacts | None) -> AmdFacts:
    if tool is None:
        return sysfs
    changes = {}
    for names, best, other in ((_LIVE, sysfs, tool), (_NAMES, tool, sysfs)):
        for name in names:
            value = getattr(best, name)
            changes[name] = getattr(other, name) if isinstance(value, Unknown) else value
    return replace(sysfs, **changes)


def with_kinds(cards: tuple[AmdFacts, ...], kinds: dict[tuple[int, ...], bool]) -> tuple[AmdFacts, ...]:
    """The cards with what is known of being integrated; where the kernel is silent, little memory tells."""
    return tuple(
        replace(facts, is_integrated=kinds.get(bus_order(facts), _looks_integrated(facts))) for facts in cards
    )


def _looks_integrated(facts: AmdFacts) -> Maybe[bool]:
    return facts.total_mib if isinstance(facts.total_mib, Unknown) else facts.total_mib <= SMALL_VRAM_MIB


def make_cards(cards: tuple[AmdFacts, ...], first_index: int = 0) -> tuple[GpuCard, ...]:
    """Cards with the tool's numbers, else in the order of the bus ids, each plus `first_index`, so that they
    follow the cards of another vendor."""
    numbers = [facts.tool_index for facts in cards]
    known = [number for number in numbers if not isinstance(number, Unknown)]
    has_numbers = len(set(known)) == len(cards)
    uuids = [facts.uuid for facts in cards]
    made = []
    for position, facts in enumerate(cards):
        number = facts.tool_index if has_numbers else position
        # Cards without a serial number share one UUID, 00ff1586-0000-1000-8000-000000000000: the bus id then.
        is_unique = not isinstance(facts.uuid, Unknown) and uuids.count(facts.uuid) == 1
        uuid = facts.uuid if is_unique else facts.bus_id
        made.append(_make_card(facts, first_index + number, uuid))  # type: ignore[operator]
    return tuple(sorted(made, key=lambda card: card.index))


@lru_cache(maxsize=512)
def _make_card(facts: AmdFacts, index: int, uuid: Maybe[str]) -> GpuCard:
    total, used = facts.total_mib, facts.used_mib
    is_unified = False
    if facts.is_integrated is True and _is_larger(facts.gtt_total_mib, total):
        # Models go into main memory, which the part addresses beside the memory set aside for it.
        total, used, is_unified = _sum(total, facts.gtt_total_mib), _sum(used, facts.gtt_used_mib), True
    free: Maybe[int] = total if isinstance(total, Unknown) else used
    if not isinstance(total, Unknown) and not isinstance(used, Unknown):
        free = max(0, total - used)
    name = facts.name
    if isinstance(name, Unknown):
        name = MEMORY_ONLY if isinstance(facts.tool_index, Unknown) else "AMD GPU"
    return GpuCard(
        index,
        uuid,
        name,
        facts.driver,
        total,
        used,
        free,
        facts.utilisation_percent,
        facts.temperature_c,
        facts.power_w,
        facts.power_limit_w,
        facts.fan_percent,
        bus_id=facts.bus_id,
        is_unified=is_unified,
        suspect=_find_suspect(facts),
        vendor="amd",
    )


def _is_larger(a: Maybe[int], b: Maybe[int]) -> bool:
    return not isinstance(a, Unknown) and (isinstance(b, Unknown) or a > b)


def _sum(a: Maybe[int], b: Maybe[int]) -> Maybe[int]:
    return a if isinstance(a, Unknown) else b if isinstance(b, Unknown) else a + b


def _find_suspect(facts: AmdFacts) -> tuple[str, ...]:
    busy, heat = facts.utilisation_percent, facts.temperature_c
    suspect: tuple[str, ...] = ()
    if not isinstance(busy, Unknown) and busy > 100:
        suspect += ("utilisation_percent",)
    if not isinstance(heat, Unknown) and heat > _HOTTEST_C:
        suspect += ("temperature_c",)
    return suspect


def counts_as_card(
    facts: AmdFacts, *, has_other_cards: bool, has_tool: bool, is_declared: bool, is_cpu_only: bool
) -> bool:
    """An integrated part is no place for models beside real cards, nor where nobody set it up for that."""
    if facts.is_integrated is not True:
        return True
    return not has_other_cards and not is_cpu_only and (has_tool or is_declared)


def needs_metric(cards: Collection[AmdFacts]) -> bool:
    """True when sysfs leaves a figure open that the tool may know."""
    return any(
        isinstance(getattr(facts, name), Unknown)
        for facts in cards
        for name in ("total_mib", "used_mib", "utilisation_percent", "temperature_c", "power_w")
        if not facts.is_asleep
    )
