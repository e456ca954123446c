"""One machine prepared for its cells: sums, freshness, what lies on which card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fleettui.model.gpu import GpuCard, GpuProcess, is_on_card
from fleettui.model.gpu_users import engine_kind_of, is_declared_kind
from fleettui.model.residency import CardShare, shares_of
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, known_or
from fleettui.model.vram import VramSum, has_no_gpu, vram_sum
from fleettui.view.figures import is_answering
from fleettui.view.units import age

if TYPE_CHECKING:
    from fleettui.view.layout import Layout


TrendOf = Callable[[MachineSnapshot, GpuCard | None, int], Sequence[Maybe[float]]]
"""(machine, card, count) -> so many values of its utilisation, the newest last; None: mean over the cards."""


@dataclass(frozen=True)
class MachineView:
    """A snapshot, the time, and the layout it is drawn in."""

    snapshot: MachineSnapshot
    now: float
    layout: Layout
    is_expanded: bool = False
    trend_of: TrendOf | None = None
    """None: no history is kept."""

    @cached_property
    def vram(self) -> VramSum:
        return vram_sum(self.snapshot)

    @cached_property
    def shares(self) -> tuple[CardShare, ...]:
        return shares_of(self.snapshot)

    def shares_on(self, gpu_index: int) -> list[CardShare]:
        """What is proven to lie on a card, largest first."""
        shares = [share for share in self.shares if share.gpu_index == gpu_index]
        return sorted(shares, key=lambda share: (-known_or(share.used_mib, 0), share.copy.name))

    @cached_property
    def unexplained(self) -> dict[int, tuple[list[GpuProcess], list[GpuProcess]]]:
        """Processes that hold no proven copy, by card, largest first: those of declared engines, and others.
        What lies on no known card is below -1."""
        found: dict[int, tuple[list[GpuProcess], list[GpuProcess]]] = {}
        processes, gpu = self.snapshot.processes, self.snapshot.gpu
        if processes is None or gpu is None or not processes.processes:
            return found
        proven = {share.pid for share in self.shares}
        for process in sorted(processes.processes, key=lambda item: (-known_or(item.used_mib, 0), item.pid)):
            if process.pid in proven:
                continue
            card = next((card.index for card in gpu.cards if is_on_card(process, card)), -1)
            kind = engine_kind_of(process)
            is_own = kind is not None and is_declared_kind(self.snapshot, kind)
            found.setdefault(card, ([], []))[not is_own].append(process)
        return found

    @cached_property
    def has_no_gpu(self) -> bool:
        return has_no_gpu(self.snapshot)

    @cached_property
    def is_unified(self) -> bool:
        gpu = self.snapshot.gpu
        return gpu is not None and any(card.is_unified for card in gpu.cards)

    @cached_property
    def age_s(self) -> float | None:
        return self.snapshot.age_s(self.now)

    @cached_property
    def is_answering(self) -> bool:
        """True when the machine's own row shows values; else an error or a fingerprint goes across it."""
        return is_answering(self.snapshot)

    @cached_property
    def _judged_at(self) -> float:
        """The moment by which ages tell what is stale."""
        paused_at = self.layout.paused_at
        return self.now if paused_at is None else min(self.now, paused_at)

    @cached_property
    def is_stale(self) -> bool:
        """True when nothing of it is fresh: it is shown dimmed."""
        age_s = self.snapshot.age_s(self._judged_at)
        return not self.is_answering or age_s is None or age_s > self.layout.fresh_s

    def age_text(self, seconds: float | None) -> str:
        """`now` while the machine keeps its pace, else the age: `4m`."""
        return "now" if seconds is not None and seconds <= self.layout.fresh_s else age(seconds)

    def is_source_stale(self, *names: str) -> bool:
        """True when none of these sources was read lately; an unlisted source ages with the machine."""
        if self.is_stale:
            return True
        ages = [
            status.age_s(self._judged_at)
            for name in names
            if (status := self.snapshot.sources.get(name)) is not None and status.state != "unsupported"
        ]
        known = [age for age in ages if age is not None]
        return bool(known) and min(known) > max(self.layout.fresh_s, 6.0)

    @cached_property
    def is_gpu_stale(self) -> bool:
        gpu = self.snapshot.gpu
        return (gpu is not None and gpu.is_stale) or self.is_source_stale("gpu")

    @cached_property
    def is_engine_stale(self) -> bool:
        names: list[str] = [engine.kind for engine in self.snapshot.engines]
        names += [f"{engine.kind}:{engine.port}" for engine in self.snapshot.engines]
        return self.is_source_stale(*names)
