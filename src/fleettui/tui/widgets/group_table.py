"""A table of rows in groups: the first row of a group opens it, the header sorts."""

from __future__ import annotations

from abc import abstractmethod

from textual.message import Message

from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.line_view import LinePart


class GroupTable(CursorView[LinePart]):
    """When a row is gone the cursor goes to the first of its group."""

    class ToggleAsked(Message):
        """The operator clicked the mark that opens a group."""

        def __init__(self, group: str) -> None:
            super().__init__()
            self.group = group

    class HeaderClicked(Message):
        """The operator clicked the header."""

        def __init__(self, x: int) -> None:
            super().__init__()
            self.x = x

    class ViewMoved(Message):
        """Other rows came into view: by scrolling, or in another size."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, GroupTable.ViewMoved)

    @abstractmethod
    def group_of(self, line: LinePart) -> str:
        """Key of the group, which is that of its first row."""

    @property
    def cursor_group(self) -> str | None:
        """The group under the cursor."""
        row = self.cursor_line
        return None if row is None else self.group_of(row)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.ViewMoved())

    def on_resize(self) -> None:
        self.post_message(self.ViewMoved())

    def click_header(self, x: int) -> None:
        self.post_message(self.HeaderClicked(x))
