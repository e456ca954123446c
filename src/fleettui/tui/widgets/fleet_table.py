"""The table of the fleet: rows in groups, one group for each machine."""

from __future__ import annotations

from textual import events
from textual.message import Message

from fleettui.tui.widgets.group_table import GroupTable
from fleettui.view.rows import Row


class FleetTable(GroupTable[Row]):
    """The first row of a group is the machine's own."""

    class TagAsked(Message):
        """The operator clicked a machine while holding Ctrl."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    MARK_WIDTH = 4
    """Columns at the left that expand a machine when clicked."""

    @property
    def cursor_machine(self) -> str | None:
        """Name of the machine under the cursor."""
        return self.cursor_group

    def group_of(self, line: Row) -> str:
        return line.machine

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
