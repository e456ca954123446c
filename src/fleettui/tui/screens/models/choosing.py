"""What the operator chooses to see of the models: filter, sort, what is open; by key, mouse and name."""

from __future__ import annotations

from abc import abstractmethod

from textual import events

from fleettui.tui.live import LiveScreen
from fleettui.tui.memory import flag_in, text_in, texts_in
from fleettui.tui.screens.models.listing import ModelListing
from fleettui.tui.screens.models.questions import filter_question, sort_choices
from fleettui.tui.screens.models.table import ModelTable
from fleettui.tui.typed import note_line
from fleettui.view.model_filter import ModelFilter, parse_model_filter
from fleettui.view.model_layout import ModelLayout
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_order import (
    choose_model_sort,
    model_order_from,
    model_sort_named,
    next_model_sort,
)
from fleettui.view.model_rows import ModelRow
from fleettui.view.sorting import SortOrder


class ChoosingModels(LiveScreen):
    """A screen with a table of models, and what of it is shown."""

    MEMORY = "models"
    """The part of the app's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.listing = ModelListing()
        self.opened: set[str] = set()
        """Keys of models that show their machines."""
        self.lines: tuple[ModelLine, ...] = ()
        """All models, by name."""
        self._filters: list[str] = []
        """Lines of filters used so far, oldest first."""

    @property
    @abstractmethod
    def table(self) -> ModelTable:
        """The list of models."""

    @property
    @abstractmethod
    def layout_now(self) -> ModelLayout | None:
        """Where the columns stand; None before the first paint."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "clear_filter" and self.listing.filter.is_empty:
            return False
        return super().check_action(action, parameters)

    def note_refresh(self) -> None:
        self.listing.ask()
        self.fleet_app.painter.paint_now()

    def restore(self) -> None:
        """As the last run left it; what this version does not know is left out."""
        part = self.fleet_app.memory.part(self.MEMORY)
        self._filters = texts_in(part, "filters")
        self.opened = set(texts_in(part, "opened"))
        wanted = parse_model_filter(text_in(part, "filter"))
        if isinstance(wanted, ModelFilter):
            self.listing.set_filter(wanted)
        if model_sort_named(text_in(part, "sort")) is not None:
            self.listing.set_order(SortOrder(text_in(part, "sort"), bool(flag_in(part, "descending"))))

    def remember(self) -> None:
        """For the next run."""
        self.fleet_app.memory.note(
            self.MEMORY,
            filter=self.listing.filter.text,
            filters=list(self._filters),
            sort=self.listing.order.column,
            descending=self.listing.order.is_descending,
            opened=sorted(self.opened),
        )

    # What is open

    def toggle(self, model: str) -> None:
        """Show the machines of a model, or hide them."""
        self.opened ^= {model}
        self.fleet_app.painter.paint_now()
        self.remember()

    def action_expand(self) -> None:
        if self.table.cursor_model is not None:
            self.toggle(self.table.cursor_model)

    def on_model_table_toggle_asked(self, message: ModelTable.ToggleAsked) -> None:
        self.toggle(message.model)

    def action_expand_all(self) -> None:
        keys = {line.key for line in self.listing.shown}
        self.opened = self.opened - keys if keys <= self.opened else self.opened | keys
        self.fleet_app.painter.paint_now()
        self.remember()

    # Filter

    def action_filter(self, text: str = "") -> None:
        """Ask for a filter, or take the one that was named; what cannot be read is asked for."""
        wanted = parse_model_filter(text)
        if text and isinstance(wanted, ModelFilter):
            self._answer_filter(text)
            return
        before, table = self.listing.filter, self.table
        home, top = table.cursor_line, table.scroll_offset.y

        def follow(wanted: ModelFilter) -> None:
            self._show_filter(wanted, home)

        def cancel() -> None:
            follow(before)
            table.scroll_to(y=top, animate=False, force=True)

        self.ask(
            filter_question(
                text or before.text, self._filters, lambda: self.lines, self._answer_filter, follow, cancel
            )
        )

    def _answer_filter(self, text: str) -> None:
        wanted = parse_model_filter(text.strip())
        if isinstance(wanted, ModelFilter):
            if not wanted.is_empty:
                note_line(self._filters, wanted.text)
            self._show_filter(wanted, self.table.cursor_line)
            self.remember()

    def action_clear_filter(self) -> None:
        self._answer_filter("")

    def _show_filter(self, wanted: ModelFilter, home: ModelRow | None) -> None:
        """Show what matches; the cursor is on the row `home`, or on its model's, where that is shown, else on
        top."""
        was_empty = self.listing.filter.is_empty
        self.listing.set_filter(wanted)
        self.fleet_app.painter.paint_now()
        table = self.table
        if home is None or not (table.move_to(home.key) or table.move_to(home.model)):
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
            lines = sort_choices(order, self.fleet_app.look.glyph_set)
            self.fleet_app.choose("Sort models by", lines, order.column, self._choose_sort)
            return
        wanted = model_order_from(text, order)
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

    def on_model_table_header_clicked(self, message: ModelTable.HeaderClicked) -> None:
        column = None if self.layout_now is None else self.layout_now.column_at(message.x)
        if column is not None:
            self._choose_sort("spare" if column == "note" else column)

    def _step_sort(self, step: int) -> None:
        if self.layout_now is not None:
            self._sort_by(next_model_sort(self.listing.order, self.layout_now.keys, step))

    def _choose_sort(self, key: str) -> None:
        self._sort_by(choose_model_sort(self.listing.order, key))

    def _sort_by(self, order: SortOrder) -> None:
        is_on_top = self.table.cursor == 0
        self.listing.set_order(order)
        self.fleet_app.painter.paint_now()
        if is_on_top:  # nothing was chosen: what counts is what comes first now
            self.table.move_cursor(0)
        self.remember()
