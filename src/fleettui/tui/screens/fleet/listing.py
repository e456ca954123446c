"""Which machines the table shows and in which order: worked out once a snapshot, calm under the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.view.filter_language import EVERYTHING, Filter
from fleettui.view.sorting import SortOrder, keep_order, may_reorder, sort_machines


class Listing:
    """The filtered and sorted machines."""

    def __init__(self) -> None:
        self.filter: Filter = EVERYTHING
        self.order = SortOrder()
        self.shown: Sequence[MachineSnapshot] = ()
        """Machines of the table, the first one on top."""
        self.matching = 0
        """How many the filter lets through; the one under the cursor may be shown beside them."""
        self.has_moved = False
        """Rows took new places with the last call."""
        self.worked = 0
        """How often machines were filtered and sorted so far."""
        self._fleet: FleetSnapshot | None = None
        self._made_for: object = None
        self._is_asked = True
        self._is_settled = True
        """False: rows wait for new places until nobody touches anything."""
        self._held: str | None = None
        """The machine that is shown only because the cursor is on it."""

    def ask(self) -> None:
        """The operator asked for it: rows may take new places."""
        self._is_asked = True

    def set_filter(self, wanted: Filter) -> None:
        """Show what matches."""
        self.filter = wanted
        self.ask()

    def set_order(self, order: SortOrder) -> None:
        """Sort by it."""
        self.order = order
        self.ask()

    def arrange(
        self, fleet: FleetSnapshot, now: float, cursor: str | None, idle_s: float
    ) -> Sequence[MachineSnapshot]:
        """The machines in their places. `cursor`: the machine under it; `idle_s`: since the last key or
        mouse. Nothing is worked out again while neither snapshot, filter, sort nor, for a filter, second
        changed."""
        may_move = may_reorder(is_asked=self._is_asked, has_cursor=cursor is not None, idle_s=idle_s)
        made_for = (self.filter, self.order, 0 if self.filter.is_empty else int(now))
        is_same = fleet is self._fleet and made_for == self._made_for
        if is_same and (self._is_settled or not may_move) and self._held in (None, cursor):
            self._is_asked = self.has_moved = False
            return self.shown
        self._fleet, self._made_for, self._is_asked = fleet, made_for, False
        self.worked += 1
        matching = self.filter.select(fleet, now)
        self.matching = len(matching)
        self._held = None
        before = [item.name for item in self.shown]
        if may_move or not before:
            self.shown = sort_machines(matching, self.order, now)
            self._is_settled = True
            self.has_moved = before != [item.name for item in self.shown]
        else:
            self.shown = self._calm(fleet, matching, now, cursor)
            self.has_moved = False
        return self.shown

    def _calm(
        self, fleet: FleetSnapshot, matching: Sequence[MachineSnapshot], now: float, cursor: str | None
    ) -> Sequence[MachineSnapshot]:
        """What was there stays where it was; the machine under the cursor stays though it may not match."""
        by_name = {item.name: item for item in matching}
        if cursor is not None and cursor not in by_name:
            held = fleet.find(cursor)
            if held is not None and any(item.name == cursor for item in self.shown):
                self._held = cursor
                by_name[cursor] = held
        wanted = [item.name for item in sort_machines(by_name.values(), self.order, now)]
        names = keep_order([item.name for item in self.shown], wanted, cursor)
        self._is_settled = self._held is None and list(names) == wanted
        return [by_name[name] for name in names]
