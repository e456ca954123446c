"""Profile: the measured hardware of a machine, with the operator's own keys about it.

Whole GiB as a person counts them (20475 MiB are 20), disks in decimal GB; the exact figure stands beside.
"""

from __future__ import annotations

from fleettui.model.placement import Capability
from fleettui.model.record import dataclass, field
from fleettui.model.unknown import NOT_READ, Maybe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MIB_OF_GIB = 1024
KIB_OF_GIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ProfileCpu:
    """The processor."""

    model: Maybe[str] = NOT_READ
    cores: Maybe[int] = NOT_READ
    """Physical cores."""
    threads: Maybe[int] = NOT_READ
    """Logical processors."""


@dataclass(frozen=True, slots=True)
class ProfileDisk:
    """One disk, mounted or not."""

    name: str
    """`nvme0n1`."""
    size_gb: float
    """Decimal GB."""
    is_rotational: Maybe[bool] = NOT_READ


@dataclass(frozen=True, slots=True)
class ProfileGpu:
    """One GPU."""

    index: int
    name: Maybe[str] = NOT_READ
    memory_gb: Maybe[float] = NOT_READ
    """GiB, to the nearest whole one where it was measured."""
    memory_mib: Maybe[int] = NOT_READ
    compute_cap: Maybe[Capability] = NOT_READ
    driver: Maybe[str] = NOT_READ
    is_unified: bool = False
    """It shares the machine's memory: the figures are those of the machine, and count once."""
    keys: dict[str, Any] = field(default_factory=dict)
    """The operator's: `disabled` and any other, JSON-ready. Never mutated."""

    @property
    def is_disabled(self) -> bool:
        """The operator keeps it out of plans."""
        return self.keys.get("disabled") is True


@dataclass(frozen=True, slots=True)
class Profile:
    """What one machine is made of. A part that was never read is Unknown, not empty."""

    name: str
    """Of the machine."""
    cpu: ProfileCpu = ProfileCpu()
    memory_gb: Maybe[float] = NOT_READ
    """RAM in GiB, to the nearest whole one where it was measured."""
    memory_kb: Maybe[int] = NOT_READ
    """MemTotal."""
    disks: Maybe[tuple[ProfileDisk, ...]] = NOT_READ
    gpus: Maybe[tuple[ProfileGpu, ...]] = NOT_READ
    """By index. Empty: there is none."""
    collected_at: Maybe[float] = NOT_READ
    """Epoch seconds."""
    keys: dict[str, Any] = field(default_factory=dict)
    """The operator's: `cpu_roles`, `tags` and any other, JSON-ready. Never mutated."""

    @property
    def takes_cpu_roles(self) -> bool:
        """False: no copy may run on its CPU."""
        return self.keys.get("cpu_roles") is not False


@dataclass(frozen=True, slots=True)
class ProfileGap:
    """A part of a profile that could not be read."""

    part: str
    """`gpus`, `memory`, `cpu`, `disks`."""
    reason: str


def nearest(value: int, unit: int) -> int:
    """`value / unit`, rounded to the nearest whole number, a half upwards."""
    return (2 * value + unit) // (2 * unit)
