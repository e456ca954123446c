"""Help: what can be done where the operator is, and with which key."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from fleettui.tui.actions import bindings_for
from fleettui.tui.dialog import Dialog
from fleettui.tui.offers import Offer
from fleettui.tui.widgets.box import Box
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell
from fleettui.view.glyphs import Glyphs


class HelpScreen(Dialog[None]):
    """A box over the screen it explains; only what applies there now."""

    BINDINGS = bindings_for("help")

    def __init__(self, offers: Sequence[Offer], glyphs: Glyphs) -> None:
        super().__init__()
        self.lines = help_lines(offers, glyphs)

    def compose(self) -> ComposeResult:
        with Box() as box:
            box.border_title = "Keys"
            box.border_subtitle = "Esc closes, Ctrl+P finds every command"
            yield LineView[Line](id="keys")

    def on_mount(self) -> None:
        lines = self.lines
        view = self.query_one(LineView)
        view.styles.height = len(lines)
        view.styles.max_height = max(1, self.size.height - 2)
        view.show_lines(lines)
        view.focus()

    def action_close(self) -> None:
        self.dismiss()


def help_lines(offers: Sequence[Offer], glyphs: Glyphs) -> list[Line]:
    """A line for each key, in the order of the declarations."""
    shown = [(offer.action, glyphs.plain(offer.label)) for offer in offers if offer.label]
    width = max((len(label) for _, label in shown), default=0)
    return [
        Line(action.id, (Cell(f"{label:>{width}}  ", "key"), Cell(action.description)))
        for action, label in shown
    ]
