"""The Plan screen: which role belongs on which GPU, what has no place and why, and what would be if."""

from __future__ import annotations

from typing import Literal

from textual import events
from textual.app import ComposeResult

from fleettui.decide.plan_nodes import NO_PROFILE
from fleettui.model.catalog import Catalog
from fleettui.model.placement import PlacementPlan, PlanNode
from fleettui.model.placement_answers import PlanComparison
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.live import LiveScreen
from fleettui.tui.memory import flag_in
from fleettui.tui.planning import LikelyPlan, PlanWork
from fleettui.tui.screens.plan.changes import NOTHING_MEASURED, NowChanges
from fleettui.tui.screens.plan.export import Export
from fleettui.tui.screens.plan.rows import PlanRows, Used, about_row, used_now
from fleettui.tui.screens.plan.what_if import WhatIf
from fleettui.tui.widgets.block_list import BlockList
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell, Cells
from fleettui.view.plan_answers import change_rows, loss_rows
from fleettui.view.plan_page import broken_lines, no_plan_lines, plan_chips, plan_title
from fleettui.view.plan_rows import PlanLayout, PlanRow, plan_header, plan_layout, said_rows
from fleettui.view.route_page import ChipLine, detail_cells, lay_chips
from fleettui.view.text import clean

LOW = 20
"""Lines of the screen below which nothing is to spare."""
MEMORY = "plan"
"""The part of the app's memory."""


class PlanList(BlockList[PlanRow]):
    """GPUs, roles without a place, or the lines of another view."""

    def group_of(self, line: PlanRow) -> str:
        return line.key


class PlanScreen(LiveScreen):
    """The plan is made while the screen is shown, and anew only when something it rests on changed."""

    BINDINGS = bindings_for("plan")

    def __init__(self) -> None:
        super().__init__()
        self.what_if = WhatIf()
        self.view_now: Literal["plan", "changes", "losses"] = "plan"
        self.is_optimal = False
        self.plan: PlacementPlan | None = None
        """As it is exported."""
        self.shown_plan: PlacementPlan | None = None
        """With the models that are likely meant."""
        self.comparison: PlanComparison | None = None
        self.nodes: tuple[PlanNode, ...] = ()
        """The fleet as it would be."""
        self.rows = PlanRows()
        self.changes = NowChanges()
        self._likely = LikelyPlan()
        self._other_work: PlanWork | None = None
        """Of the fleet as it would be, beside the app's, of the fleet as it is."""
        self._layout: PlanLayout | None = None
        self._layout_made_for: tuple[int, tuple[PlanNode, ...]] = (0, ())
        self._chips = ChipLine((), ())
        self._had_offers: object = None
        self._used: Used = {}
        self._used_of: FleetSnapshot | None = None

    def compose_body(self) -> ComposeResult:
        yield CellBlock(id="title")
        yield CellBlock(id="options")
        yield PlanList(id="plan")
        yield CellBlock(id="detail")

    def on_mount(self) -> None:
        self.is_optimal = bool(flag_in(self.fleet_app.memory.part(MEMORY), "optimal"))
        self.set_focus(self.plan_list)

    @property
    def plan_list(self) -> PlanList:
        return self.query_one(PlanList)

    @property
    def current_row(self) -> PlanRow | None:
        """The line under the cursor, where it can be on one."""
        return self.plan_list.current_row

    @property
    def current_machine(self) -> str | None:
        row = self.current_row
        return row.machine or None if row is not None else None

    @property
    def work(self) -> PlanWork:
        """Who makes the plan that is shown."""
        if not self.what_if:
            return self.fleet_app.plans.work
        if self._other_work is None:
            self._other_work = PlanWork(self.fleet_app)
        return self._other_work

    def on_resize(self) -> None:
        self.fleet_app.painter.paint_now()

    # Painting

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        if not self.size.width:
            return
        catalog, work = snapshot.catalog, self.work
        self.nodes = self.what_if.apply(self.fleet_app.plans.nodes.nodes_of(snapshot))
        if snapshot is not self._used_of:
            self._used_of, self._used = snapshot, used_now(snapshot)
        comparison = None
        if catalog.roles and snapshot.machines:  # while the first what-if is worked out, the plan as it is
            comparison = work.compare(self.nodes, catalog) or self.fleet_app.plans.work.comparison
        self.comparison = comparison
        self.plan = self.shown_plan = None
        if comparison is not None:
            self.plan = comparison.optimal if self.is_optimal else comparison.greedy
            self.shown_plan = self._likely.of(self.plan, catalog)
        layout = self._layout_for(self.nodes)
        self._show_rows(snapshot, catalog, layout)
        self._show_around(snapshot, comparison, now, layout)
        self._show_detail()

    def _show_rows(self, snapshot: FleetSnapshot, catalog: Catalog, layout: PlanLayout) -> None:
        view, plan = self.plan_list, self.shown_plan
        if plan is None:
            said = no_plan_lines(catalog, snapshot.problems, has_machines=bool(snapshot.machines))
            view.show_lines(said_rows("no", said or [("working the plan out…", "dim")], layout), None)
            return
        broken = said_rows("broken", broken_lines(snapshot.problems, is_planned=True), layout)
        if self.view_now == "changes":
            desk = self.fleet_app.service.routing
            rates = NOTHING_MEASURED if desk is None else desk.load_rates
            rows = change_rows(self.changes.from_now(snapshot, plan, rates), layout)
        elif self.view_now == "losses":
            rows = loss_rows(self.work.losses(optimal=self.is_optimal), layout)
        else:
            warnings = (*self.fleet_app.plans.nodes.notes, *plan.warnings)
            rows = self.rows.of_plan(
                plan, self.nodes, catalog, self._used, self.what_if, layout, warnings, self.work.findings
            )
            view.show_lines([*broken, *rows], Line("header", plan_header(layout)))
            return
        view.show_lines([*broken, *rows], None)

    def _show_around(
        self, snapshot: FleetSnapshot, comparison: PlanComparison | None, now: float, layout: PlanLayout
    ) -> None:
        """Title and options."""
        width, glyphs, work = self.size.width, layout.glyphs, self.work
        right: Cells = self.pause_cells(snapshot, now)
        losses = None
        if comparison is not None and work.is_working:
            right = (Cell("working it out… ", "dim"), *right)
        elif comparison is not None:
            losses = work.losses(optimal=self.is_optimal)
        title = plan_title(comparison, self.plan, losses, right, width, glyphs)
        self.query_one("#title", CellBlock).show_cells(title)
        words = self.what_if.words
        chips = () if self.plan is None else plan_chips(self.view_now, self.is_optimal, words)
        keys = {chip.action: self.key_of(chip.action) for chip in chips}
        self._chips = lay_chips(chips, keys, width, glyphs)
        self.query_one("#options", CellBlock).show_cells(self._chips.cells)

    def _show_detail(self) -> None:
        """What is known of the line under the cursor."""
        width, glyphs = self.size.width, self.fleet_app.look.glyph_set
        most = 1 if self.size.height < LOW else 2
        row, plan, lines = self.current_row, self.shown_plan, []
        about = None
        if row is not None and plan is not None:
            roles = self.fleet_app.snapshot.catalog.roles
            about = about_row(row, plan, self.nodes, roles, self._used, self.what_if)
        if about is not None:
            lines = detail_cells(*about, "accent", width, glyphs, most)
        self.query_one("#detail", CellBlock).show_cells(*[()] * (most - len(lines)), *lines)

    def _layout_for(self, nodes: tuple[PlanNode, ...]) -> PlanLayout:
        glyphs = self.fleet_app.look.glyph_set
        made_for = (self.size.width, nodes)
        before = self._layout_made_for
        if self._layout is None or before[0] != made_for[0] or before[1] is not nodes:
            self._layout_made_for = made_for
            self._layout = plan_layout(self.size.width, nodes, glyphs)
        return self._layout

    # Which actions apply

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        row = self.current_row if self.is_mounted else None
        has_plan = self.plan is not None
        applies = {
            "open": row is not None and bool(row.machine),
            "toggle_gpu": has_plan and row is not None and row.gpu is not None,
            "toggle_machine": has_plan and row is not None and bool(row.machine),
            "clear_what_if": bool(self.what_if),
            "toggle_optimal": has_plan,
            "show_changes": has_plan,
            "show_losses": has_plan,
            "export_plan": has_plan,
        }.get(action, True)
        return super().check_action(action, parameters) if applies else False

    def note_cursor(self) -> None:
        """What the keys do depends on the line."""
        row = self.current_row
        offers = (
            None if row is None else (row.kind, row.gpu is None, not row.machine),
            self.plan is None,
            bool(self.what_if),
        )
        if offers != self._had_offers:
            self._had_offers = offers
            self.refresh_bindings()

    def on_cursor_view_cursor_moved(self) -> None:
        super().on_cursor_view_cursor_moved()
        self._show_detail()

    # Actions

    def _show_again(self) -> None:
        self.fleet_app.painter.paint_now()
        self.note_cursor()

    def action_open(self) -> None:
        if self.current_machine is not None:
            self.fleet_app.look_into(self.current_machine)

    def on_cursor_view_opened(self) -> None:
        self.action_open()

    def action_toggle_optimal(self) -> None:
        self.is_optimal = not self.is_optimal
        self.fleet_app.memory.note(MEMORY, optimal=self.is_optimal)
        self._show_again()

    def action_show_changes(self) -> None:
        self._show_view("plan" if self.view_now == "changes" else "changes")

    def action_show_losses(self) -> None:
        self._show_view("plan" if self.view_now == "losses" else "losses")

    def _show_view(self, view: Literal["plan", "changes", "losses"]) -> None:
        self.view_now = view
        self._show_again()
        self.plan_list.move_cursor(0)

    def action_toggle_gpu(self) -> None:
        row = self.current_row
        self._toggle(None if row is None else row.gpu)

    def action_toggle_machine(self) -> None:
        self._toggle(None)

    def _toggle(self, index: int | None) -> None:
        name = self.current_machine
        actual = self.fleet_app.plans.nodes.nodes_of(self.fleet_app.snapshot)
        node = next((node for node in actual if node.name == name), None)
        if node is None:
            return
        if node.unavailable == NO_PROFILE or (index is None and node.unavailable and not node.gpus):
            self.notify(f"nothing is known of the hardware of {clean(node.name)}", markup=False)
            return
        self.what_if.toggle(node, next((gpu for gpu in node.gpus if gpu.index == index), None))
        self._show_again()

    def action_clear_what_if(self) -> None:
        self.what_if.clear()
        self._show_again()

    def action_export_plan(self, text: str = "") -> None:
        """Ask for the file, or write the one that was named."""
        plan, comparison = self.plan, self.comparison
        if plan is not None and comparison is not None:
            catalog, notes = self.fleet_app.snapshot.catalog, self.fleet_app.plans.nodes.notes
            plan = replace(plan, warnings=(*notes, *plan.warnings))
            Export(self, plan, self.nodes, catalog, comparison, self.what_if.words).ask(text)

    async def on_click(self, event: events.Click) -> None:
        """An option was clicked."""
        if event.widget is not None and event.widget.id == "options":
            for span, action in self._chips.spots:
                if event.x in span:
                    await self.run_action(action)
