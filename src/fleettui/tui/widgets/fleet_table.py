"""The table of the fleet: a cursor that follows its row, rows that never move under it."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from fleettui.tui.tones import CURSOR_CLASS
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Paintable
from fleettui.view.rows import Row


class FleetTable(LineView[Row]):
    """Rows in groups: one group for each machine, its first row is the machine's own."""

    class Opened(Message):
        """The operator wants everything about a machine."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class ToggleAsked(Message):
        """The operator clicked the mark that expands a machine."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class ViewMoved(Message):
        """Other rows came into view: by scrolling, or in another size."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, FleetTable.ViewMoved)

    MARK_WIDTH = 4
    """Columns at the left that expand a machine when clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = 0
        """Index of the cursor's line."""
        self._places: dict[str, int] = {}

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor."""
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    @property
    def cursor_machine(self) -> str | None:
        """Name of the machine under the cursor."""
        row = self.cursor_row
        return None if row is None else row.machine

    def show_lines(self, lines: Sequence[Row], header: Paintable | None = None) -> int:
        """As LineView; the row under the cursor stays in place, or the top one when it is out of sight."""
        old_cursor = self.cursor_row
        seen = self.visible_range()
        anchor = self.cursor if self.cursor in seen else seen.start
        anchor_line = self.lines[anchor] if anchor < len(self.lines) else None
        self._places = {line.key: index for index, line in enumerate(lines)}
        if old_cursor is not None:
            self.cursor = self._place_of(old_cursor, self.cursor, len(lines))
        if anchor_line is not None:
            self.shift = self._place_of(anchor_line, anchor, len(lines)) - anchor
        return super().show_lines(lines, header)

    def _place_of(self, row: Row, old_index: int, count: int) -> int:
        """New index of a line; when it is gone that of its machine, else of what took its place."""
        place = self._places.get(row.key, self._places.get(row.machine))
        return place if place is not None else max(0, min(old_index, count - 1))

    def backdrop_of(self, index: int) -> str | None:
        return CURSOR_CLASS if index == self.cursor else None

    # Moving

    def move_cursor(self, index: int) -> None:
        """Put the cursor on a line and bring it into view."""
        index = max(0, min(index, len(self.lines) - 1))
        if index != self.cursor:
            old, self.cursor = self.cursor, index
            self.repaint_line(old)
            self.repaint_line(index)
        self.show_cursor()

    def move_to(self, name: str) -> None:
        """Put the cursor on a machine."""
        if name in self._places:
            self.move_cursor(self._places[name])

    def show_cursor(self) -> None:
        """Scroll as little as needed."""
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + self.page_height:
            self.scroll_to(y=self.cursor - self.page_height + 1, animate=False, force=True)

    def action_cursor_down(self) -> None:
        self.move_cursor(self.cursor + 1)

    def action_cursor_up(self) -> None:
        self.move_cursor(self.cursor - 1)

    def action_page_down(self) -> None:
        self._turn_page(1)

    def action_page_up(self) -> None:
        self._turn_page(-1)

    def _turn_page(self, direction: int) -> None:
        step = direction * (self.page_height - 1)
        self.scroll_lines(step)
        self.move_cursor(self.cursor + step)

    def action_top(self) -> None:
        self.move_cursor(0)

    def action_bottom(self) -> None:
        self.move_cursor(len(self.lines) - 1)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.ViewMoved())

    def on_resize(self) -> None:
        self.post_message(self.ViewMoved())

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """One click selects, on the mark at the left it expands, two open the machine."""
        index = self.scroll_offset.y + event.y - self.header_height
        if event.y < self.header_height or index >= len(self.lines):
            return
        event.stop()
        self.move_cursor(index)
        row = self.lines[index]
        if event.chain == 2:
            self.post_message(self.Opened(row.machine))
        elif event.x < self.MARK_WIDTH and row.kind == "machine":
            self.post_message(self.ToggleAsked(row.machine))
