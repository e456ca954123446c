"""A line of tabs: names, the one that is shown underlined, clickable."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.cells import Cell
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import cell_width

_START, _GAP = 1, 2


class TabLine(CellBlock):
    """Two lines, one where the screen is low: then the shown tab is bold alone."""

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, tabs: Sequence[tuple[str, str]], *, id: str = "tabs") -> None:
        """`tabs`: key and title of each, in order."""
        super().__init__(id=id)
        self._tabs = tuple(tabs)

    def show_tab(self, current: str, width: int, glyphs: Glyphs, *, is_low: bool) -> None:
        """Mark the tab that is shown; repaints only when that is another one."""
        titles, rule = [Cell(" " * _START)], [Cell(_sign(glyphs)[0] * _START, "faint")]
        used = _START
        for index, (key, title) in enumerate(self._tabs):
            if index:
                titles.append(Cell(" " * _GAP))
                rule.append(Cell(_sign(glyphs)[0] * _GAP, "faint"))
            is_shown = key == current
            length = cell_width(title)
            titles.append(Cell(title, "strong" if is_shown else "dim"))
            rule.append(Cell(_sign(glyphs)[is_shown] * length, "accent" if is_shown else "faint"))
            used += length + (_GAP if index else 0)
        rule.append(Cell(_sign(glyphs)[0] * max(0, width - used), "faint"))
        self.show_cells(tuple(titles), *(() if is_low else (tuple(rule),)))

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the mouse; the gap beside a title is its own."""
        event.stop()
        end = _START
        for key, title in self._tabs:
            end += cell_width(title) + _GAP
            if event.x < end - _GAP // 2:
                self.post_message(self.Chosen(key))
                return


def _sign(glyphs: Glyphs) -> str:
    """The line below the others and below the one that is shown."""
    return "-=" if glyphs.is_ascii else "─━"
