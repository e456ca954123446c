"""The footer: keys that apply now, on one line, clickable. Derives from the declared actions."""

from __future__ import annotations

from textual import events

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.offers import Offer, actions_now
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.badge import badge_cells
from fleettui.view.cells import Cell, Cells, width_of


class Footer(CellBlock):
    """One line instead of Textual's widget for each key: it paints once, and only when keys change."""

    DEFAULT_CSS = """
    Footer { background: $line-footer; }
    """

    def __init__(self) -> None:
        super().__init__(id="footer")
        self._spots: list[tuple[range, Offer]] = []
        self._fleet: FleetSnapshot | None = None
        self._review: Offer | None = None
        """What the badge opens."""
        self._badge: Cells = ()

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.show_keys())

    def on_resize(self) -> None:
        self.show_keys()

    def show_badge(self, fleet: FleetSnapshot) -> None:
        """What waits for the operator, at the right of every screen."""
        self._fleet = fleet
        if self._make_badge() != self._badge:
            self.show_keys()

    def _make_badge(self) -> Cells:
        key = self._review.label if self._review is not None else ""
        return () if self._fleet is None else badge_cells(self._fleet, key)

    def show_keys(self) -> None:
        """Ask which actions apply and lay out as many as fit beside the badge."""
        offers = actions_now(self.screen)
        ranked = sorted((offer for offer in offers if offer.action.rank), key=lambda offer: offer.action.rank)
        self._review = next((offer for offer in offers if offer.action.id == "pending"), None)
        self._badge = self._make_badge()
        cells: list[Cell] = [Cell(" ", "dim")]
        self._spots = []
        column = 1
        room = self.size.width - (width_of(self._badge) + 2 if self._badge else 0)
        for offer in ranked:
            label, title = offer.label, offer.action.title
            width = len(label) + 1 + len(title) + 2
            if column + width - 2 > room:
                break
            self._spots.append((range(column, column + width - 2), offer))
            cells += [Cell(label, "key"), Cell(" " + title + "  ", "dim")]
            column += width
        if self._badge:
            cells += [Cell(" " * max(0, room - column)), *self._badge, Cell(" ")]
            if self._review is not None:
                self._spots.append((range(max(room, column), self.size.width), self._review))
        self.show_cells(tuple(cells))

    async def on_click(self, event: events.Click) -> None:
        """Run the action under the mouse."""
        for span, offer in self._spots:
            if event.x in span:
                event.stop()
                await offer.run()
                return
