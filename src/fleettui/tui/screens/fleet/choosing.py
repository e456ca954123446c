"""What the operator chooses to see of the fleet: filter, sort, tags; by key, mouse and name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from fleettui.tui.choosing import ChoosingScreen
from fleettui.tui.screens.fleet.filter_line import FilterLine
from fleettui.tui.screens.fleet.listing import MachineListing
from fleettui.tui.screens.fleet.tags import Tags
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.tui.widgets.prompt import Question
from fleettui.view.filter_language import Filter, FilterError, parse_filter
from fleettui.view.layout import Layout
from fleettui.view.sorting import MACHINE_SORTING, sort_named


class ChoosingMachines(ChoosingScreen[Filter]):
    """A screen with a table of machines, and what of it is shown."""

    MEMORY = "fleet"
    SORTING = MACHINE_SORTING
    SORT_TITLE = "Sort by"

    def __init__(self) -> None:
        super().__init__()
        self.listing: MachineListing = MachineListing()
        self.tags = Tags()

    @property
    @abstractmethod
    def table(self) -> FleetTable:
        """The list of machines."""

    @property
    @abstractmethod
    def layout_now(self) -> Layout | None:
        """Where the columns stand; None before the first paint."""

    @property
    def chosen_machines(self) -> tuple[str, ...]:
        """The tagged ones, also those that the filter hides; without any the one under the cursor."""
        tagged = self.tags.in_order([item.name for item in self.fleet_app.snapshot.machines])
        return tagged or super().chosen_machines

    # Filter and sort

    def parse(self, text: str) -> Filter | FilterError:
        return parse_filter(text)

    def filter_question(
        self, text: str, on_filter: Callable[[Filter], None], on_cancel: Callable[[], None]
    ) -> Question:
        app = self.fleet_app
        line = FilterLine(
            lambda: app.snapshot, lambda: self.size.width, app.look.glyph_set, app.clock, on_filter
        )
        return line.question(text, self.filters, self.answer_filter, on_cancel)

    @property
    def shown_columns(self) -> Sequence[str]:
        return [] if self.layout_now is None else [place.column.key for place in self.layout_now.places]

    def sort_at(self, x: int) -> str | None:
        column = None if self.layout_now is None else self.layout_now.column_at(x)
        present = sort_named(self.listing.order.column)
        if column is not None and present is not None and present.column == column:
            return self.listing.order.column  # VRAM used is in the column of VRAM
        return column

    # Tags

    def action_tag(self) -> None:
        if self.table.cursor_machine is not None:
            self._tag(self.table.cursor_machine)

    def on_fleet_table_tag_asked(self, message: FleetTable.TagAsked) -> None:
        self._tag(message.name)

    def _tag(self, name: str) -> None:
        self.tags.toggle(name)
        self.fleet_app.painter.paint_now()

    def action_tag_all(self) -> None:
        self.tags.toggle_all(item.name for item in self.listing.shown)
        self.fleet_app.painter.paint_now()

    def action_untag_all(self) -> None:
        self.tags.drop()
        self.fleet_app.painter.paint_now()
