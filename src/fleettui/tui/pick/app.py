"""The picker: the machines that can be chosen, a line to narrow them down, one key to take the best."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from fleettui.decide.routing import decide_route
from fleettui.decide.serving import list_serving
from fleettui.model.route import EXIT_NO_DATA, EXIT_UNKNOWN_MODEL, RouteDecision, RouteQuery, ServingList
from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.dressed import DressedApp
from fleettui.tui.painter import Painter
from fleettui.tui.pick.line import PickInput
from fleettui.tui.pick.terminal import PickDriver, Terminal
from fleettui.tui.port import Look
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.footer import Footer
from fleettui.view.cells import Cell
from fleettui.view.filter_language import FilterError
from fleettui.view.pick_lines import (
    PickLine,
    choice_line,
    detail_lines,
    find_choice,
    header_cells,
    pick_layout,
    snapshots_of,
    title_cells,
)
from fleettui.view.picking import Choice, PickAnswer, PickOrder, choices_of, matching_machines
from fleettui.view.route_text import format_one

LOW = 16
"""Below so many lines only one tells of the machine under the cursor."""


class PickSource(Protocol):
    """Where snapshots come from."""

    @property
    def snapshot(self) -> FleetSnapshot:
        """The newest one."""

    @property
    def is_settled(self) -> bool:
        """Nobody is waited for any more."""

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        """Call back on each new snapshot; the answer ends that."""

    async def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End."""

    def poll_now(self) -> None:
        """Ask every machine at once."""


@dataclass(frozen=True, slots=True)
class PickQuestion:
    """What is to be picked."""

    query: RouteQuery | None = None
    """The model and what is wanted for it; None: any machine that takes requests."""
    form: str = "address"
    """Of the answer."""

    def ask(self, fleet: FleetSnapshot, now: float) -> RouteDecision | ServingList:
        """Who can be picked now."""
        return list_serving(fleet, now) if self.query is None else decide_route(fleet, self.query, now)


@dataclass(frozen=True, slots=True)
class Picked:
    """How the picker was left."""

    answer: PickAnswer | None = None
    failure: RouteDecision | ServingList | None = None
    """There was nothing to pick, and why."""
    return_code: int = 0
    """Not 0: it did not end by itself."""


class FleetChanged(Message):
    """There is news; one message tells of any number of them."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, FleetChanged)


class PickApp(DressedApp, inherit_bindings=False):
    """Leaves by itself only where there is nothing to wait for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        replace(binding, priority=True) for binding in bindings_for("pick") if isinstance(binding, Binding)
    ]
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
    ) -> None:
        self.terminal = terminal
        super().__init__(look)
        self.source = source
        self.question = question
        self.picked = Picked()
        self.painter = Painter(self._paint, self.set_timer, terminal=self)
        self._clock = clock
        self._order = PickOrder()
        self._choices: Sequence[Choice] = ()
        self._is_touched = False
        """The operator typed or moved: lines stay where they are."""
        self._has_settled = False
        self._has_opened = False
        """There was something to pick or to wait for: it does not leave by itself any more."""
        self._filter = ""
        """The last text that could be read as one."""
        self._filter_error: FilterError | None = None
        self._has_new_filter = False

    def compose(self) -> ComposeResult:
        yield CellBlock(id="title")
        with Horizontal():
            label = CellBlock(id="label")
            label.show_cells((Cell(" > ", "key"),))
            yield label
            yield PickInput()
        choices = CursorView[PickLine](id="choices")
        choices.can_focus = False  # the line has every key
        yield choices
        yield CellBlock(id="detail")
        yield Footer()

    @property
    def view(self) -> CursorView[PickLine]:
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
        if not fleet.seq or not self.view.size.width:
            return
        found = self.question.ask(fleet, now)
        choices = choices_of(found, fleet, is_settled=settled)
        if not self._has_opened and self._is_hopeless(found, choices):
            self._leave(Picked(failure=found))
            return
        self._has_opened |= settled or any(choice.answer is not None for choice in choices)
        self._has_settled |= settled
        if self._has_settled or self._is_touched:
            self._order.hold(choices)
        choices = tuple(self._order.arrange(choices))
        self._choices = shown = self._filtered(choices, fleet, now)
        look, machines = self.look, snapshots_of(fleet)
        layout = pick_layout(
            self.view.size.width,
            choices,
            has_model=self.question.query is not None,
            interval_s=fleet.interval_s,
            glyphs=look.glyph_set,
            thresholds=look.thresholds,
        )
        lines = [choice_line(choice, machines.get(choice.machine), now, layout) for choice in shown]
        self.view.show_lines(lines, PickLine("", header_cells(layout)))
        self._place_cursor()
        title = title_cells(found, choices, len(shown), self.size.width, look.glyph_set)
        self.query_one("#title", CellBlock).show_cells(title)
        self._show_detail()

    def _is_hopeless(self, found: RouteDecision | ServingList, choices: Sequence[Choice]) -> bool:
        """Nobody knows the model, or nobody answered: what `route` would end with too."""
        if found.exit_code == EXIT_UNKNOWN_MODEL:
            return True
        is_waiting = not choices or any(choice.is_asked for choice in choices)
        return found.exit_code == EXIT_NO_DATA and not is_waiting

    def _filtered(self, choices: Sequence[Choice], fleet: FleetSnapshot, now: float) -> Sequence[Choice]:
        text = self.query_one(PickInput).value
        found = matching_machines(text, fleet, now)
        self._filter_error = found if isinstance(found, FilterError) else None
        if isinstance(found, FilterError):
            found = matching_machines(self._filter, fleet, now)
        else:
            self._filter = text
        names = frozenset[str]() if isinstance(found, FilterError) else found
        return [choice for choice in choices if choice.machine in names]

    def _place_cursor(self) -> None:
        """On the best while nobody has touched anything and news come in, and when what is typed changed."""
        if self._has_new_filter or not (self._is_touched or self._has_settled):
            self._has_new_filter = False
            first = next((at for at, choice in enumerate(self._choices) if choice.answer is not None), 0)
            self.view.move_cursor(first)

    def _show_detail(self) -> None:
        detail, glyphs = self.query_one("#detail", CellBlock), self.look.glyph_set
        width = self.size.width
        if self._filter_error is not None:
            detail.show_cells((Cell(f" {glyphs.plain(self._filter_error.text)}", "warn"),))
            return
        choice = self._current
        machine = None if choice is None else self.source.snapshot.find(choice.machine)
        text = (
            "" if choice is None or choice.answer is None else format_one(choice.answer, self.question.form)
        )
        most = 1 if self.size.height < LOW else 2
        lines = detail_lines(choice, text, machine, width, glyphs, most)
        detail.show_cells(*lines, *[()] * (most - len(lines)))

    @property
    def _current(self) -> Choice | None:
        line = self.view.cursor_line
        return find_choice(self._choices, None if line is None else line.key)

    def on_cursor_view_cursor_moved(self) -> None:
        self._show_detail()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._touch()
        self._has_new_filter = True
        self.painter.paint_now()

    def _touch(self) -> None:
        self._is_touched = True

    def _leave(self, picked: Picked) -> None:
        self.picked = picked
        self.exit()

    # Actions

    def action_pick(self) -> None:
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
        self._touch()
        self.view.action_cursor_up()

    def action_pick_down(self) -> None:
        self._touch()
        self.view.action_cursor_down()

    def action_pick_page_up(self) -> None:
        self._touch()
        self.view.action_page_up()

    def action_pick_page_down(self) -> None:
        self._touch()
        self.view.action_page_down()

    def action_pick_refresh(self) -> None:
        self.source.poll_now()
        self._order.release()
        self.painter.paint_now()


async def run_picker(
    source: PickSource, question: PickQuestion, look: Look | None = None, terminal: Terminal | None = None
) -> Picked:
    """Run the picker, and its source with it, until something is picked or it is left."""
    app = PickApp(source, question, look, terminal)
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
