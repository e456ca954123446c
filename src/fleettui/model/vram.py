"""Graphics memory of a machine: what each card has, and what is free on all of them.

A process sees one MIG instance at most: a model fits the largest instance, never the card around it nor
several instances together. A part with unified memory (`GpuCard.is_unified`) takes its figures from
/proc/meminfo and counts once.
"""

from __future__ import annotations

from fleettui.model.gpu import GpuCard, ProcessesReading
from fleettui.model.readings import MemoryReading
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

_MIB = 1 << 20
NO_READING = Unknown("no GPU reading")
NO_CARD = Unknown("no card that can be used")
NO_MEMORY = Unknown("memory not reported")
NO_INSTANCE = Unknown("MIG is on, its instances are not known")


@dataclass(frozen=True, slots=True)
class CardMemory:
    """Memory of one card, MiB."""

    total_mib: Maybe[int]
    used_mib: Maybe[int]
    free_mib: Maybe[int]


@dataclass(frozen=True, slots=True)
class FreeVram:
    """Free memory on the usable cards of a machine: enabled and without a fault."""

    best_mib: Maybe[int]
    """Largest free value of one card; 0 on a CPU-only machine and where every card is disabled."""
    best_index: int | None
    """That card's index."""
    sum_mib: Maybe[int]
    """All usable cards together, or the largest MIG instance where that is more: a process that sees an
    instance sees nothing else. Cards with unknown memory are left out."""
    is_unified: bool = False
    joined: tuple[tuple[int, int], ...] = ()
    """(free bytes, minus the index) of each card that can divide a model with others; unified memory once."""
    alone: tuple[tuple[int, int], ...] = ()
    """The same of the largest MIG instance of each card: a model that lies on one can use nothing else."""


@dataclass(frozen=True, slots=True)
class VramSum:
    """Memory of all cards of a machine or fleet, MiB. None known: Unknown."""

    total_mib: Maybe[int]
    used_mib: Maybe[int]
    free_mib: Maybe[int]
    card_count: int


def gib_of_mib(mib: Maybe[int]) -> float | None:
    """GiB with one decimal, None where unknown: the figure that every output shows."""
    return None if isinstance(mib, Unknown) else round(mib / 1024, 1)


def has_no_gpu(snapshot: MachineSnapshot) -> bool:
    """True for a CPU-only machine: no card seen, and the file says none or nvidia-smi found none."""
    gpu = snapshot.gpu
    if gpu is not None and (gpu.cards or gpu.faults):
        return False
    if snapshot.machine.gpus is not None:
        return not snapshot.machine.gpus
    status = snapshot.sources.get("gpu")
    if status is not None and status.state == "unsupported":
        return True
    return gpu is not None and (gpu.problem is None or gpu.problem.code in {"no_tool", "no_devices"})


def card_memory(snapshot: MachineSnapshot, card: GpuCard) -> CardMemory:
    """Memory of one card; for a unified part from MemTotal, MemAvailable and its processes.

    A unified part that reports a total of its own keeps it; MemAvailable still limits the free figure. In a
    container its memory limit stands for the total, and what is left of it may be less than MemAvailable.
    """
    if not card.is_unified:
        return CardMemory(card.total_mib, card.used_mib, card.free_mib)
    return unified_memory(card, snapshot.memory, snapshot.processes)


def unified_memory(
    card: GpuCard, memory: MemoryReading | None, processes: ProcessesReading | None
) -> CardMemory:
    """Memory of a unified part: what it does not tell itself comes from the machine and its processes."""
    total, free, used = card.total_mib, card.free_mib, card.used_mib
    if memory is not None:
        available = _mib_of_kib(memory.free_kib)
        if isinstance(total, Unknown):
            total = _mib_of_kib(memory.usable_kib)
        if isinstance(free, Unknown):
            free = available
        elif not isinstance(available, Unknown):
            free = min(free, available)
    if isinstance(used, Unknown):
        used = _used_by_processes(card, processes)
    return CardMemory(total, used, free)


def _mib_of_kib(kib: Maybe[int]) -> Maybe[int]:
    return kib if isinstance(kib, Unknown) else kib // 1024


def _used_by_processes(card: GpuCard, processes: ProcessesReading | None) -> Maybe[int]:
    """MiB that compute processes hold on a card; Unknown when the list or any figure of it is."""
    if processes is None:
        return Unknown("processes not read yet")
    used = 0
    for process in processes.processes:
        if process.gpu_uuid != card.uuid and not isinstance(card.uuid, Unknown):
            continue
        if isinstance(process.used_mib, Unknown):
            return process.used_mib
        used += process.used_mib
    return used


def free_vram(snapshot: MachineSnapshot) -> FreeVram:
    """Free memory as nvidia-smi prints it, never total - used (reserved memory differs)."""
    gpu = snapshot.gpu
    if gpu is None or not gpu.cards:
        if has_no_gpu(snapshot):
            return FreeVram(0, None, 0)
        reason = NO_READING if gpu is None or gpu.problem is None else Unknown(gpu.problem.text)
        return FreeVram(reason, None, reason)
    if gpu.is_stale and gpu.faults:
        lost = Unknown(gpu.faults[0].text)
        return FreeVram(lost, None, lost)
    return free_on_cards(snapshot, gpu.cards)


def free_on_cards(snapshot: MachineSnapshot, cards: tuple[GpuCard, ...]) -> FreeVram:
    """The same of some cards, whatever else their reading says."""
    disabled = snapshot.machine.disabled_gpus
    best, best_index, summed, shares, unified = -1, None, 0, False, False
    joined, alone = [], []
    missing = NO_MEMORY
    for card in cards:
        index, free = card.index, card.free_mib
        if card.fault is not None or index in disabled:
            continue
        if card.is_unified:
            free, shares = card_memory(snapshot, card).free_mib, True
        elif card.is_mig:
            free = largest_instance_mib(card)
            missing = NO_INSTANCE if type(free) is Unknown else missing
        if type(free) is Unknown:
            continue
        if free > best:
            best, best_index = free, index
        if shares and card.is_unified:
            if unified:
                continue
            unified = not card.is_mig
        if card.is_mig:
            alone.append((free * _MIB, -index))
            continue
        summed += free
        joined.append((free * _MIB, -index))
    if best >= 0:
        return FreeVram(best, best_index, max(best, summed), unified, tuple(joined), tuple(alone))
    if all(card.fault is not None or card.index in disabled for card in cards):
        if not has_faulty_card(snapshot):
            return FreeVram(0, None, 0)
        missing = NO_CARD
    return FreeVram(missing, None, missing, shares)


def largest_instance_mib(card: GpuCard) -> Maybe[int]:
    """Free memory of the MIG instance with most of it; Unknown while no instance is known."""
    known = [part.free_mib for part in card.mig if not isinstance(part.free_mib, Unknown)]
    return max(known) if known else NO_INSTANCE


def has_faulty_card(snapshot: MachineSnapshot) -> bool:
    """True when an enabled card is lost, needs a reset or cannot be read."""
    gpu = snapshot.gpu
    if gpu is None:
        return False
    disabled = snapshot.machine.disabled_gpus
    return bool(gpu.faults) or any(c.fault is not None and c.index not in disabled for c in gpu.cards)


def vram_sum(snapshot: MachineSnapshot) -> VramSum:
    """Memory of all cards of a machine, disabled ones too; unified memory once."""
    cards = () if snapshot.gpu is None else snapshot.gpu.cards
    total = used = free = 0
    has_total = has_used = has_free = unified = False
    for card in cards:
        card_total, card_used, card_free = card.total_mib, card.used_mib, card.free_mib
        if card.is_unified:
            if unified:
                continue
            unified = True
            memory = card_memory(snapshot, card)
            card_total, card_used, card_free = memory.total_mib, memory.used_mib, memory.free_mib
        if not isinstance(card_total, Unknown):
            total, has_total = total + card_total, True
        if not isinstance(card_used, Unknown):
            used, has_used = used + card_used, True
        if not isinstance(card_free, Unknown):
            free, has_free = free + card_free, True
    return VramSum(
        total if has_total else NO_MEMORY,
        used if has_used else NO_MEMORY,
        free if has_free else NO_MEMORY,
        len(cards),
    )
