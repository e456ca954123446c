"""The table's rows, built anew only for machines that changed or whose seconds are on the screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from fleettui.model.snapshot import MachineSnapshot
from fleettui.view.layout import Layout
from fleettui.view.machine_view import TrendOf
from fleettui.view.rows import Row, count_rows, machine_rows
from fleettui.view.tagging import tagged_cells
from fleettui.view.ticking import is_ticking


class _Kept(NamedTuple):
    snapshot: MachineSnapshot
    second: int
    layout: Layout
    is_open: bool
    is_tagged: bool
    rows: tuple[Row, ...]

    def is_drawn_so(self, layout: Layout, is_open: bool, is_tagged: bool) -> bool:
        """True when the rows only depend on snapshot and time."""
        return self.layout is layout and self.is_open == is_open and self.is_tagged == is_tagged


class FleetRows:
    """Rows of each machine, kept until something they depend on changes."""

    def __init__(self) -> None:
        self.trend_of: TrendOf | None = None
        """None: no history is kept."""
        self._kept: dict[str, _Kept] = {}
        self.built = 0
        """How many machines' rows were built so far."""

    def rows_of(
        self,
        machines: Sequence[MachineSnapshot],
        now: float,
        layout: Layout,
        opened: Collection[str],
        visible: Collection[str],
        tagged: Collection[str] = (),
    ) -> list[Row]:
        """All rows; those of machines out of sight may be old as long as their number is right."""
        rows: list[Row] = []
        for snapshot in machines:
            name = snapshot.name
            rows += self._rows_of_one(snapshot, now, layout, name in opened, name in visible, name in tagged)
        return rows

    def keep_only(self, declared: Sequence[MachineSnapshot]) -> None:
        """Drop rows of machines that are gone; those that a filter hides are kept for its end."""
        if len(self._kept) > len(declared):
            names = {snapshot.name for snapshot in declared}
            self._kept = {name: kept for name, kept in self._kept.items() if name in names}

    def _rows_of_one(
        self,
        snapshot: MachineSnapshot,
        now: float,
        layout: Layout,
        is_open: bool,
        is_visible: bool,
        is_tagged: bool,
    ) -> tuple[Row, ...]:
        kept = self._kept.get(snapshot.name)
        second = int(now)
        if kept is not None and kept.is_drawn_so(layout, is_open, is_tagged):
            if kept.snapshot is snapshot and (
                kept.second == second or not is_visible or not is_ticking(snapshot, now, layout.interval_s)
            ):
                return kept.rows
            if not is_visible and count_rows(snapshot, now, layout, is_expanded=is_open) == len(kept.rows):
                return kept.rows
        rows = machine_rows(snapshot, now, layout, is_expanded=is_open, trend_of=self.trend_of)
        if is_tagged:
            rows = tuple(row._replace(cells=tagged_cells(row.cells, layout.glyphs)) for row in rows)
        self.built += 1
        if kept is not None and kept.rows == rows:
            rows = kept.rows  # the same objects: nothing to compare, nothing to paint
        self._kept[snapshot.name] = _Kept(snapshot, second, layout, is_open, is_tagged, rows)
        return rows
