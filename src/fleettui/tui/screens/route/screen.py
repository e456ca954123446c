"""The Route screen: which machine should serve a model now, which others could, and why the rest cannot."""

from __future__ import annotations

from operator import is_

from textual import events
from textual.app import ComposeResult

from fleettui.decide.knowledge import NOTHING_KNOWN
from fleettui.model.route import RouteDecision
from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.screens.route.asking import AskingScreen
from fleettui.tui.screens.route.ranking import Ranked, Ranking
from fleettui.tui.screens.route.rows import RankingRows
from fleettui.tui.screens.route.taking import LeaseKeys
from fleettui.tui.screens.route.warming import WarmUpKeys
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.painting import Line
from fleettui.tui.widgets.route_list import RouteList
from fleettui.view.cells import Cell, Cells
from fleettui.view.route_names import matching_models, model_header, model_rows, named_models
from fleettui.view.route_page import (
    ChipLine,
    candidate_detail,
    chip_line,
    chips_of,
    detail_cells,
    note_lines,
    route_title,
)
from fleettui.view.route_rows import (
    RouteLayout,
    RouteRow,
    route_header,
    route_layout,
)

LOW = 20
"""Lines of the screen below which nothing is to spare."""


class RouteScreen(AskingScreen):
    """The answer is worked out while the screen is shown, and only when something changed."""

    BINDINGS = bindings_for("route")

    def __init__(self) -> None:
        super().__init__()
        self.ranking = Ranking()
        self.leases = LeaseKeys(self)
        self.warm_ups = WarmUpKeys(self)
        self.came_from: str | None = None
        """The top screen that Esc goes back to."""
        self._rows = RankingRows()
        self._layout: RouteLayout | None = None
        self._chips = ChipLine((), ())
        self._made_of: tuple[object, ...] = ()
        """What the rows that are shown were made of."""
        self._had_offers: object = None
        self._placed: str | None = None
        """The machine that the cursor was put on: while it is there it goes with the best one."""

    def compose_body(self) -> ComposeResult:
        yield CellBlock(id="title")
        yield CellBlock(id="options")
        yield CellBlock(id="notes")
        yield RouteList(id="ranking")
        yield CellBlock(id="detail")

    def on_mount(self) -> None:
        self.restore()
        self.set_focus(self.ranking_list)  # at once: the line to type in may take it
        self.take_wish()

    def take_wish(self) -> None:
        """Show what was asked for on another screen."""
        wish = self.fleet_app.route.take()
        if wish is not None:
            self.came_from = wish.came_from or self.came_from
            self.ask_for(wish.model, wish.machine)

    @property
    def ranking_list(self) -> RouteList:
        return self.query_one(RouteList)

    @property
    def current_row(self) -> RouteRow | None:
        """The line under the cursor, where it can be on one."""
        return self.ranking_list.current_row

    @property
    def current_machine(self) -> str | None:
        row = self.current_row
        return row.machine if row is not None and row.kind in ("candidate", "rejected") else None

    @property
    def current_candidate(self) -> Ranked | None:
        """The machine under the cursor, if it can serve the model."""
        row = self.current_row
        return self.ranking.find(row.machine) if row is not None and row.kind == "candidate" else None

    def address_of(self, name: str) -> str:
        """What `y` copies: the engine that would serve the model."""
        ranked = self.ranking.find(name)
        return super().address_of(name) if ranked is None else ranked.candidate.address

    def on_resize(self) -> None:
        self.fleet_app.painter.paint_now()

    def show_answer(self) -> None:
        self.ranking.forget()
        self.fleet_app.painter.paint_now()
        self.refresh_bindings()

    def note_refresh(self) -> None:
        self.ranking.ask()
        self.fleet_app.painter.paint_now()

    # Painting

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        if not self.size.width:
            return
        layout = self._layout_for(snapshot)
        decision = None
        if self.is_choosing:
            self._show_models(layout)
        else:
            decision = self._decide(snapshot, now)
            self._show_machines(snapshot, decision, layout)
        self._show_around(snapshot, decision, now, layout)
        self._show_detail()

    def _decide(self, snapshot: FleetSnapshot, now: float) -> RouteDecision:
        desk = self.fleet_app.service.routing
        knowledge = NOTHING_KNOWN if desk is None else desk.knowledge_of(self.query_now.model)
        return self.ranking.decide(
            snapshot, self.query_now, self.ranking.joined(knowledge, snapshot.catalog), now
        )

    def _show_models(self, layout: RouteLayout) -> None:
        made_of = (self.models, self.typed, layout)
        if self._is_made_of(*made_of):
            return
        rows = model_rows(matching_models(self.models, self.typed or ""), layout)
        self.ranking_list.show_lines(rows, Line("header", model_header()))
        self.ranking_list.show_nothing(Line("nothing", (Cell("   no model is known by that name", "dim"),)))

    def _is_made_of(self, *parts: object) -> bool:
        """The list was made of the very same; from now on it is."""
        before, self._made_of = self._made_of, parts
        return len(before) == len(parts) and all(map(is_, before, parts))

    def _show_machines(self, snapshot: FleetSnapshot, decision: RouteDecision, layout: RouteLayout) -> None:
        view, is_new = self.ranking_list, self.ranking.is_new
        cursor = None if is_new else self.current_machine
        is_following = cursor == self._placed
        may_move = self.ranking.arrange(decision, cursor, self.fleet_app.idle_s)
        self.ranking.is_new = False
        if not self._is_made_of(decision, self.ranking.shown, layout, self.marked):
            nearest = named_models(self.models, decision.nearest) if decision.nearest else []
            rows = self._rows.of_decision(
                decision, self.ranking.shown, snapshot, layout, nearest, self.marked
            )
            view.show_lines(rows, Line("header", route_header(layout)))
            view.show_nothing(Line("nothing", (Cell("   no machine is declared", "dim"),)))
        if is_new:
            view.scroll_to(y=0, animate=False, force=True)
        if is_new or (may_move and is_following):
            view.move_cursor(0)  # on the best one, wherever one came from: Enter sends somebody there
            self._placed = self.current_machine

    def _show_around(
        self, snapshot: FleetSnapshot, decision: RouteDecision | None, now: float, layout: RouteLayout
    ) -> None:
        """Title, options, notes."""
        width, glyphs = self.size.width, layout.glyphs
        right: Cells = self.warm_ups.cells() or self.pause_cells(snapshot, now)
        model = "" if self.typed is not None else self.query_now.model
        self.query_one("#title", CellBlock).show_cells(route_title(model, decision, right, width, glyphs))
        keys = {chip.action: self.key_of(chip.action) for chip in chips_of(self.query_now)}
        self._chips = chip_line(self.query_now, keys, width, glyphs)
        self.query_one("#options", CellBlock).show_cells(self._chips.cells)
        is_low, desk = self.size.height < LOW, self.fleet_app.service.routing
        error = (desk.error if desk is not None else None) or ""
        lines = [] if decision is None else note_lines(decision, layout, 1 if is_low else 3, error=error)
        # Where there is room a blank line stands there, so that nothing moves.
        self.query_one("#notes", CellBlock).show_cells(*(lines or ([] if is_low else [()])))

    def _show_detail(self) -> None:
        """What the keys act on, and all that is known of it."""
        width, glyphs = self.size.width, self.fleet_app.look.glyph_set
        most = 1 if self.size.height < LOW else 2
        row, ranked = self.current_row, self.current_candidate
        lines: list[Cells] = []
        if ranked is not None:
            lines = candidate_detail(ranked.candidate, width, glyphs, most)
        elif row is not None and row.kind == "rejected":
            lines = detail_cells(
                row.machine, "cannot serve it now, for the reasons above", "dim", width, glyphs, most
            )
        elif self.typed is None and row is not None and row.kind == "model":
            about = f"{self.key_of('ask_model')} to type a name, or choose one of these"
            lines = detail_cells("which model?", about, "dim", width, glyphs, most)
        self.query_one("#detail", CellBlock).show_cells(*[()] * (most - len(lines)), *lines)

    def _layout_for(self, snapshot: FleetSnapshot) -> RouteLayout:
        look = self.fleet_app.look
        names = [item.name for item in snapshot.machines]
        layout = route_layout(self.size.width, names, look.glyph_set, look.thresholds)
        if layout != self._layout:  # rows are kept by the layout itself
            self._layout = layout
        assert self._layout is not None  # noqa: S101 - made above
        return self._layout

    # Which actions apply

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        row = self.current_row if self.is_mounted else None
        kind = None if row is None else row.kind
        applies = {
            "take": kind == "candidate",
            "open": kind == "rejected",
            "choose_model": kind == "model" and self.typed is None,
            "warm_up": self.warm_ups.can_start,
            "stop_waiting": self.warm_ups.is_running,
            "back": self.came_from is not None and not self.warm_ups.is_running,
        }.get(action, True)
        return super().check_action(action, parameters) if applies else False

    def note_cursor(self) -> None:
        """What Enter does depends on the line."""
        row = self.current_row
        kind = None if row is None else row.kind
        offers = (kind, self.warm_ups.can_start, self.warm_ups.is_running, self.current_machine is None)
        if offers != self._had_offers:
            self._had_offers = offers
            self.refresh_bindings()

    def on_cursor_view_cursor_moved(self) -> None:
        super().on_cursor_view_cursor_moved()
        self._show_detail()

    # Actions

    def action_take(self) -> None:
        ranked, decision = self.current_candidate, self.ranking.decision
        if ranked is not None and decision is not None:
            self.leases.take(ranked.candidate, decision.canonical)

    def action_look_into(self) -> None:
        if self.current_machine is not None:
            self.fleet_app.look_into(self.current_machine)

    action_open = action_look_into

    def action_warm_up(self) -> None:
        ranked, decision = self.current_candidate, self.ranking.decision
        if ranked is not None and decision is not None:
            self.warm_ups.ask(ranked.candidate, decision.canonical)

    def action_stop_waiting(self) -> None:
        self.warm_ups.stop_waiting()

    def action_back(self) -> None:
        if self.came_from is not None:
            name, self.came_from = self.came_from, None
            self.fleet_app.show_top_screen(name)

    async def on_cursor_view_opened(self) -> None:
        """Two clicks: as Enter."""
        row = self.current_row
        actions = {
            "candidate": self.action_take,
            "rejected": self.action_open,
            "model": self.action_choose_model,
        }
        if row is not None and row.kind in actions:
            actions[row.kind]()

    async def on_click(self, event: events.Click) -> None:
        """An option, or the model, was clicked."""
        where = None if event.widget is None else event.widget.id
        if where == "title":
            self.action_ask_model()
        elif where == "options":
            for span, action in self._chips.spots:
                if event.x in span:
                    await self.run_action(action)
