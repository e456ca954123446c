"""The table's rows, built anew only for models that changed or whose seconds are on the screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from fleettui.view.model_layout import ModelLayout
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_rows import ModelRow, count_model_rows, is_line_ticking, model_rows, outline_rows

_MANY = 100
"""Rows of one model from which those that nobody sees are not drawn."""
_NEVER = -1


class _Kept(NamedTuple):
    line: ModelLine
    second: int
    """`_NEVER`: the rows are only an outline."""
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
        """All rows; those of models out of sight may be old or only an outline, as long as their number is
        right."""
        rows: list[ModelRow] = []
        for line in lines:
            rows += self._rows_of_one(line, now, layout, line.key in opened, line.key in visible)
        if len(self._kept) > len(lines):
            keys = {line.key for line in lines}
            self._kept = {key: kept for key, kept in self._kept.items() if key in keys}
        return rows

    def has_outline(self, models: Collection[str]) -> bool:
        """True when rows of one of these are not drawn yet."""
        return any(self._kept[key].second == _NEVER for key in models if key in self._kept)

    def _rows_of_one(
        self, line: ModelLine, now: float, layout: ModelLayout, is_open: bool, is_visible: bool
    ) -> tuple[ModelRow, ...]:
        kept = self._kept.get(line.key)
        if kept is not None and (kept.layout is not layout or kept.is_open != is_open):
            kept = None
        if kept is not None and _still_holds(kept, line, now, is_visible):
            return kept.rows
        if (
            is_open
            and (kept is None or not is_visible)
            and count_model_rows(line, layout, is_expanded=True) > _MANY
        ):
            rows = outline_rows(line, layout)
            self._kept[line.key] = _Kept(line, _NEVER, layout, is_open, rows)
            return rows
        rows = model_rows(line, now, layout, is_expanded=is_open)
        self.built += 1
        if kept is not None and kept.rows == rows:
            rows = kept.rows  # the same objects: nothing to compare, nothing to paint
        self._kept[line.key] = _Kept(line, int(now), layout, is_open, rows)
        return rows


def _still_holds(kept: _Kept, line: ModelLine, now: float, is_visible: bool) -> bool:
    """True when the kept rows will do."""
    if not is_visible:
        count = count_model_rows(line, kept.layout, is_expanded=kept.is_open)
        return kept.line is line or count == len(kept.rows)
    if kept.line is not line or kept.second == _NEVER:
        return False
    return kept.second == int(now) or not is_line_ticking(line, now)
