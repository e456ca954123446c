"""A list of things of one or more lines: the cursor goes from one to the next, and lies on all its lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from fleettui.tui.tones import CURSOR_CLASS
from fleettui.tui.widgets.group_table import GroupTable
from fleettui.tui.widgets.painting import Paintable
from fleettui.view.cells import Cells


class BlockRow(Protocol):
    """A line that knows whether something begins on it."""

    @property
    def key(self) -> str:
        """Stays with what the line is about."""

    @property
    def kind(self) -> str:
        """`more`: it belongs to the line above."""

    @property
    def machine(self) -> str:
        """What the cursor goes to when the line is gone; empty: to nothing."""

    @property
    def cells(self) -> Cells:
        """Runs of text."""

    @property
    def is_stop(self) -> bool:
        """The cursor can be on it."""


RowT = TypeVar("RowT", bound=BlockRow)


class BlockList(GroupTable[RowT]):
    """Headings and further lines are passed over."""

    @property
    def current_row(self) -> RowT | None:
        """The line under the cursor, where it can be on one."""
        row: RowT | None = self.cursor_line
        return row if row is not None and row.is_stop else None

    def group_of(self, line: RowT) -> str:
        return line.machine or line.key

    def show_lines(self, lines: Sequence[RowT], header: Paintable | None = None) -> int:
        """As CursorView; the cursor is never on a heading."""
        before = self._block(self.cursor)
        old_start = self.scroll_offset.y
        changed = super().show_lines(lines, header)
        if self.lines and not self.lines[self.cursor].is_stop:
            self.cursor = self._stop_near(self.cursor, 1)
            self.post_message(self.CursorMoved())
        if self._block(self.cursor) != before or self.scroll_offset.y != old_start:
            for index in {*before, *self._block(self.cursor)}:
                self.repaint_line(index)
        return changed

    def backdrop_of(self, index: int) -> str | None:
        return CURSOR_CLASS if index in self._block(self.cursor) else None

    def _block(self, index: int) -> range:
        """The line and those that belong to it."""
        end = index + 1
        while end < len(self.lines) and self.lines[end].kind == "more":
            end += 1
        return range(index, end)

    def _stop_near(self, index: int, step: int) -> int:
        """The next line in that direction that the cursor can be on, else the next one in the other."""
        for direction in (step, -step):
            at = index
            while 0 <= at < len(self.lines):
                if self.lines[at].is_stop:
                    return at
                at += direction
        return index

    def _head_of(self, index: int) -> int:
        """The first line of what this one belongs to; of a heading the next line that is none."""
        while index > 0 and self.lines[index].kind == "more":
            index -= 1
        return self._stop_near(index, 1) if index < len(self.lines) else index

    def move_cursor(self, index: int) -> None:
        before = self._block(self.cursor)
        super().move_cursor(self._head_of(max(0, min(index, len(self.lines) - 1))))
        for line in {*before, *self._block(self.cursor)}:
            self.repaint_line(line)

    def action_cursor_down(self) -> None:
        self.move_cursor(self._block(self.cursor).stop)

    def action_cursor_up(self) -> None:
        above = self.cursor - 1
        while above >= 0 and not self.lines[above].is_stop:
            above -= 1
        self.move_cursor(above if above >= 0 else self.cursor)

    def show_cursor(self) -> None:
        """All its lines, and the headings above the first one, where there is room."""
        block = self._block(self.cursor)
        bottom = min(block.stop - 1, self.cursor + self.page_height - 1)
        if bottom >= self.scroll_offset.y + self.page_height:
            self.scroll_to(y=bottom - self.page_height + 1, animate=False, force=True)
        super().show_cursor()
        if self.scroll_offset.y and not any(line.is_stop for line in self.lines[: self.cursor]):
            self.scroll_to(y=0, animate=False, force=True)
