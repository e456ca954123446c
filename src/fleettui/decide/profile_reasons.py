"""GPUs that a machine had when its profile was measured, and has no more."""

from __future__ import annotations

from fleettui.model.clock import iso_utc
from fleettui.model.gpu import GpuReading
from fleettui.model.profile import Profile, ProfileGpu
from fleettui.model.snapshot import MachineSnapshot, Reason, Severity
from fleettui.model.unknown import Unknown
from fleettui.probes.gpu_names import strip_maker

_SEES_NOTHING = frozenset({"no_tool", "no_devices"})
"""Problems that mean that there is no card to be seen; with any other nobody knows, and it has a reason."""


def profile_reasons(snapshot: MachineSnapshot, profile: Profile | None) -> list[Reason]:
    """Fewer cards than in the stored profile, where the file does not say the same already."""
    declared, reading = snapshot.machine.gpus, snapshot.gpu
    if profile is None or reading is None or isinstance(profile.gpus, Unknown):
        return []
    if declared is not None and len(declared) >= len(profile.gpus):
        return []
    number = _seen(reading)
    missing = 0 if number is None else len(profile.gpus) - number
    if missing <= 0:
        return []
    gone = _gone(profile.gpus, reading)
    names = f" ({', '.join(_name(gpu) for gpu in gone)})" if len(gone) == missing else ""
    off = snapshot.machine.disabled_gpus
    is_off = len(gone) == missing and all(gpu.is_disabled or gpu.index in off for gpu in gone)
    severity: Severity = "note" if is_off else "degraded"
    when = "" if isinstance(profile.collected_at, Unknown) else f" of {iso_utc(profile.collected_at)[:10]}"
    text = (
        f"{missing} GPU{'s' * (missing > 1)} missing{names}: {len(profile.gpus)} in the profile{when}, "
        f"{number} measured; if that is right: fleettui inventory collect {snapshot.name}"
    )
    return [Reason(severity, "gpu_gone", text)]


def _seen(reading: GpuReading) -> int | None:
    """NVIDIA's cards that are there, at fault too; None: nobody knows."""
    problem = reading.problem
    if problem is not None:
        return 0 if problem.code in _SEES_NOTHING else None
    return sum(card.vendor == "nvidia" for card in reading.cards) + len(reading.faults)


def _gone(before: tuple[ProfileGpu, ...], reading: GpuReading) -> list[ProfileGpu]:
    """By name: what is left is numbered anew from 0."""
    cards = () if reading.problem is not None else reading.cards
    left = [strip_maker(card.name) for card in cards if not isinstance(card.name, Unknown)]
    gone = []
    for gpu in before:
        if _name(gpu) in left:
            left.remove(_name(gpu))
        else:
            gone.append(gpu)
    return gone


def _name(gpu: ProfileGpu) -> str:
    return f"GPU {gpu.index}" if isinstance(gpu.name, Unknown) else strip_maker(gpu.name)
