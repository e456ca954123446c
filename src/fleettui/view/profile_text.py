"""What `inventory collect` says of machines, in lines and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from fleettui.model.profile import Profile, ProfileGap
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.json_values import Document
from fleettui.view.profile_document import profile_document
from fleettui.view.units import count


class CollectedProfile(Protocol):
    """What came of one machine."""

    @property
    def name(self) -> str: ...
    @property
    def profile(self) -> Profile | None: ...
    @property
    def gaps(self) -> tuple[ProfileGap, ...]: ...
    @property
    def error(self) -> str: ...


def collected_line(item: CollectedProfile) -> str:
    """`ada: 2 GPUs (2 x NVIDIA GeForce RTX 4090), 126 GB RAM, 16 cores, 2 disks`; what failed, and why."""
    if item.profile is None:
        return f"{item.name}: not read: {item.error}"
    text = f"{item.name}: {summary_text(item.profile)}"
    gaps = "; ".join(f"{gap.part}: {gap.reason}" for gap in item.gaps)
    return f"{text}; not read: {gaps}" if gaps else text


def summary_text(profile: Profile) -> str:
    """`2 GPUs (2 x NVIDIA GeForce RTX 4090), 126 GB RAM, 16 cores, 2 disks`."""
    parts = []
    if not isinstance(profile.gpus, Unknown):
        names: dict[str, int] = {}
        for gpu in profile.gpus:
            name = "unnamed" if isinstance(gpu.name, Unknown) else gpu.name
            names[name] = names.get(name, 0) + 1
        listed = ", ".join(f"{number} x {name}" if number > 1 else name for name, number in names.items())
        parts.append(f"{count(len(profile.gpus), 'GPU')} ({listed})" if listed else "no GPU")
    if not isinstance(profile.memory_gb, Unknown):
        parts.append(f"{profile.memory_gb:g} GB RAM")
    if not isinstance(profile.cpu.cores, Unknown):
        parts.append(count(profile.cpu.cores, "core"))
    if not isinstance(profile.disks, Unknown):
        parts.append(count(len(profile.disks), "disk"))
    return ", ".join(parts) or "nothing"


def date_text(moment: Maybe[float]) -> str:
    """`2026-11-30 14:03 UTC`."""
    if isinstance(moment, Unknown):
        return "unknown date"
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def inventory_document(
    profiles: Iterable[Profile],
    collected: Sequence[CollectedProfile],
    kept: Mapping[str, Profile],
    warnings: Sequence[str],
    exit_code: int,
) -> Document:
    """The document of `inventory collect --json`; `kept`: old profiles that stand for machines not read."""
    errors = [_error(item.name, None, item.error, kept) for item in collected if item.profile is None]
    errors += [
        _error(item.name, gap.part, gap.reason, kept)
        for item in collected
        if item.profile is not None
        for gap in item.gaps
    ]
    return {
        "schema": 1,
        "nodes": [profile_document(profile) for profile in profiles],
        "errors": errors,
        "warnings": list(warnings),
        "exit_code": exit_code,
    }


def _error(name: str, part: str | None, message: str, kept: Mapping[str, Profile]) -> Document:
    old = kept.get(name)
    date = (
        None
        if old is None or isinstance(old.collected_at, Unknown)
        else profile_document(old)["collected_at"]
    )
    return {"name": name, "part": part, "message": message, "kept_from": date}
