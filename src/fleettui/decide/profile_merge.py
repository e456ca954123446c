"""A new profile over an old one: the operator's keys stay, what could not be read keeps its old value."""

from __future__ import annotations

from fleettui.model.machine import Machine
from fleettui.model.profile import Profile, ProfileCpu, ProfileGap, ProfileGpu
from fleettui.model.record import dataclass, replace
from fleettui.model.unknown import Maybe, T, Unknown

_MACHINE_KEYS = ("cpu_roles", "tags")
"""Keys of a machine file that a profile has too; and `gpus[]` by index."""


@dataclass(frozen=True, slots=True)
class MergedProfile:
    """The profile that counts from now on."""

    profile: Profile
    warnings: tuple[str, ...] = ()
    """What changed about GPUs that the operator may have said something about."""


def merge_profile(old: Profile | None, new: Profile, gaps: tuple[ProfileGap, ...] = ()) -> MergedProfile:
    """`new` with the operator's keys of `old`; GPUs match by index.

    A card that is only missing while some could not be read (`gaps`) stays.
    """
    if old is None:
        return MergedProfile(new)
    gpus, warnings = _merge_gpus(old.gpus, new.gpus, keeps_missing=any(gap.part == "gpus" for gap in gaps))
    cpu = ProfileCpu(
        _newer(old.cpu.model, new.cpu.model),
        _newer(old.cpu.cores, new.cpu.cores),
        _newer(old.cpu.threads, new.cpu.threads),
    )
    keeps_memory = isinstance(new.memory_kb, Unknown)
    merged = replace(
        new,
        cpu=cpu,
        memory_gb=old.memory_gb if keeps_memory else new.memory_gb,
        memory_kb=old.memory_kb if keeps_memory else new.memory_kb,
        disks=_newer(old.disks, new.disks),
        gpus=gpus,
        keys={**new.keys, **old.keys},
    )
    return MergedProfile(merged, tuple(warnings))


def _newer(old: Maybe[T], new: Maybe[T]) -> Maybe[T]:
    return old if isinstance(new, Unknown) else new


def _merge_gpus(
    old: Maybe[tuple[ProfileGpu, ...]], new: Maybe[tuple[ProfileGpu, ...]], *, keeps_missing: bool
) -> tuple[Maybe[tuple[ProfileGpu, ...]], list[str]]:
    if isinstance(new, Unknown) or isinstance(old, Unknown):
        return _newer(old, new), []
    before = {gpu.index: gpu for gpu in old}
    warnings: list[str] = []
    merged: list[ProfileGpu] = []
    for gpu in new:
        known = before.pop(gpu.index, None)
        if known is None:
            merged.append(gpu)
            continue
        if _differs(known.name, gpu.name):
            keys = f"; still: {', '.join(known.keys)}" if known.keys else ""
            warnings.append(f"GPU {gpu.index} was {known.name}, is {gpu.name} now{keys}")
        capability = (
            _newer(known.compute_cap, gpu.compute_cap) if not _differs(known.name, gpu.name) else None
        )
        kept = gpu if capability is None else replace(gpu, compute_cap=capability)
        merged.append(replace(kept, keys={**gpu.keys, **known.keys}))
    for gpu in before.values():
        if keeps_missing:
            merged.append(gpu)
        else:
            what = "" if isinstance(gpu.name, Unknown) else f" ({gpu.name})"
            warnings.append(f"GPU {gpu.index}{what} is gone")
    return tuple(sorted(merged, key=lambda gpu: gpu.index)), warnings


def _differs(old: Maybe[str], new: Maybe[str]) -> bool:
    return not isinstance(old, Unknown) and not isinstance(new, Unknown) and old != new


def with_keys_of(profile: Profile, other: Profile) -> Profile:
    """The profile with the operator's keys of `other`, and no more than those; GPUs match by index."""
    gpus = profile.gpus
    if not isinstance(gpus, Unknown) and not isinstance(other.gpus, Unknown):
        keys = {gpu.index: gpu.keys for gpu in other.gpus}
        gpus = tuple(replace(gpu, keys=keys.get(gpu.index, {})) for gpu in gpus)
    return replace(profile, gpus=gpus, keys=other.keys)


def with_machine_keys(profile: Profile, machine: Machine) -> Profile:
    """The profile with what the machine's file says about planning it: `cpu_roles`, `tags`, `gpus[]`."""
    keys = {key: machine.document[key] for key in _MACHINE_KEYS if key in machine.document}
    listed = machine.document.get("gpus")
    by_index = {
        entry["index"]: {key: value for key, value in entry.items() if key != "index"}
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("index"), int)
    }
    gpus = profile.gpus
    if not isinstance(gpus, Unknown):
        gpus = tuple(_with_keys(gpu, by_index.get(gpu.index)) for gpu in gpus)
    return replace(profile, gpus=gpus, keys={**keys, **profile.keys})


def _with_keys(gpu: ProfileGpu, keys: dict[str, object] | None) -> ProfileGpu:
    measured = ("name", "memory_gb", "memory_mib", "compute_cap", "driver", "unified")
    own = {key: value for key, value in (keys or {}).items() if key not in measured}
    return replace(gpu, keys={**own, **gpu.keys}) if own else gpu
