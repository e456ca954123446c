"""The table of models: the mark at the left opens one, the header sorts, a sign is a machine."""

from __future__ import annotations

from textual.message import Message

from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.view.model_layout import INDENT
from fleettui.view.model_rows import ModelRow


class ModelTable(CursorView[ModelRow]):
    """Rows in groups, one for each model; when a row is gone the cursor goes to the model's own."""

    class ToggleAsked(Message):
        """The operator clicked the mark that opens a model."""

        def __init__(self, model: str) -> None:
            super().__init__()
            self.model = model

    class HeaderClicked(Message):
        """The operator clicked the header."""

        def __init__(self, x: int) -> None:
            super().__init__()
            self.x = x

    class ViewMoved(Message):
        """Other rows came into view: by scrolling, or in another size."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, ModelTable.ViewMoved)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.clicked_x = 0
        """Column of the last click on a line."""

    @property
    def cursor_model(self) -> str | None:
        """Key of the model under the cursor."""
        row = self.cursor_line
        return None if row is None else row.model

    def group_of(self, line: ModelRow) -> str:
        return line.model

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.ViewMoved())

    def on_resize(self) -> None:
        self.post_message(self.ViewMoved())

    def click_header(self, x: int) -> None:
        self.post_message(self.HeaderClicked(x))

    def click_line(self, index: int, x: int) -> None:
        self.clicked_x = x
        row = self.lines[index]
        if x <= INDENT and row.kind == "model":
            self.post_message(self.ToggleAsked(row.model))
