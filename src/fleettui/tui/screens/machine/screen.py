"""The Machine screen: everything known of one machine, live, in tabs."""

from __future__ import annotations

from textual.app import ComposeResult

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.live import LiveScreen
from fleettui.tui.screens.machine.pane import MachinePane
from fleettui.tui.screens.machine.tabs import TABS
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.tab_line import TabLine
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.column_cells import health
from fleettui.view.flags import flag_cells
from fleettui.view.layout import Layout, make_layout
from fleettui.view.machine_view import MachineView
from fleettui.view.text import clean

_LOW = 20
"""Screens with fewer lines have none to spare."""


class MachineScreen(LiveScreen):
    """One machine; `]` and `[` go to its neighbours and keep the tab."""

    BINDINGS = bindings_for("machine")

    def __init__(self, name: str, tab: str | None = None) -> None:
        super().__init__()
        self.machine_name: str = name  # one machine, never None here
        self.tab = tab if tab is not None and tab in _PLACES else TABS[0].key
        """Key of the tab that is shown."""
        self._panes: dict[str, MachinePane] = {}
        self._layout: Layout | None = None

    def compose_body(self) -> ComposeResult:
        yield CellBlock(id="title")
        yield TabLine([(tab.key, tab.title) for tab in TABS])
        yield self._make_pane()

    @property
    def pane(self) -> MachinePane:
        """What is shown below the tabs."""
        return self._panes[self.tab]

    def _make_pane(self) -> MachinePane:
        pane = self._panes[self.tab] = TABS[_PLACES[self.tab]].pane(self.machine_name)
        return pane

    def on_mount(self) -> None:
        self.pane.take_focus()

    def on_resize(self) -> None:
        self._layout = None
        self.fleet_app.painter.paint_now()

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed of the title, the tabs and the pane that is shown."""
        machine = snapshot.find(self.machine_name)
        self._show_title(snapshot, machine, now)
        self.query_one(TabLine).show_tab(
            self.tab, self.size.width, self.fleet_app.look.glyph_set, is_low=self.size.height < _LOW
        )
        if self.pane.is_mounted:
            self.pane.show_machine(machine, snapshot, now)

    def _show_title(self, snapshot: FleetSnapshot, machine: MachineSnapshot | None, now: float) -> None:
        width, look = self.size.width, self.fleet_app.look
        names = [item.name for item in snapshot.machines]
        place = f"{names.index(self.machine_name) + 1} of {len(names)}" if machine is not None else ""
        right = self.pause_cells(snapshot, now) or (Cell(place, "dim"),)
        cells: Cells = (Cell(f" {clean(self.machine_name)}  ", "strong"),)
        if machine is not None:
            made_for = (snapshot.interval_s, snapshot.paused_at)
            if self._layout is None or (self._layout.interval_s, self._layout.paused_at) != made_for:
                self._layout = make_layout(
                    width,
                    interval_s=snapshot.interval_s,
                    glyphs=look.glyph_set,
                    thresholds=look.thresholds,
                    paused_at=snapshot.paused_at,
                )
            view = MachineView(machine, now, self._layout)
            chips = [
                cell for chip in flag_cells(machine, now, look.glyph_set) for cell in (Cell("  "), *chip)
            ]
            about = clean(f"  {machine.machine.role}  {machine.machine.hostname}")
            cells = (*cells, *health(view, width), *chips, Cell(about, "dim"))
        room = max(0, width - width_of(right) - 1)
        title = fit_cells(cells, room, "left", look.glyph_set.ellipsis)
        self.query_one("#title", CellBlock).show_cells((*title, *right))

    # Tabs and neighbours

    async def show_tab(self, key: str) -> None:
        """Show a tab; its pane is made when it is shown first."""
        if key not in _PLACES or key == self.tab:
            return
        self.pane.display = False
        self.tab = key
        if key in self._panes:
            self.pane.display = True
            self._show_pane()
        else:
            await self._mount_pane()

    async def _mount_pane(self) -> None:
        await self.mount(self._make_pane(), after=self.query_one(TabLine))
        self._show_pane()

    def _show_pane(self) -> None:
        self.pane.take_focus()
        self.refresh_bindings()  # a pane may have keys of its own
        self.fleet_app.painter.paint_now()

    async def on_tab_line_chosen(self, message: TabLine.Chosen) -> None:
        await self.show_tab(message.key)

    async def action_next_tab(self) -> None:
        await self._step_tab(1)

    async def action_previous_tab(self) -> None:
        await self._step_tab(-1)

    async def _step_tab(self, step: int) -> None:
        await self.show_tab(TABS[(_PLACES[self.tab] + step) % len(TABS)].key)

    async def action_next_machine(self) -> None:
        await self._go(1)

    async def action_previous_machine(self) -> None:
        await self._go(-1)

    async def _go(self, step: int) -> None:
        """To a neighbour, with panes of its own."""
        names = [item.name for item in self.fleet_app.snapshot.machines]
        if not names:
            return
        here = names.index(self.machine_name) if self.machine_name in names else 0
        self.machine_name = names[(here + step) % len(names)]
        old, self._panes = list(self._panes.values()), {}
        await self._mount_pane()
        for pane in old:
            pane.display = False
            await pane.remove()

    def action_back(self) -> None:
        self.dismiss()


_PLACES = {tab.key: index for index, tab in enumerate(TABS)}
