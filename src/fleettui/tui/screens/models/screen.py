"""The Models screen: which model lies where, what it takes, what expires next; a line each, openable."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.screens.models.choosing import ChoosingModels
from fleettui.tui.screens.models.rows import ModelRows
from fleettui.tui.screens.models.table import ModelTable
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.model_layout import ModelLayout, make_model_layout, model_header, prefix_line
from fleettui.view.model_matrix import ModelIndex, ModelLine
from fleettui.view.model_summary import legend_cells, models_state, models_summary, no_model
from fleettui.view.text import cell_width

_LOW = 20
"""Lines of the screen below which nothing is to spare."""
_TITLE_FROM = 60
"""Narrower screens have no room for the title."""


class ModelsScreen(ChoosingModels):
    """Models of the whole fleet."""

    BINDINGS = bindings_for("models")

    def __init__(self) -> None:
        super().__init__()
        self.index = ModelIndex()
        self.rows = ModelRows()
        self._layout: ModelLayout | None = None
        self._layout_made_for: object = None

    def compose_body(self) -> ComposeResult:
        yield CellBlock(id="summary")
        yield CellBlock(id="shown")
        yield ModelTable(id="models")
        yield CellBlock(id="legend")

    def on_mount(self) -> None:
        self.restore()
        self.table.focus()

    @property
    def table(self) -> ModelTable:
        return self.query_one(ModelTable)

    @property
    def layout_now(self) -> ModelLayout | None:
        return self._layout

    @property
    def current_machine(self) -> str | None:
        row = self.table.cursor_line
        return None if row is None else row.machine

    @property
    def current_model(self) -> str | None:
        """Of the line under the cursor, by its first name."""
        group = self.table.cursor_model
        return next((line.name for line in self.lines if line.key == group), None)

    def on_resize(self) -> None:
        self.fleet_app.painter.paint_now()

    def on_group_table_view_moved(self) -> None:
        """Rows that come into view may be old."""
        self.fleet_app.painter.paint_now()

    # Painting

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        self.lines = self.index.lines_of(snapshot, now)
        layout = self._layout_for(snapshot)
        shown = self.listing.arrange(self.lines, now, self.table.cursor_model, self.fleet_app.idle_s)
        self._show_around(snapshot, now, layout)
        before = self._visible_models()
        self._show_rows(shown, now, layout, before)
        near = self._visible_models()
        if not near <= before or self.rows.has_outline(near):  # what came into view may be old
            self._show_rows(shown, now, layout, near)

    def _visible_models(self) -> set[str]:
        """Those on the screen, and those a page away, so that turning the page finds them drawn."""
        table, seen = self.table, self.table.visible_range()
        page = table.page_height
        near = range(max(0, seen.start - page), min(len(table.lines), seen.stop + page))
        return {table.lines[index].model for index in near}

    def _show_rows(
        self, lines: Sequence[ModelLine], now: float, layout: ModelLayout, visible: set[str]
    ) -> None:
        order = self.listing.order
        rows = self.rows.rows_of(lines, now, layout, self.opened, visible)
        header = model_header(layout, order.column, is_descending=order.is_descending)
        self.table.show_lines(rows, Line("header", header))

    def _show_around(self, snapshot: FleetSnapshot, now: float, layout: ModelLayout) -> None:
        """Summary, filter, legend, and why there are no rows."""
        listing, width, is_low = self.listing, self.size.width, self.size.height < _LOW
        self.query_one("#summary", CellBlock).show_cells(self._summary_cells(now, layout))
        said = models_state(listing.filter.text, listing.matching, len(self.lines), listing.order, layout)
        state = prefix_line(said, layout)
        # Where there is room a blank line stands there, so that nothing moves.
        self.query_one("#shown", CellBlock).show_cells(*([state] if state or not is_low else []))
        legend = (Cell("   "), *legend_cells(layout.glyphs, width - 4))
        self.query_one("#legend", CellBlock).show_cells(*([] if is_low else [legend]))
        nothing = no_model(
            listing.filter.text, layout, has_models=bool(self.lines), has_machines=bool(snapshot.machines)
        )
        self.table.show_nothing(Line("nothing", nothing))

    def _summary_cells(self, now: float, layout: ModelLayout) -> Cells:
        width, glyphs = self.size.width, layout.glyphs
        title = Cell(" Models  " if width >= _TITLE_FROM else " ", "strong")
        paused = self.pause_cells(self.fleet_app.snapshot, now)
        paused = (*paused, Cell(" ")) if paused else ()
        room = max(0, width - cell_width(title.text) - width_of(paused) - 1)
        summary = fit_cells(models_summary(self.lines, now, room, glyphs), room, "left", glyphs.ellipsis)
        return (title, *summary, Cell(" "), *paused)

    def _layout_for(self, snapshot: FleetSnapshot) -> ModelLayout:
        names = tuple([item.name for item in snapshot.machines])
        longest = max((line.name for line in self.lines), key=cell_width, default="")
        made_for = (self.size.width, names, cell_width(longest), snapshot.interval_s)
        if self._layout is None or made_for != self._layout_made_for:
            self._layout_made_for = made_for
            self._layout = make_model_layout(
                self.size.width,
                names,
                (longest,),
                interval_s=snapshot.interval_s,
                glyphs=self.fleet_app.look.glyph_set,
            )
        return self._layout

    # Actions

    def action_open(self) -> None:
        """To the machine under the cursor; on a model's own line to the first machine that has it."""
        row = self.table.cursor_line
        if row is None:
            return
        if row.machine is not None:
            self.fleet_app.look_into(row.machine)
            return
        if row.model not in self.opened:
            self.toggle(row.model)
        first = next((item for item in self.table.lines if item.model == row.model and item.machine), None)
        if first is not None:
            self.table.move_to(first.key)

    def on_cursor_view_opened(self) -> None:
        """Two clicks: on a sign of the matrix to that machine, elsewhere as Enter."""
        row, layout = self.table.cursor_line, self._layout
        machine = None if layout is None else layout.machine_at(self.table.clicked_x)
        if row is None or row.kind != "model" or machine is None:
            self.action_open()
            return
        line = next((item for item in self.lines if item.key == row.model), None)
        if line is not None and any(holding.machine == machine for holding in line.holdings):
            self.fleet_app.look_into(machine)
