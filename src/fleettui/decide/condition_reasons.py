"""What the condition of the cards tells: Xid, ECC, throttling, PCIe, persistence. Most severe first."""

from __future__ import annotations

from fleettui.model.clock import hh_mm
from fleettui.model.gpu import CardCondition, GpuCondition, GpuReading, XidEvent
from fleettui.model.snapshot import MachineSnapshot, Reason, Severity
from fleettui.model.unknown import Unknown
from fleettui.probes.nvidia_xid import card_of_xid
from fleettui.probes.nvidia_xid_catalogue import meaning_of

SLOW_CALL_S = 2.0
DAY_S = 86_400.0
"""An Xid degrades a machine this long; a fault that lasts has other signs. Then it is a note."""


def condition_reasons(
    snapshot: MachineSnapshot, reading: GpuReading, now: float, utc_offset_s: int | None
) -> list[Reason]:
    """Reasons that the slow part of the GPU source gives; disabled cards are left out."""
    condition = reading.condition
    if condition is None:
        return []
    disabled = snapshot.machine.disabled_gpus
    reasons = _xid_reasons(reading, condition, disabled, now, utc_offset_s)
    if reading.is_stale:
        return reasons
    cards = [card for card in condition.cards if card.index not in disabled]
    for judge in (_ecc_reasons, _throttle_reasons, _link_reasons):
        reasons += judge(cards)
    reasons += _persistence_reasons(cards, condition)
    return reasons


def _xid_reasons(
    reading: GpuReading,
    condition: GpuCondition,
    disabled: tuple[int, ...],
    now: float,
    utc_offset_s: int | None,
) -> list[Reason]:
    """The last event of each card and code; of programs' faults only those of the last day."""
    if isinstance(condition.xids, Unknown):
        return []
    last: dict[tuple[object, int], XidEvent] = {}
    for event in condition.xids:
        key = (event.bus_id, event.code)
        last.pop(key, None)
        last[key] = event
    found: list[tuple[bool, Reason]] = []
    for event in last.values():
        meaning = meaning_of(event.code)
        is_recent = isinstance(event.at, Unknown) or now - event.at < DAY_S
        if not (meaning.is_fatal or is_recent):
            continue
        index = card_of_xid(reading, event)
        severity: Severity = "degraded" if meaning.is_fatal and is_recent else "note"
        if index in disabled:
            severity = "note"
        when = "since boot, more than a day ago"
        if is_recent:
            when = "since boot" if isinstance(event.at, Unknown) else f"at {hh_mm(event.at, utc_offset_s)}"
        where = f"GPU at {event.bus_id}" if index is None else f"GPU {index}"
        text = f"{where}: Xid {event.code} {when}, {meaning.what}: {meaning.what_to_do}"
        found.append((meaning.is_fatal, Reason(severity, "gpu_xid", text)))
    return [reason for _, reason in sorted(found, key=lambda item: not item[0])]


def _ecc_errors(card: CardCondition) -> int:
    return 0 if isinstance(card.ecc_uncorrected, Unknown) else card.ecc_uncorrected


def _ecc_reasons(cards: list[CardCondition]) -> list[Reason]:
    reasons = []
    for card in cards:
        errors = _ecc_errors(card)
        if errors:
            text = (
                f"GPU {card.index}: {errors} uncorrected ECC error{'s' * (errors > 1)} since its last reset: "
                "restart what runs on it and reset it; replace it if they come back"
            )
            reasons.append(Reason("degraded", "gpu_ecc", text))
    pending = [card for card in cards if card.is_retirement_pending is True]
    if pending:
        text = f"{_named(pending)}: bad memory pages are retired at the next reset: reset or reboot when idle"
        reasons.append(Reason("note", "gpu_retirement", text))
    return reasons


def _throttle_reasons(cards: list[CardCondition]) -> list[Reason]:
    words: tuple[tuple[str, Severity, str], ...] = (
        ("thermal", "degraded", "slowed down by heat: check fans and airflow"),
        ("power brake", "degraded", "slowed down by the power brake: check power supply and cables"),
        ("hardware slowdown", "note", "slowed down by its hardware: heat, power, or a change of clocks"),
        ("power cap", "note", "at the power limit"),
    )
    slowed = [card for card in cards if _throttle(card)]
    reasons = []
    for throttle, severity, text in words if slowed else ():
        held = [card for card in slowed if throttle in _throttle(card)]
        if held:
            code = "gpu_throttle_" + throttle.replace(" ", "_")
            reasons.append(Reason(severity, code, f"{_named(held)} {text}"))
    return reasons


def _throttle(card: CardCondition) -> tuple[str, ...]:
    return () if isinstance(card.throttle, Unknown) else card.throttle


def _missing_lanes(card: CardCondition) -> tuple[int, int] | None:
    """Lanes in use and possible, when a card at work uses fewer; one at rest may (nvidia-smi manual)."""
    width, most = card.pcie_width, card.pcie_width_max
    if isinstance(width, Unknown) or isinstance(most, Unknown) or not card.is_at_work:
        return None
    return (width, most) if 0 < width < most else None


def _link_reasons(cards: list[CardCondition]) -> list[Reason]:
    """Half the lanes is what many boards give two cards; a quarter or less is a bad seat or riser."""
    reasons = []
    for card in cards:
        lanes = _missing_lanes(card)
        if lanes is not None:
            width, most = lanes
            severity: Severity = "degraded" if width * 4 <= most else "note"
            text = f"GPU {card.index}: PCIe x{width} of x{most}, models load slowly: check its seat and slot"
            reasons.append(Reason(severity, "gpu_pcie", text))
    return reasons


def _persistence_reasons(cards: list[CardCondition], condition: GpuCondition) -> list[Reason]:
    off = [card for card in cards if card.has_persistence is False]
    slow = not isinstance(condition.call_s, Unknown) and condition.call_s >= SLOW_CALL_S
    took = f"nvidia-smi takes {condition.call_s:.0f} s a call" if slow else ""
    if off:
        cost = f"{took}: " if slow else "each first call loads the driver anew: "
        text = f"persistence mode is off ({_named(off)}), {cost}`nvidia-smi -pm 1` keeps it loaded"
        return [Reason("note", "gpu_persistence", text)]
    return [Reason("note", "gpu_slow_tool", f"{took}: a busy or ailing driver")] if slow else []


def _named(cards: list[CardCondition]) -> str:
    """`GPU 0, 1`."""
    return "GPU " + ", ".join(str(card.index) for card in cards)
