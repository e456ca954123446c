"""The table of the fleet: rows in groups, one group for each machine."""

from __future__ import annotations

from textual import events
from textual.message import Message

from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.view.rows import Row


class FleetTable(CursorView[Row]):
    """The first row of a group is the machine's own; when a row is gone the cursor goes there."""

    class ToggleAsked(Message):
        """The operator clicked the mark that expands a machine."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class TagAsked(Message):
        """The operator clicked a machine while holding Ctrl."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class HeaderClicked(Message):
        """The operator clicked the header."""

        def __init__(self, x: int) -> None:
            super().__init__()
            self.x = x

    class ViewMoved(Message):
        """Other rows came into view: by scrolling, or in another size."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, FleetTable.ViewMoved)

    MARK_WIDTH = 4
    """Columns at the left that expand a machine when clicked."""

    @property
    def cursor_machine(self) -> str | None:
        """Name of the machine under the cursor."""
        row = self.cursor_line
        return None if row is None else row.machine

    def group_of(self, line: Row) -> str:
        return line.machine

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.ViewMoved())

    def on_resize(self) -> None:
        self.post_message(self.ViewMoved())

    def click_header(self, x: int) -> None:
        self.post_message(self.HeaderClicked(x))

    def on_click(self, event: events.Click) -> None:
        """With Ctrl held a click tags; all else is the list's."""
        index = self.scroll_offset.y + event.y - self.header_height
        if event.ctrl and event.y >= self.header_height and index < len(self.lines):
            event.stop()
            event.prevent_default()
            self.move_cursor(index)
            self.post_message(self.TagAsked(self.lines[index].machine))

    def click_line(self, index: int, x: int) -> None:
        row = self.lines[index]
        if x < self.MARK_WIDTH and row.kind == "machine":
            self.post_message(self.ToggleAsked(row.machine))
