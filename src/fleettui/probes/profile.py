"""The profile of a machine: its sections read, and put together.

Asked are the GPU loop for PROFILE_FIELDS and the facts loop for FACTS_SECTIONS.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fleettui.model.gpu import GpuCard
from fleettui.model.placement import Capability
from fleettui.model.profile import (
    KIB_OF_GIB,
    MIB_OF_GIB,
    Profile,
    ProfileCpu,
    ProfileDisk,
    ProfileGap,
    ProfileGpu,
    nearest,
)
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.cpuinfo import parse_cpuinfo
from fleettui.probes.frames import Section
from fleettui.probes.lsblk import parse_blocks
from fleettui.probes.lscpu import parse_cores
from fleettui.probes.memory import parse_memory
from fleettui.probes.numbers import is_digits
from fleettui.probes.nvidia import parse_gpus, parse_rows
from fleettui.probes.nvidia_rows import is_integrated_name

PROFILE_FIELDS = ("index", "name", "memory.total", "compute_cap", "driver_version")
FACTS_SECTIONS = ("mem", "cpu", "cores", "drives")
SPARE_DISKS_SECTION = "blocks"
"""Asked where `drives` brought nothing: an old lsblk, or none."""

_NOTHING = Section(127, b"")
_NO_SUCH_MEMORY = ("N/A", "Not Supported")
_NO_CAPABILITY = Unknown("the driver does not tell compute capabilities")
_GB = 1_000_000_000


def profile_section(refused: Collection[str] = ()) -> str:
    """The question for cards, without fields that the driver refused."""
    return ":".join(("gpu", *_fields(refused)))


def _fields(refused: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in PROFILE_FIELDS if name not in refused)


@dataclass(frozen=True, slots=True)
class CardsAnswer:
    """What nvidia-smi said."""

    gpus: Maybe[tuple[ProfileGpu, ...]]
    refused: tuple[str, ...] = ()
    """Fields that the driver does not know: ask again without them."""
    note: str = ""
    """What is odd although cards were read: one that is lost."""


def parse_cards(payload: bytes, exit_code: int = 0, refused: Collection[str] = ()) -> CardsAnswer:
    """The cards of `nvidia-smi --query-gpu=…` for PROFILE_FIELDS without `refused`; none where there is no
    nvidia-smi at all, and where it finds no device."""
    fields = _fields(refused)
    reading = parse_gpus(payload, exit_code, fields)
    if reading.unsupported_fields:
        return CardsAnswer(Unknown("asked again"), reading.unsupported_fields)
    if reading.problem is not None:
        if reading.problem.code in ("no_tool", "no_devices"):
            return CardsAnswer(())
        return CardsAnswer(Unknown(reading.problem.text))
    if not reading.cards:
        return CardsAnswer(Unknown("; ".join(fault.text for fault in reading.faults) or "no card in it"))
    capabilities: dict[str, Maybe[Capability]] = {}
    for row in parse_rows(payload, fields):
        index, text = row["index"], row.get("compute_cap", _NO_CAPABILITY)
        if isinstance(index, str):
            capabilities.setdefault(index, text if isinstance(text, Unknown) else parse_capability(text))
    cards = tuple(_card(card, capabilities.get(str(card.index), _NO_CAPABILITY)) for card in reading.cards)
    return CardsAnswer(cards, note="; ".join(fault.text for fault in reading.faults))


def parse_capability(text: str) -> Maybe[Capability]:
    """(8, 10) of `8.10`."""
    major, _, minor = text.strip().partition(".")
    if not is_digits(major) or not is_digits(minor) or len(major) > 2 or len(minor) > 2:
        return Unknown("no compute capability")
    return int(major), int(minor)


def _card(card: GpuCard, capability: Maybe[Capability]) -> ProfileGpu:
    total, name = card.total_mib, card.name
    has_none = isinstance(total, Unknown) and total.reason in _NO_SUCH_MEMORY
    is_unified = not isinstance(name, Unknown) and (has_none or is_integrated_name(name))
    return ProfileGpu(
        card.index,
        name,
        total if isinstance(total, Unknown) else nearest(total, MIB_OF_GIB),
        total,
        capability,
        card.driver,
        is_unified,
    )


def make_profile(
    name: str,
    cards: CardsAnswer | None,
    facts: Mapping[str, Section],
    collected_at: float,
) -> tuple[Profile, tuple[ProfileGap, ...]]:
    """The profile, and which parts could not be read. `cards` None: they were not asked."""
    memory_kb = parse_memory(facts.get("mem", _NOTHING).payload).total_kib
    memory_gb = memory_kb if isinstance(memory_kb, Unknown) else nearest(memory_kb, KIB_OF_GIB)
    model, threads = parse_cpuinfo(facts.get("cpu", _NOTHING).payload)
    cores = parse_cores(facts.get("cores", _NOTHING).payload)
    gpus = Unknown("not asked") if cards is None else cards.gpus
    if not isinstance(gpus, Unknown):
        gpus = tuple(_with_memory(gpu, memory_gb, memory_kb) for gpu in gpus)
    disks = _read_disks(facts)
    parts = {"gpus": gpus, "memory": memory_kb, "cpu": threads, "disks": disks}
    gaps = [ProfileGap(part, value.reason) for part, value in parts.items() if isinstance(value, Unknown)]
    if cards is not None and cards.note:
        gaps.insert(0, ProfileGap("gpus", cards.note))
    cpu = ProfileCpu(model, cores, threads)
    return Profile(name, cpu, memory_gb, memory_kb, disks, gpus, collected_at), tuple(gaps)


def _with_memory(gpu: ProfileGpu, memory_gb: Maybe[float], memory_kb: Maybe[int]) -> ProfileGpu:
    """A card without memory of its own has the machine's."""
    if not gpu.is_unified:
        return gpu
    mib = memory_kb if isinstance(memory_kb, Unknown) else memory_kb // 1024
    return ProfileGpu(gpu.index, gpu.name, memory_gb, mib, gpu.compute_cap, gpu.driver, True)


def _read_disks(facts: Mapping[str, Section]) -> Maybe[tuple[ProfileDisk, ...]]:
    """Disks of `drives`, else of `blocks`."""
    reason = Unknown("no lsblk on the machine")
    for section in ("drives", SPARE_DISKS_SECTION):
        answer = facts.get(section, _NOTHING)
        found = parse_blocks(answer.payload, answer.exit_code)
        if not isinstance(found, Unknown):
            return tuple(
                ProfileDisk(disk.name, _size_gb(disk.size_bytes), disk.is_rotational) for disk in found
            )
        reason = found
    return reason


def _size_gb(size_bytes: int) -> float:
    """Decimal GB: whole ones, of less than one GB a tenth."""
    return nearest(size_bytes, _GB) if size_bytes >= _GB else max(0.1, nearest(size_bytes, _GB // 10) / 10)
