"""The picker: the machines that can be chosen, a line to narrow them down, one key to take the best."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from fleettui.model.route import EXIT_NO_DATA, EXIT_UNKNOWN_MODEL, RouteDecision, ServingList
from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.dressed import DressedApp
from fleettui.tui.painter import Painter
from fleettui.tui.pick.line import PickInput
from fleettui.tui.pick.question import Picked, PickQuestion, PickSource
from fleettui.tui.pick.rows import PickRows
from fleettui.tui.pick.terminal import PickDriver, Terminal
from fleettui.tui.port import Look
from fleettui.tui.themes import theme_names
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.route_list import RouteList
from fleettui.view.cells import Cell, Cells
from fleettui.view.filter_language import FilterError
from fleettui.view.pick_lines import (
    about_choice,
    detail_lines,
    find_choice,
    pick_title,
    title_cells,
)
from fleettui.view.picking import Choice, PickOrder, choices_of, matching_machines
from fleettui.view.route_text import format_one

LOW, LOWEST = 16, 10
"""Heights below which one line tells of the machine under the cursor, not two; the second where no column
says why."""


class FleetChanged(Message):
    """There is news; one message tells of any number of them."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, FleetChanged)


class PickApp(DressedApp, inherit_bindings=False):
    """Leaves by itself only where there is nothing to wait for."""

    BINDINGS = bindings_for("pick")
    ENABLE_COMMAND_PALETTE = False
    WHAT = "the picker"
    INSTEAD = "`fleettui route MODEL` prints a machine without asking"
    DRIVER = PickDriver
    CSS = """
    Screen { background: $background; color: $tone-plain; }
    Horizontal { height: 1; }
    #label { width: 3; }
    """

    def __init__(
        self,
        source: PickSource,
        question: PickQuestion,
        look: Look | None = None,
        terminal: Terminal | None = None,
        clock: Callable[[], float] = time.time,
        theme: str = "",
    ) -> None:
        """`theme`: the one that the dashboard wore last; empty: none was chosen."""
        self.terminal = terminal
        self._last_theme = theme
        super().__init__(look)
        self.source = source
        self.question = question
        self.picked = Picked()
        self.painter = Painter(self._paint, self.set_timer, terminal=self)
        self._clock = clock
        self._order = PickOrder()
        self._all: Sequence[Choice] = ()
        self._choices: Sequence[Choice] = ()
        """Those on the screen: what is typed leaves out the rest."""
        self._has_moved = False
        """The operator moved the cursor: lines stay where they are."""
        self._placed: str | None = None
        """Key of the line that the cursor was put on last, not by the operator."""
        self._has_settled = False
        self._has_opened = False
        """There was something to pick or to wait for: it does not leave by itself any more."""
        self._filter_error: FilterError | None = None
        self._typed = ""
        """What the list was narrowed by last."""
        self._rows = PickRows()
        self._low = LOW

    def compose(self) -> ComposeResult:
        title = CellBlock(id="title")
        query = self.question.query
        title.show_cells((Cell(f" {pick_title(None if query is None else query.model)}", "strong"),))
        yield title
        with Horizontal():
            label = CellBlock(id="label")
            label.show_cells((Cell(" > ", "key"),))
            yield label
            yield PickInput()
        choices: CursorView[Any] = RouteList(id="choices") if query else CursorView(id="choices")
        choices.can_focus = False  # the line has every key
        yield CellBlock(id="notes")
        yield choices
        yield CellBlock(id="detail")
        yield Footer()

    @property
    def last_theme(self) -> str:
        return self._last_theme if self._last_theme in theme_names() else ""

    @property
    def view(self) -> CursorView[Any]:
        """The list."""
        return self.query_one("#choices", CursorView)

    def on_mount(self) -> None:
        self.source.subscribe(self._note_news)
        self.set_interval(1.0, self.painter.request)
        self.query_one(PickInput).focus()
        self.painter.request()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self.painter.paint_now)

    def _note_news(self, _: FleetSnapshot) -> None:
        self.post_message(FleetChanged())

    def on_fleet_changed(self) -> None:
        self.painter.request()

    # What is shown

    def _paint(self) -> None:
        fleet, now, settled = self.source.snapshot, self._clock(), self.source.is_settled
        is_there = self.is_running and bool(self.query("#choices"))  # the way out takes it away
        if not fleet.seq or not is_there or not self.view.size.width:
            return
        is_new_filter, self._typed = self._typed != self._input, self._input
        found = self.question.ask(fleet, now)
        choices = choices_of(found, fleet, is_settled=settled)
        if not self._has_opened and self._is_hopeless(found, choices):
            self._leave(Picked(failure=found))
            return
        self._has_opened |= settled or any(choice.answer is not None for choice in choices)
        self._has_settled |= settled
        if self._has_settled:
            self._order.hold(choices)
        self._all = choices = tuple(self._order.arrange(choices))
        self._choices = shown = self._filtered(choices, fleet, now)
        page = self._rows.page_of(found, fleet, choices, shown, now, self.view.size.width, self.look)
        self._low = LOW if page.tells_why else LOWEST
        self.query_one("#notes", CellBlock).show_cells(*(page.notes if self.size.height >= LOW else ()))
        self.view.show_lines(page.lines, page.header)
        if is_new_filter or not (self._has_moved or self._has_settled):
            self._put_on_best()
        title = title_cells(found, choices, len(shown), self.size.width, self.look.glyph_set)
        self.query_one("#title", CellBlock).show_cells(title)
        self._show_detail()

    def _is_hopeless(self, found: RouteDecision | ServingList, choices: Sequence[Choice]) -> bool:
        """Nobody knows the model, or nobody answered: what `route` would end with too."""
        if found.exit_code == EXIT_UNKNOWN_MODEL:
            return True
        is_settled = bool(choices) and not any(choice.is_asked for choice in choices)
        return found.exit_code == EXIT_NO_DATA and is_settled

    def _filtered(self, choices: Sequence[Choice], fleet: FleetSnapshot, now: float) -> Sequence[Choice]:
        """What matches the typed line; all while it cannot be read."""
        found = matching_machines(self._typed, fleet, now)
        if isinstance(found, FilterError):
            self._filter_error = found
            return choices
        self._filter_error = None
        return [choice for choice in choices if choice.machine in found]

    def _put_on_best(self) -> None:
        """The cursor: while nobody has moved it and news come in, and when what is typed changed."""
        first = next((at for at, choice in enumerate(self._choices) if choice.answer is not None), 0)
        self._placed = self._choices[first].key if self._choices else None
        if self._placed is None or not self.view.move_to(self._placed):
            self.view.move_cursor(0)

    @property
    def _input(self) -> str:
        return self.query_one(PickInput).value

    def _show_detail(self) -> None:
        """What Enter prints, or why it would not; what is wrong with the typed line comes first."""
        glyphs, most = self.look.glyph_set, 2 if self.size.height >= self._low else 1
        if self._filter_error is not None:
            lines: list[Cells] = [(Cell(f" {glyphs.plain(self._filter_error.text)}", "warn"),)]
        else:
            choice = self._current
            machine = None if choice is None else self.source.snapshot.find(choice.machine)
            answer = None if choice is None else choice.answer
            text = "" if answer is None else format_one(answer, self.question.form)
            about = "" if choice is None else about_choice(choice, machine)
            lines = detail_lines(choice, text, about, self.size.width, glyphs, most)
        self.query_one("#detail", CellBlock).show_cells(*[()] * (most - len(lines)), *lines)

    @property
    def _current(self) -> Choice | None:
        line = self.view.cursor_line
        return find_choice(self._choices, None if line is None else line.key)

    def on_cursor_view_cursor_moved(self) -> None:
        current = self._current
        if current is not None and current.key != self._placed:  # a click
            self._note_move()
        self._show_detail()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._catch_up()

    def _catch_up(self) -> None:
        """A key may come before the news that what is typed changed: it is meant for what matches that."""
        if self._typed != self._input:
            self.painter.paint_now()

    def _note_move(self) -> None:
        self._catch_up()
        self._has_moved = True
        self._order.hold(self._all)

    def _leave(self, picked: Picked) -> None:
        self.picked = picked
        self.exit()

    # Actions

    def action_pick(self) -> None:
        self._catch_up()
        choice = self._current
        if choice is None or choice.answer is None:
            self.bell()
        else:
            self._leave(Picked(choice.answer))

    def on_cursor_view_opened(self, message: CursorView.Opened) -> None:
        self.action_pick()

    def action_pick_leave(self) -> None:
        self._leave(Picked())

    def action_pick_up(self) -> None:
        self._note_move()
        self.view.action_cursor_up()

    def action_pick_down(self) -> None:
        self._note_move()
        self.view.action_cursor_down()

    def action_pick_page_up(self) -> None:
        self._note_move()
        self.view.action_page_up()

    def action_pick_page_down(self) -> None:
        self._note_move()
        self.view.action_page_down()

    def action_pick_refresh(self) -> None:
        self.source.poll_now()
        self._order.release()
        self.painter.paint_now()


async def run_picker(
    source: PickSource,
    question: PickQuestion,
    look: Look | None = None,
    terminal: Terminal | None = None,
    theme: str = "",
) -> Picked:
    """Run the picker, and its source with it, until something is picked or it is left."""
    app = PickApp(source, question, look, terminal, theme=theme)
    starting = asyncio.create_task(source.start())  # while the screen comes up

    async def watch() -> None:
        await starting

    app.call_later(lambda: app.run_worker(watch(), exit_on_error=True))
    try:
        await app.run_async()
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await source.stop()
    return replace(app.picked, return_code=app.return_code or 0)
