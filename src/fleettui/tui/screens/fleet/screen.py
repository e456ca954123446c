"""The Fleet screen: a summary, what is wrong with the files, which machines are shown, a row for each."""

from __future__ import annotations

from textual.app import ComposeResult

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.memory import Part, flag_in, flags_in
from fleettui.tui.screens.fleet.choosing import ChoosingMachines
from fleettui.tui.screens.fleet.expansion import Expansion
from fleettui.tui.screens.fleet.rows import FleetRows
from fleettui.tui.screens.fleet.trends import Trends
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.tui.widgets.group_table import GroupTable
from fleettui.tui.widgets.notices import Notices
from fleettui.tui.widgets.painting import Line
from fleettui.tui.widgets.summary_line import SummaryLine
from fleettui.view.cells import Cells
from fleettui.view.layout import Layout, header_cells, make_layout
from fleettui.view.list_state import list_state, no_match
from fleettui.view.rows import count_rows, model_of


class FleetScreen(ChoosingMachines):
    """All machines at a glance."""

    BINDINGS = bindings_for("fleet")
    DEFAULT_CSS = """
    FleetScreen > #notices { margin: 1 0 0 0; }
    FleetScreen.-low > #notices { margin: 0 0 1 0; }
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
        yield CellBlock(id="shown")
        yield FleetTable(id="fleet")

    def on_mount(self) -> None:
        history = self.fleet_app.service.history
        self._rows.trend_of = None if history is None else Trends(history)
        self.restore()
        self.table.focus()

    @property
    def table(self) -> FleetTable:
        """The list of machines."""
        return self.query_one(FleetTable)

    @property
    def current_machine(self) -> str | None:
        return self.table.cursor_machine

    @property
    def current_model(self) -> str | None:
        """Of the copy under the cursor."""
        row = self.table.cursor_line
        return None if row is None else model_of(row)

    @property
    def layout_now(self) -> Layout | None:
        return self._layout

    def on_resize(self) -> None:
        self.set_class(self.size.height < 20, "-low")
        self.fleet_app.painter.paint_now()

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        app, table = self.fleet_app, self.table
        glyphs = app.look.glyph_set
        self.query_one(SummaryLine).show_summary(
            snapshot,
            now,
            app.service.interval_s,
            self.pause_cells(snapshot, now),
            glyphs,
            app.look.thresholds,
        )
        self.query_one(Notices).show_problems(snapshot, app.service.notices, glyphs.unhealthy)
        layout = self._layout_for(snapshot)
        self._settle_expansion(snapshot, now, layout)
        self.tags.keep_only(item.name for item in snapshot.machines)
        self._rows.keep_only(snapshot.machines)
        self.listing.arrange(snapshot, now, table.cursor_machine, app.idle_s)
        table.show_nothing(Line("nothing", self._nothing_cells(snapshot, layout)))
        before, is_on_top = self._visible_machines(), table.scroll_offset.y == 0
        self._show_rows(now, layout, before)
        if self.listing.has_moved and is_on_top:  # who looks at the first ones goes on seeing the first ones
            table.scroll_to(y=0, animate=False, force=True)
        if not self._visible_machines() <= before:  # rows that came into view may be old
            self._show_rows(now, layout, self._visible_machines())
        self._show_state(snapshot, layout)

    def _visible_machines(self) -> set[str]:
        lines = self.table.lines
        return {lines[index].machine for index in self.table.visible_range()}

    def _show_rows(self, now: float, layout: Layout, visible: set[str]) -> None:
        machines, order = self.listing.shown, self.listing.order
        opened = {item.name for item in machines if self._expansion.is_open(item.name)}
        rows = self._rows.rows_of(machines, now, layout, opened, visible, self.tags.names)
        header = header_cells(layout, order.column, is_descending=order.is_descending)
        self.table.show_lines(rows, Line("header", header))

    def _show_state(self, snapshot: FleetSnapshot, layout: Layout) -> None:
        listing = self.listing
        cells = list_state(
            listing.filter.text, listing.matching, len(snapshot.machines), self.tags.names,
            {item.name for item in listing.shown} if self.tags.names else (), listing.order, layout,
        )  # fmt: skip
        is_low = self.has_class("-low")  # elsewhere a blank line stands there, so that nothing moves
        self.query_one("#shown", CellBlock).show_cells(*([cells] if cells or not is_low else []))

    def _nothing_cells(self, snapshot: FleetSnapshot, layout: Layout) -> Cells:
        if self.listing.filter.is_empty or not snapshot.machines:
            return ()
        return no_match(self.listing.filter.text, layout.width, layout.glyphs)

    def _layout_for(self, snapshot: FleetSnapshot) -> Layout:
        names = tuple(item.name for item in snapshot.machines)
        made_for = (self.size.width, names, snapshot.interval_s, snapshot.paused_at)
        if self._layout is None or made_for != self._layout_made_for:
            look = self.fleet_app.look
            self._layout_made_for = made_for
            layout = make_layout(
                self.size.width,
                names,
                interval_s=snapshot.interval_s,
                columns=look.columns,
                glyphs=look.glyph_set,
                thresholds=look.thresholds,
                utc_offset_s=look.utc_offset_s,
                has_hints="pending" not in look.keys,  # the hint names the key
                has_trend=self._rows.trend_of is not None,
                paused_at=snapshot.paused_at,
            )
            if layout != self._layout:  # rows are kept by the layout itself
                self._layout = layout
        assert self._layout is not None  # noqa: S101 - made above
        return self._layout

    def _settle_expansion(self, snapshot: FleetSnapshot, now: float, layout: Layout) -> None:
        """Everything is open while it fits; asked again when machines or cards come, not when models do."""
        page = self._page_height()
        shape = (
            page,
            self.size.width,
            tuple((item.name, 0 if item.gpu is None else len(item.gpu.cards)) for item in snapshot.machines),
        )
        if not self._expansion.is_settled(shape):
            need = sum(count_rows(item, now, layout, is_expanded=True) for item in snapshot.machines)
            self._expansion.settle(shape, need <= page)

    def _page_height(self) -> int:
        """Lines of the table below its header. That of the widget is another while one types."""
        notices = len(self.query_one(Notices).lines)
        others = 3 if self.has_class("-low") else 4  # summary, what is shown, footer, header
        return self.size.height - others - (notices + 1 if notices else 0)

    def on_group_table_view_moved(self) -> None:
        """Rows that come into view may be old; in another size everything may fit."""
        self.fleet_app.painter.paint_now()

    # What is remembered between runs

    def restore(self) -> Part:
        part = super().restore()
        self._expansion.restore(flag_in(part, "everyone", None), flags_in(part, "opened"))
        return part

    def remember(self) -> None:
        super().remember()
        names = [item.name for item in self.fleet_app.snapshot.machines]
        self.fleet_app.memory.note(
            self.MEMORY, everyone=self._expansion.everyone, opened=self._expansion.choices(names)
        )

    # Actions

    def action_open(self) -> None:
        if self.table.cursor_machine is not None:
            self.fleet_app.look_into(self.table.cursor_machine)

    def on_cursor_view_opened(self) -> None:
        self.action_open()

    def action_expand(self) -> None:
        if self.table.cursor_machine is not None:
            self._toggle(self.table.cursor_machine)

    def on_group_table_toggle_asked(self, message: GroupTable.ToggleAsked) -> None:
        self._toggle(message.group)

    def _toggle(self, name: str) -> None:
        self._expansion.toggle(name)
        self.fleet_app.painter.paint_now()
        self.remember()

    def action_expand_all(self) -> None:
        self._expansion.toggle_all(item.name for item in self.listing.shown)
        self.fleet_app.painter.paint_now()
        self.remember()
