"""Help: what can be done where the operator is, and with which key."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size

from fleettui.tui.actions import bindings_for
from fleettui.tui.dialog import BOX_WIDTH, Dialog
from fleettui.tui.offers import Offer
from fleettui.tui.widgets.box import Box
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import wrap

SUBTITLE = "Esc closes, Ctrl+P finds every command"
EDGES = 5
"""Columns of the box that are not for text: border, padding, scrollbar."""


class HelpScreen(Dialog[None]):
    """A box over the screen it explains; only what applies there now."""

    BINDINGS = bindings_for("help")

    def __init__(self, offers: Sequence[Offer], glyphs: Glyphs) -> None:
        super().__init__()
        self._offers, self._glyphs = offers, glyphs
        self.lines: list[Line] = []

    def compose(self) -> ComposeResult:
        with Box() as box:
            box.border_title = "Keys"
            yield LineView[Line](id="keys")

    def on_mount(self) -> None:
        self._show(self.size)
        self.query_one(LineView).focus()

    def on_resize(self, event: events.Resize) -> None:
        self._show(event.size)

    def _show(self, size: Size) -> None:
        """A sentence takes as many lines as it needs in the box."""
        self.lines = help_lines(self._offers, self._glyphs, min(size.width, BOX_WIDTH) - EDGES)
        is_wide = size.width >= len(SUBTITLE) + 6
        self.query_one(Box).border_subtitle = SUBTITLE if is_wide else SUBTITLE.partition(",")[0]
        view = self.query_one(LineView)
        view.styles.height = len(self.lines)
        view.styles.max_height = max(1, size.height - 2)
        view.show_lines(self.lines)

    def action_close(self) -> None:
        self.dismiss()


def help_lines(offers: Sequence[Offer], glyphs: Glyphs, width: int) -> list[Line]:
    """A line for each key, in the order of the declarations; more where its sentence is longer."""
    shown = [(offer.action, glyphs.plain(offer.label)) for offer in offers if offer.label]
    indent = max((len(label) for _, label in shown), default=0) + 2
    lines: list[Line] = []
    for action, label in shown:
        first, *others = wrap(action.description, max(1, width - indent))
        lines.append(Line(action.id, (Cell(f"{label:>{indent - 2}}  ", "key"), Cell(first))))
        for number, text in enumerate(others):
            lines.append(Line(f"{action.id} {number}", (Cell(" " * indent), Cell(text))))
    return lines
