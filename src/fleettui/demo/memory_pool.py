"""Where a copy lies: cards and main memory of one machine, as Ollama divides it."""

from __future__ import annotations

from dataclasses import dataclass, field

from fleettui.demo.hardware import MIB
from fleettui.demo.models import ModelSpec, cache_bytes, graph_bytes, need_bytes, weight_bytes

CUDA_CONTEXT_BYTES = 457 * MIB
"""What Ollama reserves on each card for the CUDA context; the process takes it, `/api/ps` leaves it out."""
PARTIAL_MARGIN_BYTES = 1024 * MIB
"""Kept free on each card when a model does not fit as a whole."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Memory of one copy, in bytes."""

    card_bytes: dict[int, int]
    """By card index, without the CUDA context."""
    ram_bytes: int

    @property
    def vram_bytes(self) -> int:
        return sum(self.card_bytes.values())

    @property
    def size_bytes(self) -> int:
        return self.vram_bytes + self.ram_bytes

    def process_mib(self, card: int, share: float = 1.0) -> int:
        """What nvidia-smi shows for the runner on a card; `share` of it is loaded."""
        if card not in self.card_bytes:
            return 0
        return int((self.card_bytes[card] * share + CUDA_CONTEXT_BYTES) / MIB)


@dataclass(slots=True)
class Release:
    """Memory of a runner that has ended and is not back yet."""

    placement: Placement
    at: float
    share: float


@dataclass(slots=True)
class MemoryPool:
    """Memory of one machine. Cards the engine cannot use (driver failure) are left out."""

    cards: list[int]
    """Usable bytes of each card: total less reserved and less the idle use; unified: main memory."""
    ram_bytes: int
    """Main memory left for models."""
    is_unified: bool = False
    foreign: dict[int, int] = field(default_factory=dict)
    """Bytes other processes hold, by card."""
    taken: list[Placement] = field(default_factory=list)
    releasing: list[Release] = field(default_factory=list)

    def total_vram(self) -> int:
        return sum(self.cards)

    def free_vram(self, card: int) -> int:
        """Bytes a new copy may take on the card."""
        held = [*self.taken, *(release.placement for release in self.releasing)]
        used = sum(
            place.card_bytes[card] + CUDA_CONTEXT_BYTES + (place.ram_bytes if self.is_unified else 0)
            for place in held
            if card in place.card_bytes
        )
        return max(0, self.cards[card] - self.foreign.get(card, 0) - used)

    def free_ram(self) -> int:
        """Bytes of main memory a new copy may take."""
        if self.is_unified:
            return self.free_vram(0)
        held = [*self.taken, *(release.placement for release in self.releasing)]
        return max(0, self.ram_bytes - sum(place.ram_bytes for place in held))

    def place(self, model: ModelSpec, context: int, allow_partial: bool) -> Placement | None:
        """One card when it fits there, else all cards, else (if allowed) partly in RAM; None: no room."""
        need = need_bytes(model, context)
        room = [max(0, self.free_vram(card) - CUDA_CONTEXT_BYTES) for card in range(len(self.cards))]
        if room and max(room) >= need:
            return Placement({room.index(max(room)): need}, 0)
        if not self.is_unified and sum(room) >= need:
            return Placement(_share_out(need, room), 0)
        if not self.cards and need <= self.free_ram():
            return Placement({}, need)
        return self._place_partly(model, context, room) if allow_partial else None

    def _place_partly(self, model: ModelSpec, context: int, room: list[int]) -> Placement | None:
        """As many layers as fit on the cards, the others in RAM."""
        need = need_bytes(model, context)
        usable = [max(0, size - PARTIAL_MARGIN_BYTES) for size in room]
        graph = graph_bytes(model, context)
        layer = (weight_bytes(model) + cache_bytes(model, context)) // (model.layers + 1)
        layers_on_cards = max(0, min(model.layers, (sum(usable) - graph) // layer))
        vram = graph + layers_on_cards * layer if layers_on_cards else 0
        if self.is_unified or need - vram > self.free_ram():
            return None
        return Placement(_share_out(vram, usable) if vram else {}, need - vram)

    def take(self, placement: Placement) -> None:
        self.taken.append(placement)

    def give_back(self, placement: Placement, at: float, share: float) -> None:
        """The runner ended; its memory is free at `at`."""
        self.taken.remove(placement)
        self.releasing.append(Release(placement, at, share))

    def release_until(self, now: float) -> bool:
        """Frees what is due; True when something was."""
        left = [release for release in self.releasing if release.at > now]
        is_changed = len(left) != len(self.releasing)
        self.releasing = left
        return is_changed


def _share_out(size: int, room: list[int]) -> dict[int, int]:
    """Divides bytes over cards in proportion to their room."""
    total = sum(room)
    shares = {card: size * free // total for card, free in enumerate(room) if free > 0}
    first = next(iter(shares))
    shares[first] += size - sum(shares.values())
    return shares
