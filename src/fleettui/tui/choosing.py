"""Screens with a list, of which the operator chooses what is shown and in which order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

from textual import events

from fleettui.tui.listing import FilterT, Listing
from fleettui.tui.live import LiveScreen
from fleettui.tui.memory import Part, flag_in, text_in, texts_in
from fleettui.tui.sort_menu import sort_menu
from fleettui.tui.typed import note_line
from fleettui.tui.widgets.group_table import GroupTable
from fleettui.tui.widgets.prompt import Question
from fleettui.view.filter_language import FilterError
from fleettui.view.sorting import Sorting, SortOrder, order_from


class ChoosingScreen(LiveScreen, Generic[FilterT]):
    """Filter and sort of a table; what is chosen is remembered."""

    MEMORY: ClassVar[str]
    """The part of the app's memory."""
    SORTING: ClassVar[Sorting]
    SORT_TITLE: ClassVar[str]
    """Of the menu."""

    listing: Listing[Any, Any, FilterT]

    def __init__(self) -> None:
        super().__init__()
        self._filters: list[str] = []
        """Lines of filters used so far, oldest first."""

    @property
    @abstractmethod
    def table(self) -> GroupTable[Any]:
        """The list."""

    @abstractmethod
    def parse(self, text: str) -> FilterT | FilterError:
        """Read a line of the filter."""

    @abstractmethod
    def filter_question(
        self, text: str, on_filter: Callable[[FilterT], None], on_cancel: Callable[[], None]
    ) -> Question:
        """Asks for a filter, `text` at first; `on_filter` follows what is typed, `answer_filter` hears the
        line."""

    @property
    @abstractmethod
    def shown_columns(self) -> Sequence[str]:
        """Keys of the columns that are there, from left to right."""

    @abstractmethod
    def sort_at(self, x: int) -> str | None:
        """Key of the sort that the header has at a column of the screen."""

    @property
    def filters(self) -> tuple[str, ...]:
        """Lines used so far, oldest first."""
        return tuple(self._filters)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "clear_filter" and self.listing.filter.is_empty:
            return False
        return super().check_action(action, parameters)

    def on_screen_suspend(self) -> None:
        """Whoever comes back from another of the top screens finds the rows in order; below a dialog or a
        machine they stay where they are."""
        if self.app.screen_stack[0] is not self:
            self.listing.ask()

    def note_refresh(self) -> None:
        self.listing.ask()
        self.fleet_app.painter.paint_now()

    # What is remembered between runs

    def restore(self) -> Part:
        """As the last run left it: what is remembered; what this version does not know is left out."""
        part = self.fleet_app.memory.part(self.MEMORY)
        self._filters = texts_in(part, "filters")
        wanted = self.parse(text_in(part, "filter"))
        if not isinstance(wanted, FilterError):  # else another version wrote it
            self.listing.set_filter(wanted)
        if self.SORTING.named(text_in(part, "sort")) is not None:
            self.listing.set_order(SortOrder(text_in(part, "sort"), bool(flag_in(part, "descending"))))
        return part

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
        if text and not isinstance(self.parse(text), FilterError):
            self.answer_filter(text)
            return
        before, table = self.listing.filter, self.table
        home, top = table.cursor_line, table.scroll_offset.y

        def follow(wanted: FilterT) -> None:
            self._show_filter(wanted, home)

        def go_back() -> None:
            follow(before)
            table.scroll_to(y=top, animate=False, force=True)

        self.ask(self.filter_question(text or before.text, follow, go_back))

    def answer_filter(self, text: str) -> None:
        """Show what matches the line; one that cannot be read changes nothing."""
        wanted = self.parse(text.strip())
        if not isinstance(wanted, FilterError):
            if not wanted.is_empty:
                note_line(self._filters, wanted.text)
            self._show_filter(wanted, self.table.cursor_line)
            self.remember()

    def action_clear_filter(self) -> None:
        self.answer_filter("")

    def _show_filter(self, wanted: FilterT, home: Any) -> None:
        """Show what matches; the cursor is on the row `home`, or on the first of its group, where that is
        shown, else on top."""
        was_empty = self.listing.filter.is_empty
        self.listing.set_filter(wanted)
        self.fleet_app.painter.paint_now()
        table = self.table
        if home is None or not (table.move_to(home.key) or table.move_to(table.group_of(home))):
            table.move_cursor(0)
        if was_empty != wanted.is_empty:
            self.refresh_bindings()

    def on_click(self, event: events.Click) -> None:
        if event.widget is not None and event.widget.id == "shown":
            self.action_filter()

    # Sort

    def action_sort(self, text: str = "") -> None:
        """Let the operator choose, or sort by what was named."""
        order, sorts = self.listing.order, self.SORTING.sorts
        if not text:
            lines = sort_menu(sorts, order, self.fleet_app.look.glyph_set)
            self.fleet_app.choose(self.SORT_TITLE, lines, order.column, self._choose_sort)
            return
        wanted = order_from(text, order, sorts)
        if isinstance(wanted, str):
            self.notify(wanted, severity="warning", markup=False)
        else:
            self._sort_by(wanted)

    def action_sort_right(self) -> None:
        self._sort_by(self.SORTING.next(self.listing.order, self.shown_columns, 1))

    def action_sort_left(self) -> None:
        self._sort_by(self.SORTING.next(self.listing.order, self.shown_columns, -1))

    def action_reverse(self) -> None:
        self._choose_sort(self.listing.order.column)

    def on_group_table_header_clicked(self, message: GroupTable.HeaderClicked) -> None:
        key = self.sort_at(message.x)
        if key is not None:
            self._choose_sort(key)

    def _choose_sort(self, key: str) -> None:
        self._sort_by(self.SORTING.choose(self.listing.order, key))

    def _sort_by(self, order: SortOrder) -> None:
        is_on_top = self.table.cursor == 0
        self.listing.set_order(order)
        self.fleet_app.painter.paint_now()
        if is_on_top:  # nothing was chosen: what counts is what comes first now
            self.table.move_cursor(0)
        else:
            self.table.show_cursor()
        self.remember()
