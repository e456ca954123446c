"""A menu: one line for each thing to choose, the present one marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult

from fleettui.tui.actions import bindings_for
from fleettui.tui.dialog import Dialog
from fleettui.tui.widgets.box import Box
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import width_of

_FRAME = 4
"""Columns of the box beside its lines."""


class MenuScreen(Dialog[str | None]):
    """Answers the key of the line that was chosen, None when it was left."""

    BINDINGS = bindings_for("menu")
    DEFAULT_CSS = """
    MenuScreen.-preview { align: right middle; background: transparent; }
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[Line],
        current: str | None = None,
        on_move: Callable[[str], None] | None = None,
    ) -> None:
        """`on_move`: shows what the line under the cursor would do, on what is below."""
        super().__init__(classes="-preview" if on_move is not None else None)
        self._title = title
        self._lines = lines
        self._current = current
        self._on_move = on_move

    def compose(self) -> ComposeResult:
        with Box() as box:
            box.border_title = self._title
            if self._on_move is not None:
                box.border_subtitle = "Enter keeps, Esc goes back"
            yield CursorView[Line](id="choices")

    def on_mount(self) -> None:
        box, view = self.query_one(Box), self.query_one(CursorView)
        wide = max((width_of(line.cells) for line in self._lines), default=0)
        box.styles.width = max(wide + 1, len(self._title) + 4) + _FRAME
        view.styles.height = len(self._lines)
        view.styles.max_height = max(1, self.size.height - 2)
        view.show_lines(self._lines)
        keys = [line.key for line in self._lines]
        if self._current in keys:
            view.call_after_refresh(view.move_cursor, keys.index(self._current))
        view.focus()

    def on_cursor_view_cursor_moved(self) -> None:
        line = self.query_one(CursorView).cursor_line
        if self._on_move is not None and line is not None:
            self._on_move(line.key)

    def action_choose(self) -> None:
        line = self.query_one(CursorView).cursor_line
        self.dismiss(None if line is None else line.key)

    def on_cursor_view_opened(self, message: CursorView.Opened) -> None:
        self.dismiss(message.key)

    def action_leave(self) -> None:
        self.dismiss(None)
