"""What the operator chooses to see of the fleet: filter, sort, tags; by key, mouse and name."""

from __future__ import annotations

from abc import abstractmethod

from textual import events

from fleettui.tui.live import LiveScreen
from fleettui.tui.memory import flag_in, text_in, texts_in
from fleettui.tui.screens.fleet.filter_line import FilterLine
from fleettui.tui.screens.fleet.listing import Listing
from fleettui.tui.screens.fleet.sort_menu import order_from, sort_lines
from fleettui.tui.screens.fleet.tags import Tags
from fleettui.tui.typed import note_line
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.view.filter_language import Filter, parse_filter
from fleettui.view.layout import Layout
from fleettui.view.rows import Row
from fleettui.view.sorting import SortOrder, choose_sort, next_sort, sort_named


class ChoosingScreen(LiveScreen):
    """A screen with a table of machines, and what of it is shown."""

    MEMORY = "fleet"
    """The part of the app's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.listing = Listing()
        self.tags = Tags()
        self._filters: list[str] = []
        """Lines of filters used so far, oldest first."""

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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "clear_filter" and self.listing.filter.is_empty:
            return False
        return super().check_action(action, parameters)

    def restore(self) -> None:
        """As the last run left it."""
        part = self.fleet_app.memory.part(self.MEMORY)
        self._filters = texts_in(part, "filters")
        wanted = parse_filter(text_in(part, "filter"))
        if isinstance(wanted, Filter):  # else another version wrote it
            self.listing.set_filter(wanted)
        if sort_named(text_in(part, "sort")) is not None:
            self.listing.set_order(SortOrder(text_in(part, "sort"), bool(flag_in(part, "descending"))))

    def remember(self) -> None:
        """For the next run."""
        self.fleet_app.memory.note(
            self.MEMORY,
            filter=self.listing.filter.text,
            filters=list(self._filters),
            sort=self.listing.order.column,
            descending=self.listing.order.is_descending,
        )

    # Filter

    def action_filter(self, text: str = "") -> None:
        """Ask for a filter, or take the one that was named; what cannot be read is asked for at its place."""
        wanted = parse_filter(text)
        if text and isinstance(wanted, Filter):
            self._answer_filter(text)
            return
        before, table = self.listing.filter, self.table
        home, top = table.cursor_line, table.scroll_offset.y

        def follow(wanted: Filter) -> None:
            self._show_filter(wanted, home)

        def restore() -> None:
            follow(before)
            table.scroll_to(y=top, animate=False, force=True)

        app = self.fleet_app
        line = FilterLine(
            lambda: app.snapshot, lambda: self.size.width, app.look.glyph_set, app.clock, follow
        )
        self.ask(line.question(text or before.text, self._filters, self._answer_filter, restore))

    def _answer_filter(self, text: str) -> None:
        wanted = parse_filter(text.strip())
        if isinstance(wanted, Filter):
            if not wanted.is_empty:
                note_line(self._filters, wanted.text)
            self._show_filter(wanted, self.table.cursor_line)
            self.remember()

    def action_clear_filter(self) -> None:
        self._answer_filter("")

    def _show_filter(self, wanted: Filter, home: Row | None) -> None:
        """Show what matches; the cursor is on the row `home`, or on its machine's, where that is shown, else
        on top."""
        was_empty = self.listing.filter.is_empty
        self.listing.set_filter(wanted)
        self.fleet_app.painter.paint_now()
        table = self.table
        if home is None or not (table.move_to(home.key) or table.move_to(home.machine)):
            table.move_cursor(0)
        if was_empty != wanted.is_empty:
            self.refresh_bindings()

    def on_click(self, event: events.Click) -> None:
        if event.widget is not None and event.widget.id == "shown":
            self.action_filter()

    # Sort

    def action_sort(self, text: str = "") -> None:
        """Let the operator choose, or sort by what was named."""
        order = self.listing.order
        if not text:
            lines = sort_lines(order, self.fleet_app.look.glyph_set)
            self.fleet_app.choose("Sort by", lines, order.column, self._choose_sort)
            return
        wanted = order_from(text, order)
        if isinstance(wanted, str):
            self.notify(wanted, severity="warning", markup=False)
        else:
            self._sort_by(wanted)

    def action_sort_right(self) -> None:
        self._step_sort(1)

    def action_sort_left(self) -> None:
        self._step_sort(-1)

    def action_reverse(self) -> None:
        self._choose_sort(self.listing.order.column)

    def on_fleet_table_header_clicked(self, message: FleetTable.HeaderClicked) -> None:
        layout = self.layout_now
        column = None if layout is None else layout.column_at(message.x)
        if column is None:
            return
        sort = sort_named(self.listing.order.column)
        is_present = sort is not None and sort.column == column  # VRAM used is in the column of VRAM
        self._choose_sort(self.listing.order.column if is_present else column)

    def _step_sort(self, step: int) -> None:
        layout = self.layout_now
        shown = [] if layout is None else [place.column.key for place in layout.places]
        self._sort_by(next_sort(self.listing.order, shown, step))

    def _choose_sort(self, key: str) -> None:
        self._sort_by(choose_sort(self.listing.order, key))

    def _sort_by(self, order: SortOrder) -> None:
        is_on_top = self.table.cursor == 0
        self.listing.set_order(order)
        self.fleet_app.painter.paint_now()
        if is_on_top:  # nothing was chosen: what counts is what comes first now
            self.table.move_cursor(0)
        else:
            self.table.show_cursor()
        self.remember()

    def note_refresh(self) -> None:
        self.listing.ask()
        self.fleet_app.painter.paint_now()

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
