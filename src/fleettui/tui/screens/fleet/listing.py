"""Which machines the table shows and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.listing import Listing
from fleettui.view.filter_language import EVERYTHING, Filter
from fleettui.view.sorting import SortOrder, sort_machines


class MachineListing(Listing[FleetSnapshot, MachineSnapshot, Filter]):
    """By name; a filter may ask for an age."""

    def __init__(self) -> None:
        super().__init__(EVERYTHING, SortOrder())

    def items_of(self, source: FleetSnapshot) -> Sequence[MachineSnapshot]:
        return source.machines

    def key_of(self, item: MachineSnapshot) -> str:
        return item.name

    def select(self, source: FleetSnapshot, now: float) -> Sequence[MachineSnapshot]:
        return self.filter.select(source, now)

    def sort(self, items: Iterable[MachineSnapshot], now: float) -> Sequence[MachineSnapshot]:
        return sort_machines(items, self.order, now)

    def second_of(self, now: float) -> int:
        return 0 if self.filter.is_empty else int(now)
