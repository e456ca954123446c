"""A profile as JSON and YAML have it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fleettui.model.placement import Capability
from fleettui.model.profile import Profile, ProfileCpu, ProfileDisk, ProfileGpu
from fleettui.model.unknown import Maybe, T, Unknown
from fleettui.model.written import WrittenNumber
from fleettui.view.json_values import Document, known

NODE_KEYS = ("name", "cpu", "memory_gb", "memory_kb", "disks", "gpus", "collected_at")
"""All others of a node are the operator's."""
GPU_KEYS = ("index", "name", "memory_gb", "memory_mib", "compute_cap", "driver", "unified")
_NULL = Unknown("not in the profile")


def profile_document(profile: Profile) -> Document:
    """`{name, cpu, memory_gb, …}`; null is unknown, the operator's keys come last."""
    disks, gpus = profile.disks, profile.gpus
    return {
        "name": profile.name,
        "cpu": {
            "model": known(profile.cpu.model),
            "cores": known(profile.cpu.cores),
            "threads": known(profile.cpu.threads),
        },
        "memory_gb": known(profile.memory_gb),
        "memory_kb": known(profile.memory_kb),
        "disks": None if isinstance(disks, Unknown) else [_disk_document(disk) for disk in disks],
        "gpus": None if isinstance(gpus, Unknown) else [_gpu_document(gpu) for gpu in gpus],
        "collected_at": None if isinstance(profile.collected_at, Unknown) else _iso(profile.collected_at),
        **profile.keys,
    }


def _disk_document(disk: ProfileDisk) -> Document:
    return {"name": disk.name, "size_gb": disk.size_gb, "rotational": known(disk.is_rotational)}


def _gpu_document(gpu: ProfileGpu) -> Document:
    return {
        "index": gpu.index,
        "name": known(gpu.name),
        "memory_gb": known(gpu.memory_gb),
        "memory_mib": known(gpu.memory_mib),
        "compute_cap": None if isinstance(gpu.compute_cap, Unknown) else capability_value(gpu.compute_cap),
        "driver": known(gpu.driver),
        **({"unified": True} if gpu.is_unified else {}),
        **gpu.keys,
    }


def capability_value(capability: Capability) -> float | str:
    """8.9 as a number; 8.10 as text, since a number would be read as 8.1."""
    text = f"{capability[0]}.{capability[1]}"
    return text if capability[1] and capability[1] % 10 == 0 else float(text)


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def profile_of(document: Mapping[str, Any]) -> Profile:
    """The profile that such a document says. Raises TypeError, ValueError, LookupError for any other."""
    cpu = document.get("cpu") or {}
    disks, gpus = document.get("disks"), document.get("gpus")
    return Profile(
        str(document["name"]),
        ProfileCpu(_maybe(cpu.get("model")), _maybe(cpu.get("cores")), _maybe(cpu.get("threads"))),
        _maybe(document.get("memory_gb")),
        _maybe(document.get("memory_kb")),
        _NULL if disks is None else tuple(_disk_of(disk) for disk in disks),
        _NULL if gpus is None else tuple(sorted((_gpu_of(gpu) for gpu in gpus), key=lambda gpu: gpu.index)),
        _moment(document.get("collected_at")),
        {key: value for key, value in document.items() if key not in NODE_KEYS},
    )


def _disk_of(document: Mapping[str, Any]) -> ProfileDisk:
    return ProfileDisk(document["name"], document["size_gb"], _maybe(document.get("rotational")))


def _gpu_of(document: Mapping[str, Any]) -> ProfileGpu:
    capability = document.get("compute_cap")
    return ProfileGpu(
        int(document["index"]),
        _maybe(document.get("name")),
        _maybe(document.get("memory_gb")),
        _maybe(document.get("memory_mib")),
        _NULL if capability is None else _capability_of(capability),
        _maybe(document.get("driver")),
        document.get("unified") is True,
        {key: value for key, value in document.items() if key not in GPU_KEYS},
    )


def _capability_of(value: object) -> Capability:
    """Of 8.9, "8.10" or a number that was written as 8.10."""
    text = value.text if isinstance(value, WrittenNumber) else str(value)
    major, _, minor = text.strip().partition(".")
    return int(major), int(minor or 0)


def _maybe(value: T | None) -> Maybe[T]:
    return _NULL if value is None else value


def _moment(value: object) -> Maybe[float]:
    """Epoch seconds of `2026-11-30T14:03:12Z`; anything else is not known."""
    try:
        return datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return _NULL
