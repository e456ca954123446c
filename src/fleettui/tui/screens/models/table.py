"""The table of models: the mark at the left opens one, a sign is a machine."""

from __future__ import annotations

from fleettui.tui.widgets.group_table import GroupTable
from fleettui.view.model_layout import INDENT
from fleettui.view.model_rows import ModelRow


class ModelTable(GroupTable[ModelRow]):
    """The first row of a group is the model's own."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.clicked_x = 0
        """Column of the last click on a line."""

    @property
    def cursor_model(self) -> str | None:
        """Key of the model under the cursor."""
        return self.cursor_group

    def group_of(self, line: ModelRow) -> str:
        return line.model

    def click_line(self, index: int, x: int) -> None:
        self.clicked_x = x
        row = self.lines[index]
        if x <= INDENT and row.kind == "model":
            self.post_message(self.ToggleAsked(row.model))
