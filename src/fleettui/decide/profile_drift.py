"""A machine's stored profile against what is read of it now and what its file declares."""

from __future__ import annotations

from fleettui.model.gpu import GpuCard
from fleettui.model.profile import KIB_OF_GIB, MIB_OF_GIB, Profile, ProfileGpu, nearest
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.gpu_names import strip_maker

MEMORY_TOLERANCE = 0.02
"""MemTotal changes by this much with the kernel and what the firmware takes."""


def profile_differences(machine: MachineSnapshot, profile: Profile) -> tuple[str, ...]:
    """What is another way now than in the profile, in words; empty: nothing that is known now.

    Of a machine of which nothing is read, and of cards while they are not read, nothing is said.
    """
    found: list[str] = []
    if machine.gpu is not None and machine.gpu.problem is None and not isinstance(profile.gpus, Unknown):
        cards = tuple(card for card in machine.gpu.cards if card.vendor == "nvidia")
        found += _card_differences(profile.gpus, cards)
    if machine.memory is not None:
        found += _memory_differences(profile.memory_kb, machine.memory.total_kib)
    return tuple(found)


def _card_differences(before: tuple[ProfileGpu, ...], cards: tuple[GpuCard, ...]) -> list[str]:
    now = {card.index: card for card in cards}
    then = {gpu.index: gpu for gpu in before}
    found = []
    for gpu in before:
        card = now.get(gpu.index)
        if card is None:
            found.append(f"GPU {gpu.index} missing: {_name(gpu.name)}")
        elif _differ(gpu.name, card.name):
            found.append(f"GPU {gpu.index} is {_name(card.name)} now, was {_name(gpu.name)}")
        elif not card.is_unified and not gpu.is_unified and _differ(gpu.memory_mib, card.total_mib):
            found.append(f"GPU {gpu.index} has {_gib(card.total_mib)} GiB now, had {_gib(gpu.memory_mib)}")
    found += [f"GPU {card.index} is new: {_name(card.name)}" for card in cards if card.index not in then]
    drivers = {(gpu.driver, now[gpu.index].driver) for gpu in before if gpu.index in now}
    changed = sorted((str(old), str(new)) for old, new in drivers if _differ(old, new))
    found += [f"driver {new} now, was {old}" for old, new in changed]
    return found


def _memory_differences(before: Maybe[int], now: Maybe[int]) -> list[str]:
    """KiB."""
    if isinstance(before, Unknown) or isinstance(now, Unknown):
        return []
    if abs(now - before) <= before * MEMORY_TOLERANCE:
        return []
    return [f"{nearest(now, KIB_OF_GIB)} GiB of RAM now, had {nearest(before, KIB_OF_GIB)}"]


def _differ(before: object, now: object) -> bool:
    return not isinstance(before, Unknown) and not isinstance(now, Unknown) and before != now


def _name(name: Maybe[str]) -> str:
    return "of unknown name" if isinstance(name, Unknown) else strip_maker(name)


def _gib(mib: Maybe[int]) -> str:
    return str(mib) if isinstance(mib, Unknown) else str(nearest(mib, MIB_OF_GIB))
