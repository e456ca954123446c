"""The Fleet screen: a summary, what is wrong with the machine files, a row for each machine, the keys."""

from __future__ import annotations

from textual.app import ComposeResult

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.live import LiveScreen
from fleettui.tui.screens.fleet.expansion import Expansion
from fleettui.tui.screens.fleet.rows import FleetRows
from fleettui.tui.screens.fleet.trends import Trends
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.tui.widgets.notices import Notices
from fleettui.tui.widgets.painting import Line
from fleettui.tui.widgets.summary_line import SummaryLine
from fleettui.view.layout import Layout, header_cells, make_layout
from fleettui.view.rows import count_rows


class FleetScreen(LiveScreen):
    """All machines at a glance."""

    BINDINGS = bindings_for("fleet")
    DEFAULT_CSS = """
    FleetScreen > #summary { margin: 0 0 1 0; }
    FleetScreen.-low > #summary { margin: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows = FleetRows()
        self._expansion = Expansion()
        self._layout: Layout | None = None
        self._layout_made_for: object = None

    def compose_body(self) -> ComposeResult:
        yield SummaryLine()
        yield Notices()
        yield FleetTable(id="fleet")

    def on_mount(self) -> None:
        history = self.fleet_app.service.history
        self._rows.trend_of = None if history is None else Trends(history)
        self.table.focus()

    @property
    def table(self) -> FleetTable:
        """The list of machines."""
        return self.query_one(FleetTable)

    @property
    def current_machine(self) -> str | None:
        return self.table.cursor_machine

    def on_resize(self) -> None:
        self.set_class(self.size.height < 20, "-low")
        self.fleet_app.painter.paint_now()

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        app, table = self.fleet_app, self.table
        glyphs = app.look.glyph_set
        self.query_one(SummaryLine).show_summary(
            snapshot, now, app.service.interval_s, app.service.is_paused, glyphs, app.look.thresholds
        )
        self.query_one(Notices).show_problems(snapshot, app.service.notices, glyphs.unhealthy)
        layout = self._layout_for(snapshot)
        self._settle_expansion(snapshot, now, layout)
        opened = {item.name for item in snapshot.machines if self._expansion.is_open(item.name)}
        visible = {table.lines[index].machine for index in table.visible_range()}
        rows = self._rows.rows_of(snapshot.machines, now, layout, opened, visible)
        table.show_lines(rows, Line("header", header_cells(layout)))

    def _layout_for(self, snapshot: FleetSnapshot) -> Layout:
        names = tuple(item.name for item in snapshot.machines)
        made_for = (self.size.width, names, snapshot.interval_s)
        if self._layout is None or made_for != self._layout_made_for:
            look = self.fleet_app.look
            self._layout_made_for = made_for
            self._layout = make_layout(
                self.size.width,
                names,
                interval_s=snapshot.interval_s,
                columns=look.columns,
                glyphs=look.glyph_set,
                thresholds=look.thresholds,
                utc_offset_s=look.utc_offset_s,
                has_hints=False,
                has_trend=self._rows.trend_of is not None,
            )
        return self._layout

    def _settle_expansion(self, snapshot: FleetSnapshot, now: float, layout: Layout) -> None:
        """Everything is open while it fits; asked again when machines or cards come, not when models do."""
        page = self.table.size.height - 1
        shape = (
            page,
            self.size.width,
            tuple((item.name, 0 if item.gpu is None else len(item.gpu.cards)) for item in snapshot.machines),
        )
        if not self._expansion.is_settled(shape):
            need = sum(count_rows(item, now, layout, is_expanded=True) for item in snapshot.machines)
            self._expansion.settle(shape, need <= page)

    def on_fleet_table_view_moved(self) -> None:
        """Rows that come into view may be old; in another size everything may fit."""
        self.fleet_app.painter.paint_now()

    # Actions

    def action_open(self) -> None:
        if self.table.cursor_machine is not None:
            self.fleet_app.open_machine(self.table.cursor_machine)

    def on_cursor_view_opened(self) -> None:
        self.action_open()

    def action_expand(self) -> None:
        if self.table.cursor_machine is not None:
            self._toggle(self.table.cursor_machine)

    def on_fleet_table_toggle_asked(self, message: FleetTable.ToggleAsked) -> None:
        self._toggle(message.name)

    def _toggle(self, name: str) -> None:
        self._expansion.toggle(name)
        self.fleet_app.painter.paint_now()

    def action_expand_all(self) -> None:
        self._expansion.toggle_all(item.name for item in self.fleet_app.snapshot.machines)
        self.fleet_app.painter.paint_now()
