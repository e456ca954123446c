"""The table's rows, built anew only for machines that changed or whose seconds are on the screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from fleettui.model.snapshot import MachineSnapshot
from fleettui.view.layout import Layout
from fleettui.view.machine_view import TrendOf
from fleettui.view.rows import Row, count_rows, machine_rows, outline_rows
from fleettui.view.tagging import tagged_cells
from fleettui.view.ticking import is_ticking


class _Kept(NamedTuple):
    snapshot: MachineSnapshot
    second: int
    layout: Layout
    is_open: bool
    is_drawn: bool
    """False: outlines only, nobody has seen them yet."""
    rows: tuple[Row, ...]
    tagged: tuple[Row, ...] | None
    """The same with the mark; None: not asked for yet."""


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
        """All rows; those of machines out of sight may be old, as wide as the screen was or outlines, as
        long as their number is right."""
        rows: list[Row] = []
        for snapshot in machines:
            name = snapshot.name
            kept = self._keep(snapshot, now, layout, name in opened, name in visible)
            rows += kept.rows if name not in tagged else self._marked(kept)
        return rows

    def keep_only(self, declared: Sequence[MachineSnapshot]) -> None:
        """Drop rows of machines that are gone; those that a filter hides are kept for its end."""
        if len(self._kept) > len(declared):
            names = {snapshot.name for snapshot in declared}
            self._kept = {name: kept for name, kept in self._kept.items() if name in names}

    def _marked(self, kept: _Kept) -> tuple[Row, ...]:
        """The rows with the mark of a tagged machine."""
        if kept.tagged is not None:
            return kept.tagged
        glyphs = kept.layout.glyphs
        rows = tuple([row._replace(cells=tagged_cells(row.cells, glyphs)) for row in kept.rows])
        self._kept[kept.snapshot.name] = kept._replace(tagged=rows)
        return rows

    def _keep(
        self, snapshot: MachineSnapshot, now: float, layout: Layout, is_open: bool, is_visible: bool
    ) -> _Kept:
        kept = self._kept.get(snapshot.name)
        second = int(now)
        if kept is not None and kept.is_open == is_open:
            is_same = kept.is_drawn and kept.snapshot is snapshot and kept.layout is layout
            if is_same and (
                kept.second == second or not is_visible or not is_ticking(snapshot, now, layout.interval_s)
            ):
                return kept
            if not is_visible and count_rows(snapshot, now, layout, is_expanded=is_open) == len(kept.rows):
                return kept
        if is_visible:
            rows = machine_rows(snapshot, now, layout, is_expanded=is_open, trend_of=self.trend_of)
            self.built += 1
        else:
            rows = outline_rows(snapshot, now, layout, is_expanded=is_open)
        marked = None
        if kept is not None and kept.rows == rows:
            rows, marked = kept.rows, kept.tagged  # the same objects: nothing to compare, nothing to paint
        kept = self._kept[snapshot.name] = _Kept(snapshot, second, layout, is_open, is_visible, rows, marked)
        return kept
