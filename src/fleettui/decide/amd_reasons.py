"""What is wrong with AMD's cards where they stand beside another vendor's, and what to know of them."""

from __future__ import annotations

from fleettui.decide.lateness import is_long_late
from fleettui.model.clock import day_and_time
from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.snapshot import MachineSnapshot, Reason

AMD_THERMAL_LIMIT_C = 100
"""amdgpu slows a card down from 100 °C at its edge on (slowdown_edge_temperature of `amd-smi static`)."""

THERMAL_LIMIT_C = 90
"""NVIDIA: consumer cards throttle at 83-90 °C, data centre cards a little later."""


def amd_reasons(
    snapshot: MachineSnapshot, reading: GpuReading, now: float, utc_offset_s: int | None
) -> list[Reason]:
    """Reasons of AMD's own source, which hides nothing of the other vendor's."""
    reasons = [Reason("note", "gpu_note", text) for text in reading.notes]
    problem, status = reading.amd_problem, snapshot.sources.get("amd")
    if problem is not None:
        reasons.append(Reason("degraded", f"amd_{problem.code}", problem.text))
    elif status is not None and status.state == "error":
        reasons.append(Reason("degraded", "amd_error", f"AMD GPUs: {status.error or 'cannot be read'}"))
    elif status is not None and is_long_late(status, now) and status.since is not None:
        since = day_and_time(status.since, now, utc_offset_s)
        reasons.append(Reason("degraded", "amd_late", f"AMD GPUs do not answer since {since}"))
    return reasons


def tool_of(snapshot: MachineSnapshot) -> str:
    """What is asked of the machine's cards: AMD's driver where there are only cards of AMD."""
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    return "amdgpu" if cards and all(card.vendor == "amd" for card in cards) else "nvidia-smi"


def thermal_limit_c(card: GpuCard) -> int:
    """From here on a card counts as too hot."""
    return AMD_THERMAL_LIMIT_C if card.vendor == "amd" else THERMAL_LIMIT_C
