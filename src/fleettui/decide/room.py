"""Room for a model on a machine: free VRAM of each card that may be used, and what could be evicted."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.gpu import GpuCard, is_on_card
from fleettui.model.gpu_users import engine_kind_of
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass, replace
from fleettui.model.residency import shares_of
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import card_memory, has_no_gpu, largest_instance_mib, vram_sum

_MIB = 1 << 20
_KEEP_ALIVE_STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class CardRoom:
    """Free VRAM of one card."""

    index: int
    free_bytes: int
    is_alone: bool = False
    """A MIG instance: a model that lies on it can use nothing else."""


@dataclass(frozen=True, slots=True)
class IdleCopy:
    """A copy that may be evicted."""

    name: str
    vram_bytes: int
    by_card: tuple[tuple[int, int], ...] = ()
    """(card, bytes) as far as processes prove it."""


@dataclass(frozen=True, slots=True)
class Room:
    """What one machine has to offer now."""

    cards: tuple[CardRoom, ...]
    """By index; empty on a CPU-only machine."""
    idle: tuple[IdleCopy, ...] = ()
    """In the order in which they would be evicted."""
    ram_bytes: Maybe[int] = Unknown("main memory not read")
    """Free for layers that do not fit; 0 where GPU and CPU share one memory."""
    has_other_models: bool = False
    """The engine holds another model, idle or not."""
    total_vram_mib: Maybe[int] = 0
    left_out: tuple[str, ...] = ()
    """Cards that are not used, each with why."""


def find_room(
    snapshot: MachineSnapshot,
    *,
    busy: frozenset[str] = frozenset(),
    reloads: str | None = None,
    by_processes: bool = True,
) -> Maybe[Room]:
    """The room on a machine; Unknown with the reason where no free VRAM is known.

    `busy`: names of copies that work now, never evicted. `reloads`: the copy that is replaced by the new one,
    its VRAM counts as free where it is known where it lies. `by_processes`: False takes no notice of
    who is on the cards, and of where copies lie.
    """
    if not by_processes and snapshot.processes is not None:
        snapshot = replace(snapshot, processes=None)
    cards, left_out, is_unified = _find_cards(snapshot)
    if isinstance(cards, Unknown):
        return cards
    copies = [copy for copy in snapshot.loaded if copy.engine == "ollama" and copy.state != "stopping"]
    placed = _placed_bytes(snapshot, cards)
    own = next((copy for copy in copies if copy.name == reloads), None)
    if own is not None:
        cards = free_cards(cards, (_idle_copy(own, placed),))
    others = [copy for copy in copies if copy is not own]
    idle = [
        copy for copy in others if copy.state == "loaded" and copy.name not in busy and _vram_of(copy) > 0
    ]
    if len(idle) > 1:
        used = last_uses(engine for engine in snapshot.engines if engine.kind == "ollama")
        now = snapshot.last_seen or 0.0
        idle.sort(key=lambda copy: eviction_order(copy, used.get(copy.name, now)))
    memory = snapshot.memory
    ram = Unknown("main memory not read") if memory is None else memory.free_kib
    return Room(
        cards,
        tuple(_idle_copy(copy, placed) for copy in idle),
        0 if is_unified else ram if isinstance(ram, Unknown) else ram * 1024,
        bool(others),
        vram_sum(snapshot).total_mib if snapshot.gpu is not None and snapshot.gpu.cards else 0,
        left_out,
    )


def _find_cards(snapshot: MachineSnapshot) -> tuple[Maybe[tuple[CardRoom, ...]], tuple[str, ...], bool]:
    """Cards that a model may use, why others are not, and whether memory is shared with the CPU."""
    gpu = snapshot.gpu
    if gpu is None or not gpu.cards:
        if has_no_gpu(snapshot):
            return (), (), False
        problem = None if gpu is None else gpu.problem
        return Unknown("no GPU reading" if problem is None else problem.text), (), False
    if gpu.is_stale and gpu.faults:
        return Unknown(gpu.faults[0].text), (), False
    found: list[CardRoom] = []
    left_out: list[str] = []
    is_unified = False
    for card in gpu.cards:
        if card.is_unified and is_unified:
            continue
        reason = _why_not(snapshot, card)
        free = largest_instance_mib(card) if card.is_mig else card_memory(snapshot, card).free_mib
        if reason is None and isinstance(free, Unknown):
            reason = free.reason
        if reason is not None or isinstance(free, Unknown):
            left_out.append(f"GPU {card.index}: {reason}")
            continue
        is_unified = is_unified or card.is_unified
        found.append(CardRoom(card.index, max(0, free) * _MIB, card.is_mig))
    if not found:
        return Unknown("; ".join(left_out) or "no card that can be used"), tuple(left_out), False
    return tuple(found), tuple(left_out), is_unified


def _why_not(snapshot: MachineSnapshot, card: GpuCard) -> str | None:
    if card.fault is not None:
        return card.fault.text
    if card.index in snapshot.machine.disabled_gpus:
        return "disabled"
    processes = () if snapshot.processes is None else snapshot.processes.processes
    # vLLM takes its share of the card at start and counts on the rest staying as it was.
    if any(engine_kind_of(process) == "vllm" and is_on_card(process, card) for process in processes):
        return "vLLM runs there"
    return None


def last_uses(engines: Iterable[EngineReading]) -> dict[str, float]:
    """Name of a copy -> epoch seconds of its last use, as far as that is known."""
    return {use.name: use.used_at for engine in engines for use in engine.uses}


def eviction_order(copy: LoadedModel, used_at: float) -> tuple[bool, float, str]:
    """Ollama takes the shortest keep_alive first, then by the path of the weights, for which the name stands.

    keep_alive is what lies between the last use and the expiry; in steps of 10 s, since polls see a use late.
    Where no use was seen, what is left of it stands for it: `used_at` is then the present.
    """
    if copy.is_pinned:
        return True, 0.0, copy.name
    if isinstance(copy.expires_at, Unknown):
        return False, float("inf"), copy.name
    return False, round((copy.expires_at - used_at) / _KEEP_ALIVE_STEP_S), copy.name


def _vram_of(copy: LoadedModel) -> int:
    return 0 if isinstance(copy.vram_bytes, Unknown) else copy.vram_bytes


def _placed_bytes(
    snapshot: MachineSnapshot, cards: tuple[CardRoom, ...]
) -> dict[str, tuple[tuple[int, int], ...]]:
    """Name of a copy -> (card, bytes); everything lies on an only card."""
    if len(cards) == 1:
        return {copy.name: ((cards[0].index, _vram_of(copy)),) for copy in snapshot.loaded}
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for share in shares_of(snapshot):
        if not isinstance(share.used_mib, Unknown):
            before = found.get(share.copy.name, ())
            found[share.copy.name] = (*before, (share.gpu_index, share.used_mib * _MIB))
    return found


def _idle_copy(copy: LoadedModel, placed: dict[str, tuple[tuple[int, int], ...]]) -> IdleCopy:
    return IdleCopy(copy.name, _vram_of(copy), placed.get(copy.name, ()))


def free_cards(cards: tuple[CardRoom, ...], copies: tuple[IdleCopy, ...]) -> tuple[CardRoom, ...]:
    """The cards once these copies are gone, as far as it is known where they lie."""
    freed: dict[int, int] = {}
    for copy in copies:
        for index, size in copy.by_card:
            freed[index] = freed.get(index, 0) + size
    return tuple(
        CardRoom(card.index, card.free_bytes + freed.get(card.index, 0), card.is_alone) for card in cards
    )
