"""Free VRAM without what cold copies on the way will take: each lease on one holds it back."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fleettui.model.gpu import GpuCard
from fleettui.model.lease import Lease
from fleettui.model.names import canonical_name
from fleettui.model.record import replace
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.model.vram import largest_instance_mib

_KIB_IN_MIB = 1024


def hold_back(
    snapshot: MachineSnapshot, leases: Sequence[Lease], asked: Collection[str] = ()
) -> MachineSnapshot:
    """The machine as it will be once these leases took effect; the same object where none reserves VRAM.

    Several askers for one model wait for one load: it counts once, and not at all for who asks for it too, by
    one of the names `asked`. A lease takes its card, else the freest one with the room, else as much of each
    card as all can give: as Ollama will. Unified memory is one room for all cards.
    """
    leases = [lease for lease in leases if lease.vram_mib > 0]
    if not leases:
        return snapshot
    own = set(map(canonical_name, asked))
    loads: dict[tuple[int, str], Lease] = {}
    for lease in sorted(leases, key=lambda lease: (lease.taken_at, lease.id)):
        if lease.model not in own:
            loads.setdefault((lease.port, lease.model), lease)
    wanted = tuple(loads.values())
    if not wanted or snapshot.gpu is None:
        return snapshot
    if any(card.is_unified for card in snapshot.gpu.cards):
        return _hold_back_memory(snapshot, sum(lease.vram_mib for lease in wanted))
    disabled = snapshot.machine.disabled_gpus
    free = {
        card.index: mib
        for card in snapshot.gpu.cards
        if card.fault is None and card.index not in disabled and (mib := _free_mib(card)) is not None
    }
    for lease in wanted:
        _take(free, lease)
    cards = tuple(
        _with_free(card, free[card.index]) if card.index in free else card for card in snapshot.gpu.cards
    )
    return replace(snapshot, gpu=replace(snapshot.gpu, cards=cards))


def _take(free: dict[int, int], lease: Lease) -> None:
    if not free:
        return
    freest = max(free, key=lambda index: (free[index], -index))
    card = lease.gpu if lease.gpu in free else freest if free[freest] >= lease.vram_mib else None
    if card is not None:
        free[card] = max(0, free[card] - lease.vram_mib)
        return
    summed = sum(free.values())
    for index, mib in free.items():
        free[index] = max(0, mib - -(-lease.vram_mib * mib // summed)) if summed else 0


def _free_mib(card: GpuCard) -> int | None:
    """None where it is not known; of a card in MIG mode what the largest instance has."""
    free = largest_instance_mib(card) if card.is_mig else card.free_mib
    return None if isinstance(free, Unknown) else free


def _with_free(card: GpuCard, free_mib: int) -> GpuCard:
    """The card with so much free; of MIG instances none has more."""
    if not card.is_mig:
        return replace(card, free_mib=free_mib)
    parts = [
        part if isinstance(part.free_mib, Unknown) else replace(part, free_mib=min(part.free_mib, free_mib))
        for part in card.mig
    ]
    return replace(card, mig=tuple(parts))


def _hold_back_memory(snapshot: MachineSnapshot, mib: int) -> MachineSnapshot:
    """MemAvailable without it, and the free figure of cards that report one of their own."""
    gpu, memory = snapshot.gpu, snapshot.memory
    assert gpu is not None  # noqa: S101 - the caller looked
    if memory is not None and not isinstance(memory.available_kib, Unknown):
        memory = replace(memory, available_kib=max(0, memory.available_kib - mib * _KIB_IN_MIB))
    cards = tuple(
        card if isinstance(card.free_mib, Unknown) else replace(card, free_mib=max(0, card.free_mib - mib))
        for card in gpu.cards
    )
    return replace(snapshot, gpu=replace(gpu, cards=cards), memory=memory)
