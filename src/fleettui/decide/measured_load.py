"""What one load tells: how fast the machine reads models, and how much VRAM this one really took."""

from __future__ import annotations

from fleettui.decide.eta import START_S
from fleettui.decide.model_need import SeenCopy
from fleettui.decide.ollama_use import copy_settings
from fleettui.model.gpu import GpuCard
from fleettui.model.gpu_users import engine_kind_of
from fleettui.model.readings import LoadedModel
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, known_or

NOTICED_MIB = 256
"""What a copy takes on a card it lies on, at the least: the engine's own context there."""


CONTEXT_MOST_BYTES = 1024 << 20
"""Of one card; usually half of it. More is something else that came up meanwhile."""


def load_rate(size_bytes: Maybe[int], took_s: float) -> float | None:
    """Bytes a second, the start of the process left out as the estimate does; None: too short to tell."""
    if isinstance(size_bytes, Unknown) or size_bytes <= 0 or took_s <= 0.1:
        return None
    return size_bytes / max(took_s - START_S, took_s / 2)


def vram_taken_mib(before: MachineSnapshot, after: MachineSnapshot) -> dict[int, int]:
    """By card: MiB that are less free than before; cards with more, or an unknown figure, are left out."""
    old = {card.index: card.free_mib for card in _cards(before)}
    taken = {}
    for card in _cards(after):
        then, now = old.get(card.index, Unknown()), card.free_mib
        if not isinstance(then, Unknown) and not isinstance(now, Unknown) and then > now:
            taken[card.index] = then - now
    return taken


def measure_need(before: MachineSnapshot, after: MachineSnapshot, copy: LoadedModel) -> SeenCopy | None:
    """VRAM that this copy took, by what was free before and after; None where that may mean anything else.

    Other copies and other processes must be the same, all of it must be on the cards, and the figure what the
    engine counts and its own context on each card, which it does not count.
    """
    vram_bytes, size_bytes, context = copy.vram_bytes, copy.size_bytes, copy.context
    if isinstance(vram_bytes, Unknown) or isinstance(context, Unknown) or vram_bytes != size_bytes:
        return None
    if _names(before) != _names(after) - {copy.name} or any(card.is_unified for card in _cards(after)):
        return None
    if _foreign_pids(before) != _foreign_pids(after):
        return None
    on_cards = [mib for mib in vram_taken_mib(before, after).values() if mib >= NOTICED_MIB]
    taken = sum(on_cards) * (1 << 20)
    most = 1.05 * vram_bytes + len(on_cards) * CONTEXT_MOST_BYTES
    if not on_cards or not 0.95 * vram_bytes <= taken <= most:
        return None
    parallel, types = copy_settings(after, _port_of(after, copy))
    return SeenCopy(taken, context, parallel, types, len(on_cards), after.name)


def _port_of(snapshot: MachineSnapshot, copy: LoadedModel) -> int:
    for engine in snapshot.engines:
        if any(item.name == copy.name for item in known_or(engine.loaded, ())):
            return engine.port
    return 0


def _foreign_pids(snapshot: MachineSnapshot) -> set[int]:
    """Processes on cards that are no Ollama's, as far as they are read."""
    processes = () if snapshot.processes is None else snapshot.processes.processes
    return {process.pid for process in processes if engine_kind_of(process) != "ollama"}


def _names(snapshot: MachineSnapshot) -> set[str]:
    return {copy.name for copy in snapshot.loaded}


def _cards(snapshot: MachineSnapshot) -> tuple[GpuCard, ...]:
    return () if snapshot.gpu is None else snapshot.gpu.cards
