"""The table's rows, built anew only for models that changed or whose seconds are on the screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from fleettui.view.model_layout import ModelLayout
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_rows import ModelRow, count_model_rows, is_line_ticking, model_rows


class _Kept(NamedTuple):
    line: ModelLine
    second: int
    layout: ModelLayout
    is_open: bool
    rows: tuple[ModelRow, ...]


class ModelRows:
    """Rows of each model, kept until something they depend on changes."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self.built = 0
        """How many models' rows were built so far."""

    def rows_of(
        self,
        lines: Sequence[ModelLine],
        now: float,
        layout: ModelLayout,
        opened: Collection[str],
        visible: Collection[str],
    ) -> list[ModelRow]:
        """All rows; those of models out of sight may be old as long as their number is right."""
        rows: list[ModelRow] = []
        for line in lines:
            rows += self._rows_of_one(line, now, layout, line.key in opened, line.key in visible)
        if len(self._kept) > len(lines):
            keys = {line.key for line in lines}
            self._kept = {key: kept for key, kept in self._kept.items() if key in keys}
        return rows

    def _rows_of_one(
        self, line: ModelLine, now: float, layout: ModelLayout, is_open: bool, is_visible: bool
    ) -> tuple[ModelRow, ...]:
        kept = self._kept.get(line.key)
        second = int(now)
        if kept is not None and kept.layout is layout and kept.is_open == is_open:
            if kept.line is line and (
                kept.second == second or not is_visible or not is_line_ticking(line, now)
            ):
                return kept.rows
            if not is_visible and count_model_rows(line, layout, is_expanded=is_open) == len(kept.rows):
                return kept.rows
        rows = model_rows(line, now, layout, is_expanded=is_open)
        self.built += 1
        if kept is not None and kept.rows == rows:
            rows = kept.rows  # the same objects: nothing to compare, nothing to paint
        self._kept[line.key] = _Kept(line, second, layout, is_open, rows)
        return rows
