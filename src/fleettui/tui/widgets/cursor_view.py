"""A list of lines with a cursor that follows its line, wherever that goes."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from fleettui.tui.tones import CURSOR_CLASS
from fleettui.tui.widgets.line_view import LinePart, LineView
from fleettui.tui.widgets.painting import Paintable


class CursorView(LineView[LinePart]):
    """Lines of stable keys; lines that come and go never move the one under the cursor on the screen."""

    class Opened(Message):
        """The operator chose a line with two clicks."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class CursorMoved(Message):
        """Another line is under the cursor."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, CursorView.CursorMoved)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = 0
        """Index of the cursor's line."""
        self._places: dict[str, int] = {}

    @property
    def cursor_line(self) -> LinePart | None:
        """The line under the cursor."""
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    def group_of(self, line: LinePart) -> str:
        """Key of the line that the cursor goes to when this one is gone."""
        return line.key

    def show_lines(self, lines: Sequence[LinePart], header: Paintable | None = None) -> int:
        """As LineView; the line under the cursor stays in place, or the top one when it is out of sight."""
        old_line = self.cursor_line
        seen = self.visible_range()
        anchor = self.cursor if self.cursor in seen else seen.start
        anchor_line = self.lines[anchor] if anchor < len(self.lines) else None
        self._places = {line.key: index for index, line in enumerate(lines)}
        if old_line is not None:
            self.cursor = self._place_of(old_line, self.cursor, len(lines))
        if anchor_line is not None:
            self.shift = self._place_of(anchor_line, anchor, len(lines)) - anchor
        changed = super().show_lines(lines, header)
        new_line = self.cursor_line
        if (old_line and old_line.key) != (new_line and new_line.key):
            self.post_message(self.CursorMoved())
        return changed

    def _place_of(self, line: LinePart, old_index: int, count: int) -> int:
        """New index of a line; when it is gone that of its group, else of what took its place."""
        place = self._places.get(line.key, self._places.get(self.group_of(line)))
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
            self.post_message(self.CursorMoved())
        self.show_cursor()

    def move_to(self, key: str) -> bool:
        """Put the cursor on the line of a key; False when there is none."""
        place = self._places.get(key)
        if place is not None:
            self.move_cursor(place)
        return place is not None

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

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """One click selects, two open."""
        if event.y < self.header_height:
            event.stop()
            self.click_header(event.x)
            return
        index = self.scroll_offset.y + event.y - self.header_height
        if index >= len(self.lines):
            return
        event.stop()
        self.move_cursor(index)
        if event.chain == 2:
            self.post_message(self.Opened(self.lines[index].key))
        else:
            self.click_line(index, event.x)

    def click_header(self, x: int) -> None:
        """The header was clicked at a column of the screen."""

    def click_line(self, index: int, x: int) -> None:
        """A line was clicked once."""
